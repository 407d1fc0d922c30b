"""The real engine of this machine, and a desk for actions on it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from textor.actions import Action, Outcome
from textor.capabilities.places import Judged
from textor.capabilities.port import Provider
from textor.containers.engine import Engine, find_engine
from textor.containers.labels import INSTANCE, is_alive
from textor.errors import TextorError
from textor.journal.blobs import MemoryBlobs
from textor.values import Value

BUSYBOX, BASE, SANDBOX = "textor/busybox:test", "textor/base:test", "textor/sandbox:test"
ROOT = Path(__file__).resolve().parents[2]


class Desk:
    """The scope of one action after the other, and a short way to perform one."""

    agent = "main"

    def __init__(self, workspace: Path, session: str = "s1") -> None:
        self.workspace = workspace
        self.session = session
        self.key = ""
        self.blobs = MemoryBlobs()
        self.judged: dict[str, Judged] = {}
        self.shown: list[str] = []
        self._count = 0

    def value(self, handle: str) -> Value:
        raise KeyError(handle)

    def progress(self, text: str) -> None:
        self.shown.append(text)

    async def perform(self, provider: Provider, what: str, /, key: str = "", **arguments: Any) -> Outcome:
        self._count += 1
        scope = Desk(self.workspace, self.session)
        scope.key = key or f"a{self._count}"
        scope.blobs, scope.shown = self.blobs, self.shown
        try:
            return await provider.invoke(Action(scope.key, what, arguments), scope)
        except TextorError as error:  # as the registry does
            return Outcome.failed(str(error))


def ours() -> list[str]:
    """The names of the containers with our labels, but for those of another Textor that runs here."""

    async def look() -> list[str]:
        engine = await find_engine()
        states = [] if engine is None else await engine.list({INSTANCE: ""})
        return [state.name for state in states if not _of_another(state.labels[INSTANCE])]

    return asyncio.run(look())


def _of_another(instance: str) -> bool:
    """Whether a living process that is not of these tests watches the container."""
    if not is_alive(instance):
        return False
    try:
        process = psutil.Process(int(instance.partition("-")[0]))
        return os.getpid() not in {process.pid, *(parent.pid for parent in process.parents())}
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="session")
def _engine() -> Generator[None]:
    """There is an engine with the images of the tests; nothing of ours is left in it afterwards."""

    async def missing() -> str:
        engine = await find_engine()
        if engine is None:
            return "no container engine answers; scripts/engine.sh starts one"
        wanted = (BUSYBOX, BASE, SANDBOX)
        absent = [image for image in wanted if not await engine.has_image(image)]
        return f"no images {', '.join(absent)}; scripts/engine.sh makes them" if absent else ""

    if told := asyncio.run(missing()):
        assert os.environ.get("CI") != "true", f"CI must have an engine: {told}"
        pytest.skip(told)
    before = set(ours())
    yield
    assert set(ours()) - before == set()


@pytest.fixture
def engine(_engine: None) -> Engine:
    found = asyncio.run(find_engine())
    assert found is not None
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    # a session of its own in each test: containers are named after it
    workspace = tmp_path / "work"
    workspace.mkdir()
    return Desk(workspace, session=f"test-{os.getpid()}-{abs(hash(tmp_path)) % 10**8}")


def run_program(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
