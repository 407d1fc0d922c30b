"""What the tests of modules share: a desk for calls, and ways to start the servers that stand here."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textor.actions import Action, Outcome
from textor.capabilities.modules.module import Module
from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import ModuleSpec
from textor.capabilities.places import Judged
from textor.journal.blobs import MemoryBlobs
from textor.values import Value

HERE = Path(__file__).parent
ODD = HERE / "odd_server.py"
RAW = HERE / "raw_server.py"


class Desk:
    """The scope of an action."""

    session, agent, key = "s1", "main", "a1"

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.blobs = MemoryBlobs()
        self.judged: dict[str, Judged] = {}
        self.shown: list[str] = []

    def value(self, handle: str) -> Value:
        raise KeyError(handle)

    def progress(self, text: str) -> None:
        self.shown.append(text)

    async def perform(self, provider: ModulesProvider, name: str, /, **arguments: Any) -> Outcome:
        return await provider.invoke(Action("a1", name, arguments), self)


def odd(marks: Path, **more: Any) -> ModuleSpec:
    """The odd server over stdio."""
    return ModuleSpec("odd", (sys.executable, str(ODD), str(marks)), **more)


def raw(tools: Path, **more: Any) -> ModuleSpec:
    """The server that lists the tools in a JSON file."""
    return ModuleSpec("raw", (sys.executable, str(RAW), str(tools)), **more)


def runs(marks: Path, name: str) -> int:
    """How often a tool of the odd server has begun."""
    file = marks / name
    return file.read_text().count("run") if file.exists() else 0


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return Path("/proc").exists() is False


async def until(ready: Callable[[], object], seconds: float = 20) -> None:
    """Look again and again; fails when it does not come true."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.01)


async def until_state(module: Module, *states: str) -> None:
    await until(lambda: module.state in states)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class HttpServer:
    """The odd server at an address."""

    def __init__(self, marks: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        self.address = f"http://127.0.0.1:{self.port}/mcp"
        self.process = subprocess.Popen(
            [sys.executable, str(ODD), str(marks), "--http", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None
                time.sleep(0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *ended: object) -> None:
        self.kill()
