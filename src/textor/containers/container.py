"""One container of an agent, alive: its output as it comes, its input, its end said once.

The output is read from an attached connection, which gives every byte at once and unchanged. When
that breaks (the engine was stopped, Textor crashed) the engine's log takes its place: what was
received before is passed over by count, so nothing is lost and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from textor.capabilities.processes import KEEP, Tape
from textor.containers.buffers import Buffer
from textor.containers.client import EngineError, EngineGone, Missing, Stream
from textor.containers.engine import Engine, State, output_of, until_back
from textor.containers.wishes import MASK
from textor.errors import CapabilityError
from textor.values import clean_text

Status = Literal["initializing", "running", "finished"]

#: Unread bytes above which a container is paused, as a full pipe stops who writes into it.
FULL = 16 << 20


#: Called with what is being read and how many bytes it is.
Keep = Callable[[str, int], None]

#: Seconds from the end of the output until the end of a container, when nothing was cut.
SOON = 1.0

GONE = "the container is gone: it was removed from the engine"


@dataclass(frozen=True)
class Final:
    """How a container ended. `exit_status` None: it cannot be known any more."""

    exit_status: int | None
    reason: str

    def __str__(self) -> str:
        status = "" if self.exit_status is None else f"exit status {self.exit_status}"
        return "; ".join(part for part in (status, self.reason) if part) or "it is gone"


class Torn(EngineGone):
    """A connection broke while input was written: some of it may have arrived."""


@dataclass
class About:
    """What was asked for, kept as labels on the container itself."""

    name: str
    description: str = ""
    agent: str = ""
    environment: dict[str, str] = field(default_factory=dict)  #: secrets masked
    volumes: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    timeout: int = 0  #: milliseconds; 0 for a long-lived one


class Container:
    """A container that this process follows. Made by the provider; `begin` starts following."""

    def __init__(self, engine: Engine, id: str, session: str, key: str, about: About) -> None:
        self.engine = engine
        self.id = id
        self.session = session
        self.key = key
        self.about = about
        self.status: Status = "initializing"
        self.final: Final | None = None
        self.output = {1: Buffer(), 2: Buffer()}
        self.tape = Tape(KEEP)  #: both together, of a short-lived one, which nobody reads on the way
        self.secrets: list[str] = []  #: texts of its environment that are not to be shown
        self.said: dict[str, str] = {}  #: by agent: the action that was told the final state in full
        self.stopping = ""  #: why we stop it, for the final state
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        self._attached: Stream | None = None
        self._paused = False
        self._writing = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None

    # -- following -------------------------------------------------------------------------

    async def begin(self, state: State) -> None:
        """Attach to it, start it when it was only created, and follow it from now on.

        Raises `EngineError` when it cannot be started; it is not followed then.
        """
        if state.status == "created":
            self._attached = await self.engine.attach(self.id, stdin=not self.about.timeout)
            try:
                await self.engine.start(self.id)
            except BaseException:
                self._attached.close()
                raise
        self._paused = state.status == "paused"
        self.status = "running"
        self._following = asyncio.create_task(self._follow(), name=f"container {self.about.name}")

    async def _follow(self) -> None:
        broken = True  # whether something may have come that we did not receive
        try:
            if (attached := self._attached) is not None:
                with contextlib.suppress(EngineGone):
                    await self._receive(attached)
                    broken = False
                self._let_go(attached)
            while self.final is None:
                try:
                    if broken:
                        await self._catch_up(follow=True)
                    else:
                        async with asyncio.timeout(SOON):
                            await self.engine.wait(self.id)
                    state = await self.engine.inspect(self.id)
                    if not state.running:
                        if state.exit_status is not None:
                            # a cut connection looks like an ended one, and following may stop
                            # short of the last words; now the log is whole
                            await self._catch_up(follow=False)
                        self._end(Final(state.exit_status, self._reason(state)))
                except TimeoutError:  # it goes on: then the connection had been cut
                    broken = True
                except EngineGone:
                    broken = True
                    await until_back(self.engine)
        except Missing:
            self._end(Final(None, GONE))
        except EngineError as error:
            self._end(Final(None, str(error)))

    def _let_go(self, attached: Stream) -> None:
        """A connection has ended; the next input makes a new one."""
        attached.close()
        if self._attached is attached:
            self._attached = None

    async def _catch_up(self, *, follow: bool) -> None:
        """Receive from the log what is new in it; with `follow` until the container ends."""
        log = await self.engine.logs(self.id, follow=follow)
        try:
            passed = {1: 0, 2: 0}
            async for stream, data in output_of(log):
                known = min(max(0, self.output[stream].total - passed[stream]), len(data))
                passed[stream] += len(data)
                await self._take_in(stream, data[known:])
        finally:
            log.close()

    async def _receive(self, stream: Stream) -> None:
        async for number, data in output_of(stream):
            await self._take_in(number, data)

    async def _take_in(self, number: int, data: bytes) -> None:
        if not data:
            return
        if self.about.timeout:
            self.output[number].total += len(data)
            self.tape.add(data)
            return
        self.output[number].add(data)
        self._news.set()
        if not self._paused and len(self.output[number]) > FULL:
            self._paused = True
            try:
                await self.engine.pause(self.id)
            except BaseException:
                self._paused = False
                raise

    def _reason(self, state: State) -> str:
        if state.out_of_memory:
            return "stopped: it used more memory than it may"
        if state.exit_status is None:  # it is being removed
            return GONE
        return self.stopping or state.error

    def _end(self, final: Final) -> None:
        self.final = final
        self.status = "finished"
        self._ended.set()
        self._news.set()

    def shown(self, text: str) -> str:
        """`text` as it can be stored and shown, without the secrets of its environment."""
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return clean_text(text)

    # -- what an agent does with it -----------------------------------------------------------

    async def read(self, number: int, most: int, patience: float, keep: Keep | None = None) -> str:
        """At most `most` bytes of a stream; waits up to `patience` seconds for the first.

        `keep` is called with the text and its bytes before they are taken; when it raises, they stay.
        """
        buffer = self.output[number]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not len(buffer) and self.final is None:
                    self._news.clear()
                    await self._news.wait()
        text, count = buffer.peek(most, ended=self.final is not None)
        if keep is not None:
            keep(text, count)
        buffer.drop(count)
        await self._go_on()
        return text

    async def _go_on(self) -> None:
        """Let it write again. Where the engine does not answer now, the next reading tries again: what
        was read stays read."""
        if self._paused and all(len(buffer) <= FULL // 2 for buffer in self.output.values()):
            with contextlib.suppress(EngineError):
                await self.engine.unpause(self.id)
                self._paused = False

    async def write(self, data: bytes) -> None:
        """Hand input to its program. `CapabilityError` when it takes none, `EngineGone` when it got
        nothing of it, `Torn` when it may have got some."""
        if self.about.timeout:
            raise CapabilityError(f"{self.about.name} was started with a timeout, so it takes no input.")
        async with self._writing:  # or two would connect at once
            if self._attached is None or self._attached.writer.is_closing():
                self._attached = await self.engine.attach(self.id, stdin=True, output=False)
            attached = self._attached
            try:
                await attached.send(data)
            except EngineGone as error:
                self._let_go(attached)
                raise Torn(str(error)) from None

    async def ended(self, patience: float | None) -> Final | None:
        """Its final state, when it is there within so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._ended.wait()
        return self.final

    async def stop(self, why: str, *, grace: int = 2) -> Final:
        """End it: asked first, killed after `grace` seconds. Its final state; `why` stands in it
        unless it had ended before. Raises `EngineGone`."""
        if self.final is None:
            try:
                with contextlib.suppress(Missing):  # the follower finds that out as well
                    if (await self.engine.inspect(self.id)).running:
                        self.stopping = why
                    if self._paused:
                        await self.engine.unpause(self.id)
                        self._paused = False
                    await self.engine.stop(self.id, grace)
            except EngineGone:
                self.stopping = ""
                raise
            await self._ended.wait()
        assert self.final is not None
        return self.final

    async def end(self, why: str, *, grace: int = 1) -> Final:
        """The same for certain: while the engine does not answer, it is waited for."""
        while self.final is None:
            try:
                await self.stop(why, grace=grace)
            except EngineGone:
                await until_back(self.engine)
        return self.final

    async def close(self) -> None:
        """Follow it no longer; the container itself is left as it is. Who waits for it is told that
        it is gone."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._attached is not None:
            self._attached.close()
        if self.final is None:
            self._end(Final(None, GONE))
