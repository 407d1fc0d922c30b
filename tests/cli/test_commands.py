"""Commands that need no model: help, configuration, agent types, and wrong use."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import tomllib
import urllib.request
from pathlib import Path

import pytest

from textor import __version__
from textor.cli import main

from .conftest import Program


def test_version_and_help(textor: Program) -> None:
    done = textor("--version")
    assert (done.returncode, done.stdout) == (0, f"textor {__version__}\n")
    done = textor("--help")
    assert done.returncode == 0
    for command in ("run", "chat", "serve", "sessions", "models", "agents", "config"):
        assert f"\n    {command} " in done.stdout


@pytest.mark.parametrize("command", ["run", "chat", "serve", "sessions", "models", "agents", "config"])
def test_each_command_has_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: textor {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [[], ["fly"], ["run", "x", "--modell", "a:b"], ["sessions", "show"], ["serve", "--port", "x"]],
)
def test_wrong_use_ends_with_two(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: textor")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run", " "], "There is no task."),
        (["run", "x", "--workspace", "missing"], "missing is no folder"),
        (["run", "x", "--model", "gpt"], "--model: models.default"),
        (["run", "x", "--agent", "mian"], "did you mean main?"),
        (["agents", "show", "mian"], "did you mean main?"),
        (["serve", "--port", "99999"], "from 0 to 65535"),
        (["chat"], "needs a terminal"),
        (["sessions", "show", "nothing"], "There is no session 'nothing'"),
    ],
)
def test_wrong_values_end_with_two_and_one_sentence(textor: Program, args: list[str], says: str) -> None:
    textor.configure("")
    done = textor(*args)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("textor: ") and says in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""


def test_the_configuration_is_begun_shown_and_found(textor: Program) -> None:
    path = Path(textor.env["TEXTOR_CONFIG"])
    assert textor("config", "path").stdout == f"{path}\n"
    assert textor("config", "init").stdout == f"{path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = textor("config", "init")
    assert again.returncode == 2 and "exists already" in again.stderr
    textor.env["OPENAI_API_KEY"] = "s3cret"
    shown = textor("config", "show")
    assert shown.returncode == 0 and shown.stderr == ""
    assert tomllib.loads(shown.stdout)["providers"]["oai"]["api_key"] == "********"
    assert "s3cret" not in shown.stdout


def test_a_wrong_configuration_ends_every_command_that_needs_it(textor: Program) -> None:
    path = textor.configure("[server]\nprot = 1\n")
    for args in (["config", "show"], ["run", "x"], ["serve"], ["sessions"], ["models"]):
        done = textor(*args)
        assert done.returncode == 2
        assert done.stderr.startswith(f"textor: {path}, line 2: server.prot is not known; did you mean port?")


def test_agent_types_are_listed_and_shown(textor: Program) -> None:
    own = textor.folder / ".textor" / "agents"
    own.mkdir(parents=True)
    (own / "poet.md").write_text("---\npurpose: Writes poems.\n---\nYou write poems.\n")
    (own / "broken.md").write_text("---\nlayout: x\n---\n")
    listed = textor("agents")
    assert listed.returncode == 0 and "broken.md, line 2: layout" in listed.stderr
    lines = listed.stdout.splitlines()
    assert lines[0].split() == ["TYPE", "DIALECTS", "PURPOSE"]
    names = [line.split()[0] for line in lines[1:]]
    assert names == sorted(names) and {"main", "poet", "starter"} <= set(names)
    shown = textor("agents", "show", "poet").stdout
    assert "purpose: Writes poems." in shown and shown.endswith("\nYou write poems.\n")


def test_what_was_not_expected_is_one_line_and_a_log(textor: Program) -> None:
    # A data folder that is a file is told by the journal; a broken installation by nobody.
    broken = textor.home / "broken" / "platformdirs"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(
        "from pathlib import Path\n"
        f"def user_state_path(*a, **k): return Path({str(textor.home / 'state' / 'textor')!r})\n"
        "def user_data_path(*a, **k): raise ZeroDivisionError('s3cret detail')\n"
    )
    del textor.env["TEXTOR_DATA"]
    textor.env["PYTHONPATH"] = str(broken.parent)
    textor.configure("")
    done = textor("config", "show")
    log = textor.home / "state" / "textor" / "textor.log"
    assert done.returncode == 1
    assert done.stderr == (
        f"textor: An unexpected ZeroDivisionError ended this command; the details are in {log}.\n"
    )
    assert "s3cret detail" in log.read_text() and stat.S_IMODE(log.stat().st_mode) == 0o600


def test_what_parts_log_goes_to_the_file_and_not_onto_the_terminal(textor: Program) -> None:
    (textor.home / "platformdirs").mkdir()
    (textor.home / "platformdirs" / "__init__.py").write_text(
        "from pathlib import Path\nimport logging\n"
        f"def user_state_path(*a, **k): return Path({str(textor.home / 'state')!r})\n"
        "def user_data_path(*a, **k):\n    logging.getLogger('part').error('noise')\n    return Path('/x')\n"
    )
    del textor.env["TEXTOR_DATA"]
    textor.env["PYTHONPATH"] = str(textor.home)
    textor.configure("")
    done = textor("config", "show")
    assert (done.returncode, done.stderr) == (0, "")
    assert "part: noise" in (textor.home / "state" / "textor.log").read_text()


def test_a_reader_that_leaves_early_is_no_error(textor: Program) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*textor.command, "config", "show"],
        env=textor.env,
        cwd=textor.folder,
        stdout=writing,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    os.close(writing)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_serve_tells_its_address_and_ends_with_ctrl_c(textor: Program) -> None:
    textor.configure("")
    process = subprocess.Popen(
        [*textor.command, "serve", "--port", "0", "--no-browser", "--json"],
        env=textor.env,
        cwd=textor.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    with urllib.request.urlopen(told["url"], timeout=60) as page:
        assert b"<html" in page.read()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "") and len(told["token"]) > 20


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("rnu", "hi"), "Did you mean run?"),
        (("run", "--yse", "hi"), "textor run: error: unrecognized arguments: --yse. Did you mean --yes?"),
        (("sessions", "shwo", "x"), "Did you mean show?"),
        ((), "do one task"),
    ],
)
def test_a_misspelt_word_is_told_with_the_nearest(textor: Program, args: tuple[str, ...], told: str) -> None:
    done = textor(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_misspelt_capability_of_an_agent_type_is_told(textor: Program) -> None:
    types = textor.folder / ".textor" / "agents"
    types.mkdir(parents=True)
    (types / "odd.md").write_text("---\nname: odd\ncapabilities: [files.raed, shop.buy, web.*]\n---\nYou.")
    done = textor("agents", "show", "odd")
    assert done.returncode == 0
    assert done.stderr == "textor: There is no capability files.raed. Did you mean files.read?\n"
    for name in ("main", "researcher", "sia"):
        assert textor("agents", "show", name).stderr == ""
