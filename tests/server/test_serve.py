"""`serve`: the address, the token, the port, the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from textor.errors import UseError
from textor.server.serve import address_of, allowed_hosts, listen
from textor.server.token import load_token

PROGRAM = """
import asyncio, sys
from pathlib import Path
from textor.config import Config
from textor.server.serve import serve
folder = Path(sys.argv[1])
asyncio.run(serve(Config(folder / "config.toml", folder / "data"), port=0, json=sys.argv[2] == "json"))
print("ended")
"""


def start(folder: Path, form: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), form],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert told["url"] == f"http://127.0.0.1:{told['port']}"
    asked = urllib.request.Request(
        f"{told['url']}/api/sessions", headers={"authorization": f"Bearer {told['token']}"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert json.load(answer) == {"sessions": []}
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "ended\n", "")


def test_it_says_where_it_runs_and_what_configures_it(tmp_path: Path) -> None:
    process = start(tmp_path, "text")
    assert process.stdout is not None
    where, config = process.stdout.readline(), process.stdout.readline()
    assert where.startswith("Textor runs at http://127.0.0.1:")
    assert where.rstrip().endswith("/#token=" + load_token(tmp_path / "data"))
    assert str(tmp_path / "config.toml") in config
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)


def test_a_taken_port_is_one_sentence() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UseError, match=f"Port {port} .*taken.*--port"):
            listen("127.0.0.1", port)
        assert address_of(taken) == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("host", "port", "part"),
    [("127.0.0.1", 70000, "70000"), ("no.such.invalid", 0, "no.such"), ("192.0.2.1", 0, "--host")],
)
def test_an_address_that_cannot_be_had_is_one_sentence(host: str, port: int, part: str) -> None:
    with pytest.raises(UseError, match=part):
        listen(host, port)


def test_a_server_on_all_addresses_answers_for_digits() -> None:
    assert "*" in allowed_hosts("0.0.0.0")
    assert "*" not in allowed_hosts("127.0.0.1")


def test_the_token_stays_and_is_its_owners(tmp_path: Path) -> None:
    first = load_token(tmp_path / "data")
    assert len(first) >= 32
    file = tmp_path / "data" / "token"
    assert file.stat().st_mode & 0o077 == 0
    file.chmod(0o644)
    assert load_token(tmp_path / "data") == first
    assert file.stat().st_mode & 0o077 == 0
    assert load_token(tmp_path / "other") != first


def test_a_token_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(UseError, match=r"token.*cannot be used"):
        load_token(tmp_path)
