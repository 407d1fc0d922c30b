"""Work that must not be lost when the engine is away: removing and ending what nobody holds any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from textor.containers.client import EngineError, EngineGone
from textor.containers.engine import Engine, until_back


class Leaving:
    """Containers on their way out. What is given here is done in the background."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tasks: set[asyncio.Task[None]] = set()

    def remove(self, id: str) -> None:
        """Remove a container by its id or name, as soon as the engine answers."""
        self.do(partial(self._remove, id))

    def do(self, work: Callable[[], Awaitable[object]]) -> None:
        """Carry something out that waits for the engine by itself."""
        task = asyncio.create_task(self._quietly(work), name="leaving")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what is still waiting: what is left then is reaped at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _remove(self, id: str) -> None:
        while True:
            try:
                return await self._engine.remove(id)
            except EngineGone:
                await until_back(self._engine)

    async def _quietly(self, work: Callable[[], Awaitable[object]]) -> None:
        with contextlib.suppress(EngineError):  # refused for good: reaped at the next start
            await work()
