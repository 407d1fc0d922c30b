"""A disk that is full in the middle of a session with containers and children (a real one)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textor.containers.engine import Engine

from .conftest import ours


def reports(folder: Path, *mode: str) -> list[dict[str, Any]]:
    """What `full_disk.py` says, in mounts of its own."""
    folder = folder / f"full-{abs(hash(folder)) % 10**6}"
    folder.mkdir()
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*own, "mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here by this user")
    program = [sys.executable, Path(__file__).with_name("full_disk.py"), folder, *mode]
    ran = subprocess.run([*own, *map(str, program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.timeout(300)
def test_a_session_stands_still_and_goes_on(engine: Engine, tmp_path: Path) -> None:
    told = reports(tmp_path)
    assert len(told) >= 12
    for report in told:
        assert report["faults"] == [], report
        assert "the disk is full" in report["said"] and "Free some space" in report["said"]


def test_textor_run_says_so_and_can_be_resumed(engine: Engine, tmp_path: Path) -> None:
    [report] = reports(tmp_path, "run")
    first, another, resumed, listed = report["told"]
    assert (first["code"], another["code"], resumed["code"]) == (1, 1, 0)
    last = first["err"].splitlines()[-1]
    assert last.startswith("textor: The session stands still. The journal ") and "the disk is full" in last
    assert last.endswith(f"`textor sessions resume {report['session']}` goes on with it.")
    assert "is running" in first["err"] and "the disk is full" in another["err"]
    assert "Traceback" not in first["err"] + another["err"]
    assert resumed["out"] == "Started, and gone on.\n"
    assert listed["out"].count("idle") == 1 and len(listed["out"].splitlines()) == 2
    assert not [name for name in ours() if report["session"] in name]
