"""Where a version runs while it is tried: a container of its image, the sandbox of this machine, or
bare where there is neither.

A version may have been written by an agent, so its trial has no network, no rights of the person,
and sees one folder: the copy of the state and a folder to work in. The model that it speaks to is
in the process of the judge, and is reached through a door.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from textor.capabilities.doors import PLACE, Door
from textor.capabilities.filling import unless_full, used
from textor.capabilities.processes import Ended, Limits, run
from textor.capabilities.sandbox import Bubblewrap, Sandbox, find_sandbox, limited_script, why_no_sandbox
from textor.containers.client import EngineError
from textor.containers.engine import find_engine
from textor.containers.labels import this_process
from textor.containers.sandbox import ContainerSandbox
from textor.errors import CapabilityError
from textor.testing import ScriptedServer

#: The model's port inside, and its socket in the folder of the door.
PORT, SOCKET = 7700, "model.sock"
#: Bytes of output that are read of one command, and that a version may write beyond what was there.
MOST_OUTPUT = 4 << 20
MOST_WRITTEN = 1 << 30
#: Seconds for the look whether a room can be used.
PROBE = 60.0

_ASKS = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{PORT}/v1/models').status)"


@dataclass(frozen=True)
class Candidate:
    """What is tried: the interpreter of its environment, the folder of its build, and its image
    ("": there is none)."""

    python: Path
    home: Path
    image: str = ""


class Room:
    """One way to run a version. `place` is the folder that it sees and may write, with `work` in it;
    `python` is an interpreter that it has."""

    def __init__(self, where: str, python: str, place: Path, sandbox: Sandbox | None = None) -> None:
        self.where = where
        self.place = place
        self._python = python
        self._sandbox = sandbox
        self._room = used(place) + MOST_WRITTEN

    @property
    def work(self) -> Path:
        return self.place / "work"

    @contextlib.contextmanager
    def reaching(self, server: ScriptedServer) -> Iterator[tuple[str, Door | None]]:
        """Start a scripted model: its address for the version, and the door that leads to it. The
        door is a new one each time, so that nothing lies in it that a version put there."""
        if self._sandbox is None:
            with server:
                yield server.url, None
            return
        door = Door([(f"tcp:{PORT}", f"unix:{PLACE}/{SOCKET}")])
        server.listen_at(door.socket(SOCKET))
        try:
            with server:
                yield f"http://127.0.0.1:{PORT}/v1", door
        finally:
            door.close()

    async def textor(
        self, arguments: Sequence[str], env: Mapping[str, str], patience: float, door: Door | None = None
    ) -> Ended:
        """Run the version's `textor` in `work`. Reason "full" is too much output, "cancelled" too
        much written."""
        return await self._run([self._python, "-P", "-m", "textor", *arguments], env, patience, door)

    async def program(self, code: str, env: Mapping[str, str], patience: float) -> Ended:
        """Run a program of the judge in `work`: `code` with nothing but Python's own library, whose
        `sys.executable` runs the version."""
        return await self._run([self._python, "-I", "-S", "-c", code], env, patience, None)

    async def trouble(self) -> str:
        """Why this room cannot be used; "" when it can. Nothing of the version is run for it."""
        try:
            with self.reaching(ScriptedServer()) as (_, door):
                argv = [self._python, "-I", "-S", "-c", _ASKS]
                ended = await self._run(argv, {}, PROBE, door)
        except CapabilityError as error:
            return str(error)
        if ended.reason == "exit" and ended.output.strip() == b"200":
            return ""
        told = (ended.errors + ended.output).decode("utf-8", "replace").strip().splitlines()
        return " ".join(told[-2:])[-300:] or f"it ended with {ended.reason} {ended.exit_status}"

    async def _run(
        self, argv: Sequence[str], env: Mapping[str, str], patience: float, door: Door | None
    ) -> Ended:
        ways = {"PATH": os.environ.get("PATH", os.defpath), **env}
        limits = Limits()
        inside: Sequence[str] = argv
        if self._sandbox is not None:
            ways = self._sandbox.env
            words = [f"{name}={text}" for name, text in env.items()]
            inside = ["sh", "-c", 'cd "$0" && exec env "$@"', str(self.work), *words, *argv]
            if not isinstance(self._sandbox, ContainerSandbox):
                inside = ["sh", "-c", limited_script(limits), "sh", *inside]
            inside = self._sandbox.command(inside, self.place, door)
        work = run(
            inside,
            cwd=self.work,
            env=ways,
            timeout=patience,
            limits=limits,
            keep=MOST_OUTPUT,
            stop_when_full=True,
            supervised=self._sandbox is not None,
            apart=True,
        )
        return await unless_full(work, self.place, self._room)


async def find_room(candidate: Candidate, place: Path) -> Room:
    """The best room that can be used here; `place` is the folder that the version sees."""
    found = await _container(candidate, place)
    if not isinstance(found, str):
        return found
    whys = [found] if found else []
    found = await _local(candidate, place)
    if not isinstance(found, str):
        return found
    return Room(f"bare, with your rights: {' '.join([*whys, found])}", str(candidate.python), place)


async def _container(candidate: Candidate, place: Path) -> Room | str:
    if not candidate.image:
        return "There is no image of it."
    engine = await find_engine()
    if engine is None:
        return "No container engine answers."
    sandbox = ContainerSandbox(engine, candidate.image, this_process())
    where = f"in a container of {candidate.image} ({engine.kind})"
    room = Room(where, "/opt/textor/bin/python", place, sandbox)
    try:
        why = await room.trouble()
    except EngineError as error:
        why = str(error)
    return f"A container of {candidate.image} cannot be used: {why.rstrip('.')}." if why else room


async def _local(candidate: Candidate, place: Path) -> Room | str:
    sandbox = await asyncio.to_thread(find_sandbox)
    if sandbox is None:
        return why_no_sandbox()
    if isinstance(sandbox, Bubblewrap):
        sandbox = Bubblewrap(sandbox.program, shown=[candidate.home])
    room = Room(f"in {sandbox.name}", str(candidate.python), place, sandbox)
    why = await room.trouble()
    return f"{sandbox.name} cannot be used: {why.rstrip('.')}." if why else room
