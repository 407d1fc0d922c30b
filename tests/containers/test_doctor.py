"""`textor doctor` on this machine, and what is chosen when something is not there."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textor.capabilities.sandbox import SECRETS, Seatbelt
from textor.containers.choose import choose
from textor.containers.engine import Engine
from textor.containers.labels import this_process
from textor.errors import CapabilityError
from textor.settings import SandboxSettings

from .conftest import SANDBOX


def doctor(tmp_path: Path, *args: str, **environment: str) -> str:
    env = {name: os.environ[name] for name in ("PATH", "DOCKER_HOST") if name in os.environ}
    env |= {"HOME": str(tmp_path), "TEXTOR_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-m", "textor", "doctor", *args],
        env={**env, "TEXTOR_CONFIG": str(tmp_path / "config.toml"), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def findings(tmp_path: Path, **environment: str) -> Any:
    (tmp_path / "config.toml").write_text("")
    return json.loads(doctor(tmp_path, "--json", **environment))


def test_each_part_is_told_with_its_reason(engine: Engine, tmp_path: Path) -> None:
    found = findings(tmp_path, TEXTOR_SANDBOX_IMAGE=SANDBOX)
    assert set(found) == {"sandbox", "engine", "model", "embedder", "browser"}
    assert found["engine"]["in_use"] == found["sandbox"]["in_use"] == engine.kind
    assert found["sandbox"]["why"] == f"The engine has the image {SANDBOX}."
    assert found["model"]["in_use"] == "embedded:smollm2"
    text = doctor(tmp_path)
    assert text.startswith("PART ")
    assert "bubblewrap" in text


def test_without_the_image_there_is_bubblewrap(engine: Engine, tmp_path: Path) -> None:
    found = findings(tmp_path, TEXTOR_SANDBOX_IMAGE="textor/none:test")
    assert found["sandbox"]["in_use"] == "bubblewrap"
    assert "has no image textor/none:test" in found["sandbox"]["why"]


def test_none_is_none(tmp_path: Path) -> None:
    found = findings(tmp_path, TEXTOR_SANDBOX_KIND="none")
    assert found["sandbox"] == {
        "in_use": None,
        "why": "The configuration asks for none (sandbox.kind), so each command is asked about.",
    }


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_an_engine_that_is_asked_for_and_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: Any
) -> None:
    monkeypatch.setattr("textor.containers.engine.addresses", lambda environment: [f"unix://{tmp_path}/no"])
    choice = asyncio.run(choose(SandboxSettings(kind), this_process()))
    assert choice.sandbox is choice.engine is None
    assert choice.why_sandbox.startswith("No container engine answers.")


def test_the_profile_of_macos(tmp_path: Path) -> None:
    workspace = tmp_path / 'a "b"'
    workspace.mkdir()
    program, flag, profile, *command = Seatbelt("/usr/bin/sandbox-exec").command(["true"], workspace)
    assert (program, flag, command) == ("/usr/bin/sandbox-exec", "-p", ["true"])
    lines = profile.split("\n")
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in profile
    assert f'(subpath "{tmp_path.resolve()}/a \\"b\\"")' in profile
    assert sum(line.startswith("(deny file*") for line in lines) == len(SECRETS)
    assert profile.count("(") == profile.count(")")
    with pytest.raises(CapabilityError, match="whole file system"):
        Seatbelt("sandbox-exec").command(["true"], Path("/"))
