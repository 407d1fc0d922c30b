"""The program `textor` as a person starts it: its own process, folders and environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from textor.testing import ScriptedServer


class Program:
    """Runs `textor` in a folder of its own, with nothing of this machine's settings."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "work"
        self.folder.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TERM": "xterm",
            "TEXTOR_CONFIG": str(home / "config" / "config.toml"),
            "TEXTOR_DATA": str(home / "data"),
            "XDG_STATE_HOME": str(home / "state"),
        }

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "textor"]

    def configure(self, text: str) -> Path:
        path = Path(self.env["TEXTOR_CONFIG"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(0o600)
        return path

    def use(self, server: ScriptedServer) -> None:
        """Make a scripted server the default model."""
        self.configure(
            f'[models]\ndefault = "mine:scripted"\n[providers.mine]\nbase_url = "{server.url}"\n'
            "context_window = 32000\n"
        )

    def __call__(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.command, *args],
            env=self.env,
            cwd=self.folder,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        return done


@pytest.fixture
def textor(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def scripted(textor: Program) -> Callable[..., Any]:
    """`with scripted(items) as server:` is the default model of `textor`."""

    @contextmanager
    def started(script: Any) -> Iterator[ScriptedServer]:
        with ScriptedServer(script) as server:
            textor.use(server)
            yield server

    return started
