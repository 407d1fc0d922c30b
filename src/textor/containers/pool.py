"""A warm pool: containers that have started already and wait for the one command they will run.

Starting a container costs some 300 ms, handing a command to one that waits some 5. Each is used
once and removed, so nothing of one command is there for the next; the next one is started while
the command of this one runs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from textor.containers.client import EngineError, Stream
from textor.containers.engine import Engine

#: Workspaces that have something warm at a time, and how long it waits unused (seconds).
PLACES = 4
IDLE = 300.0

K = TypeVar("K", bound=Hashable)


@dataclass
class Warm:
    """A container that waits for its command on `stream`."""

    id: str
    stream: Stream

    @property
    def fresh(self) -> bool:
        """Whether it is still there: its connection ends when it does."""
        return not self.stream.reader.at_eof()


class Pool(Generic[K]):
    """`make` starts a container for a key; one for each key is kept warm."""

    def __init__(self, engine: Engine, make: Callable[[K], Awaitable[Warm]], *, idle: float = IDLE) -> None:
        self._engine = engine
        self._make = make
        self._idle = idle
        self._warm: OrderedDict[K, asyncio.Task[Warm]] = OrderedDict()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def take(self, key: K) -> Warm:
        """A container for `key`, warm if there is one; the next is being made from now on.

        Raises `EngineError` when none can be made.
        """
        warm = await self._ready(key)
        if warm is None:
            warm = await self._make(key)
        self._prepare(key)
        return warm

    async def _ready(self, key: K) -> Warm | None:
        task = self._forget(key)
        if task is None:
            return None
        try:
            warm = await asyncio.shield(task)
        except EngineError:
            return None  # then one is made now, and its fault is told
        except asyncio.CancelledError:
            self._remove(task)
            raise
        if warm.fresh:
            return warm
        self.leave(warm)
        return None

    def _prepare(self, key: K) -> None:
        if key not in self._warm:
            self._warm[key] = asyncio.ensure_future(self._make(key))
            # so that a fault that nobody fetches is not reported as forgotten
            self._warm[key].add_done_callback(lambda task: task.cancelled() or task.exception())
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(self._idle, self._let_go, key)
        self._warm.move_to_end(key)
        while len(self._warm) > PLACES:
            self._let_go(next(iter(self._warm)))

    def _forget(self, key: K) -> asyncio.Task[Warm] | None:
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        return self._warm.pop(key, None)

    def _let_go(self, key: K) -> None:
        if (task := self._forget(key)) is not None:
            self._remove(task)

    def _remove(self, task: asyncio.Task[Warm]) -> None:
        async def remove() -> None:
            with contextlib.suppress(EngineError):
                self.leave(await task)

        self._later(remove())

    def leave(self, warm: Warm) -> None:
        """Remove a container in the background; its command is over."""
        warm.stream.close()

        async def remove() -> None:
            with contextlib.suppress(EngineError):  # the engine is gone: reaped at the next start
                await self._engine.remove(warm.id)

        self._later(remove())

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Remove all that is warm, and return when nothing is left."""
        for key in list(self._warm):
            self._let_go(key)
        while self._leaving:
            await asyncio.gather(*self._leaving, return_exceptions=True)
