"""The sandbox by container: each command in one of its own, without network, over the workspace.

The containers wait in a warm pool. Their first process is a shell that reads one command from its
input, runs it with both outputs as one stream, and tells the exit status on the other; when it
ends, the kernel ends all that is left inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from textor.capabilities.doors import PLACE, Door
from textor.capabilities.live import Standing, standing
from textor.capabilities.processes import KEEP, Ended, Limits, Reason, Tape
from textor.capabilities.sandbox import shut_in
from textor.containers.client import EngineError, Stream
from textor.containers.engine import Allowance, Engine, Mount, Spec, output_of
from textor.containers.labels import SANDBOX, Owner
from textor.containers.pool import Pool, Warm
from textor.containers.wishes import covered
from textor.errors import CapabilityError

#: Waits for a command, runs it, tells its status. `cat` ends when our side of the input is closed.
WAITING = 'exec 3>&2 2>/dev/null; {opening} eval "$(cat)"; printf %s "$?" >&3'

ENVIRONMENT = {"HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}
SCRATCH = 512 << 20  #: bytes of /tmp, which lives in memory


@dataclass(frozen=True)
class Place:
    """What a warm container is made for."""

    folder: Path
    limits: Limits
    standing: Standing | None = None  #: what is kept in its place there


class ContainerSandbox:
    """Sandbox by Docker or Podman, in containers of `image`, which has bash and Python."""

    def __init__(self, engine: Engine, image: str, owner: Owner, door: Door | None = None) -> None:
        self.engine = engine
        self.image = image
        self.owner = owner
        self.door = door
        self._pool: Pool[Place] = Pool(engine, self._warm)

    @property
    def name(self) -> str:
        return self.engine.kind

    @property
    def shell(self) -> str:
        return "bash"

    @property
    def env(self) -> dict[str, str]:
        """For `command`: what our own program needs that talks to the engine."""
        return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}

    def command(self, argv: Sequence[str], workspace: Path, door: Door | None = None) -> list[str]:
        """`argv` in a container of its own, as a command of this machine (see `enter.py`)."""
        inside = door.through(argv) if door is not None else argv
        spec = self._spec(Place(shut_in(workspace), Limits()), inside, door)
        told = {"address": self.engine.address, "kind": self.engine.kind, "spec": asdict(spec)}
        # -P: it is started in the workspace, whose files must not be taken for modules
        return [sys.executable, "-P", "-m", "textor.containers.enter", json.dumps(told, default=str)]

    async def run(
        self,
        argv: Sequence[str],
        workspace: Path,
        *,
        timeout: float,
        limits: Limits,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Ended:
        """Run `argv` in a warm container. `CapabilityError` when the engine does not do its part."""
        folder = shut_in(workspace)
        place = Place(folder, limits, await asyncio.to_thread(standing, folder))
        try:
            warm = await self._pool.take(place)
        except EngineError as error:
            raise CapabilityError(f"The sandbox cannot be made: {error}") from None
        run = _Run(self.engine, warm, on_output)
        try:
            return await run.to_its_end(argv, timeout)
        finally:
            self._pool.leave(warm)

    async def close(self) -> None:
        await self._pool.close()
        if self.door is not None:
            self.door.close()

    async def _warm(self, place: Place) -> Warm:
        opening = self.door.opening if self.door is not None else ""
        waiting = ["bash", "-c", WAITING.format(opening=opening)]
        id = await self.engine.create(self._spec(place, waiting, self.door))
        stream: Stream | None = None
        try:
            stream = await self.engine.attach(id, stdin=True)
            await self.engine.start(id)
        except BaseException:
            if stream is not None:
                stream.close()
            await asyncio.shield(self.engine.remove(id))
            raise
        return Warm(id, stream)

    def _spec(self, place: Place, argv: Sequence[str], door: Door | None) -> Spec:
        workspace = Mount(place.folder, str(place.folder))
        folders, files = covered([workspace])
        mounts = [workspace, *files]
        if door is not None:
            mounts.append(Mount(door.folder, PLACE))
        allowance = Allowance(
            place.limits.memory, float(os.cpu_count() or 1), place.limits.processes, SCRATCH
        )
        return Spec(
            name=f"textor-sandbox-{secrets.token_hex(6)}",
            image=self.image,
            entrypoint=list(argv[:1]),
            command=list(argv[1:]),
            environment={**ENVIRONMENT, **(door.environment if door is not None else {})},
            labels=self.owner.labels(SANDBOX),
            mounts=mounts,
            covers=folders,
            folder=str(place.folder),
            user=f"{os.getuid()}:{os.getgid()}",
            stdin="once",
            logged=False,
            allowance=allowance,
        )


class _Run:
    """One command in one container."""

    def __init__(self, engine: Engine, warm: Warm, on_output: Callable[[bytes], None] | None) -> None:
        self._engine = engine
        self._warm = warm
        self._on_output = on_output
        self._tape = Tape(KEEP)
        self._told = b""

    async def to_its_end(self, argv: Sequence[str], timeout: float) -> Ended:
        running = asyncio.create_task(self._receive(argv))
        memory = asyncio.create_task(self._out_of_memory())
        reason: Reason = "timeout"
        try:
            done, _ = await asyncio.wait(
                [running, memory], timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            reason = "exit" if running in done else "memory" if memory in done else "timeout"
        except asyncio.CancelledError:
            reason = "cancelled"
        ending = asyncio.create_task(self._end(reason, running, memory))
        while not ending.done():
            # a second cancelling must not leave the command half killed
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        reason, status = ending.result()
        return Ended(reason, status, self._tape.content(), self._tape.left_out)

    async def _receive(self, argv: Sequence[str]) -> None:
        line = f"{shlex.join(argv)} 2>&1 3>&-"
        await self._warm.stream.send(line.encode("utf-8", "surrogateescape"))
        self._warm.stream.end_input()
        async for number, data in output_of(self._warm.stream):
            if number == 2:
                self._told += data
                continue
            self._tape.add(data)
            if self._on_output is not None:
                self._on_output(data)

    async def _out_of_memory(self) -> None:
        """Return when the kernel had to end something inside for its memory."""
        filters = {"container": [self._warm.id], "event": ["oom"]}
        with contextlib.suppress(EngineError):  # the command's own connection tells of that
            stream = await self._engine.client.open("GET", "/events", {"filters": filters}, patience=None)
            try:
                async for _ in stream.pieces():
                    return
            finally:
                stream.close()
        await asyncio.Event().wait()

    async def _end(
        self, reason: Reason, running: asyncio.Task[None], memory: asyncio.Task[None]
    ) -> tuple[Reason, int | None]:
        """End what still runs; the reason as it is now known, and the exit status."""
        memory.cancel()
        if reason != "exit":
            try:
                await self._engine.kill(self._warm.id)
            except EngineError as error:
                raise CapabilityError(f"The command could not be ended for certain: {error}") from None
            await asyncio.wait([running], timeout=5)  # what was written until then
            running.cancel()
        await asyncio.gather(running, memory, return_exceptions=True)
        if reason != "exit":
            return reason, None
        if self._told.isdigit() and self._told != b"137":
            return "exit", int(self._told)
        return await self._looked_up()

    async def _looked_up(self) -> tuple[Reason, int | None]:
        """What became of a command whose status was not told, or that was killed."""
        fault = ""
        try:
            await self._engine.wait(self._warm.id)
            state = await self._engine.inspect(self._warm.id)
            if state.out_of_memory:
                return "memory", None
        except EngineError as error:
            fault = f" {error}"
        if self._told.isdigit():
            return "exit", int(self._told)
        raise CapabilityError(
            f"The sandbox was ended from outside, and what became of the command is unknown.{fault}"
        )
