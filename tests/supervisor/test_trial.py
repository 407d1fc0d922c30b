"""The trial of a version, shut in: in a container of its image and in bubblewrap, with real ones."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from version_parts import Workshop

from textor.supervisor import rooms
from textor.supervisor.rooms import Candidate
from textor.supervisor.trial import TEXT, Verdict, _text_of, trial

BOTH = pytest.mark.parametrize("where", ["container", "bubblewrap"])

#: What a version does that was written to do harm, at each start.
REACHES = """
import os, socket
def _harm(place, port):
    for path in (place + "/escaped", __file__, "ran"):
        try:
            open(path, "a").write("# harm")
        except OSError:
            pass
    for address in (("127.0.0.1", port), ("1.1.1.1", 80)):
        try:
            socket.create_connection(address, 1)
        except OSError:
            pass
_harm({place!r}, {port})
"""
#: The children sleep, so as to be no burden on who else is on this machine.
FORKS = """
import os, time
while True:
    try:
        if not os.fork():
            time.sleep(1000)
    except OSError:
        time.sleep(0.1)
"""
LEAVES = "import os, threading\nthreading.Timer(2, lambda: os._exit(3)).start()\n"
BREAKS = "raise SystemExit('broken')\n"
SLEEPS = "import time\ntime.sleep(1000)\n"
FLOODS = "while True:\n    print('x' * 9999)\n"
FILLS = f"open('full', 'wb').write(bytes(30 << 20))\n{SLEEPS}"

#: The first test may have to make an image with all that Textor needs.
pytestmark = pytest.mark.timeout(600)


def tried(
    workshop: Workshop, tag: str, tmp: Path, where: str = "bubblewrap", patience: float = 60
) -> Verdict:
    versions = workshop.versions
    version = workshop.built(tag) if where == "container" else workshop.built(tag, "")
    place = tmp / "place"
    versions.copy_state(place / "state")
    candidate = Candidate(versions.python(tag), versions.home(version.commit), version.image)
    return asyncio.run(trial(candidate, place, patience))


@BOTH
def test_harm_that_a_version_would_do_is_not_done(workshop: Workshop, tmp_path: Path, where: str) -> None:
    """It writes outside, changes itself and calls this machine and others: nothing comes of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        tag = workshop.tag(f"reaches-{where}", REACHES.format(place=str(outside), port=port), "errors.py")
        verdict = tried(workshop, tag, tmp_path, where)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert verdict.faults == [] and where in verdict.where
    assert (tmp_path / "place" / "work" / "ran").exists() and list(outside.iterdir()) == []
    home = workshop.versions.home(workshop.versions.commit(tag))
    assert not (home / "source" / "src" / "textor" / "errors.py").read_text().endswith("# harm")


@BOTH
def test_a_version_that_forks_endlessly_is_ended(workshop: Workshop, tmp_path: Path, where: str) -> None:
    tag = workshop.tag(f"forks-{where}", FORKS, "__main__.py")
    (fault,) = tried(workshop, tag, tmp_path, where, patience=6).faults
    assert fault.startswith("it starts: `textor --version` ")
    assert ("did not end within 6 s" if where == "container" else "started too many processes") in fault


@pytest.mark.parametrize(
    ("name", "code", "file", "fault"),
    [
        ("breaks", BREAKS, "__main__.py", "it starts: `textor --version` ended with 1: broken"),
        ("sleeps", SLEEPS, "__main__.py", "did not end within 5 s"),
        ("floods", FLOODS, "__main__.py", "did not stop writing output"),
        ("fills", FILLS, "__main__.py", "wrote more than"),
    ],
)
def test_a_bad_version_fails(
    workshop: Workshop,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    code: str,
    file: str,
    fault: str,
) -> None:
    monkeypatch.setattr(rooms, "MOST_WRITTEN", 20 << 20)
    (found,) = tried(workshop, workshop.tag(name, code, file), tmp_path, patience=5).faults
    assert fault in found


def test_a_version_that_shows_its_models_nothing_fails_at_its_task(
    workshop: Workshop, tmp_path: Path
) -> None:
    tag = workshop.tag("wrong", "[:0]", "layouts/__init__.py", "agent.dialogue")
    (fault,) = tried(workshop, tag, tmp_path).faults
    assert fault.startswith("it does a task")


@pytest.mark.parametrize(
    ("name", "code", "fault"),
    [
        ("serves-not", BREAKS, "its server told no address and ended with 1"),
        ("serves-awhile", LEAVES, "its server ended with 3"),
    ],
)
def test_a_version_that_does_not_serve_fails(
    workshop: Workshop, tmp_path: Path, name: str, code: str, fault: str
) -> None:
    tag = workshop.tag(name, code, "server/serve.py")
    (found,) = tried(workshop, tag, tmp_path).faults
    assert found.startswith("it serves its page: ") and fault in found


def test_without_image_and_sandbox_it_runs_bare_and_says_so(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = workshop.tag("bare", BREAKS, "__main__.py")
    workshop.built(tag, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    versions = workshop.versions
    versions.copy_state(tmp_path / "place" / "state")
    candidate = Candidate(versions.python(tag), versions.home(versions.read().versions[tag].commit))
    verdict = asyncio.run(trial(candidate, tmp_path / "place"))
    assert verdict.where.startswith(
        "bare, with your rights: There is no image of it. bubblewrap (bwrap) is not"
    )
    assert "broken" in verdict.faults[0]


def test_what_a_version_left_is_read_only_where_it_is_a_plain_file(tmp_path: Path) -> None:
    good, link, pipe = (tmp_path / name for name in ("good", "link", "pipe"))
    good.write_text(TEXT, "utf-8")
    link.symlink_to(good)
    os.mkfifo(pipe)
    assert [_text_of(path) for path in (good, link, pipe, tmp_path, tmp_path / "none")] == [TEXT] + [None] * 4
    good.write_text(TEXT + "more", "utf-8")
    assert _text_of(good) != TEXT
