"""What is shown and not kept: pieces of text as they arrive, progress, waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec


class Delta(msgspec.Struct, frozen=True):
    """One ephemeral piece. `kind`: text, reasoning, action, argument, progress, output, fault."""

    agent: str
    kind: str
    text: str
    action: str = ""


class Hub:
    """Hands deltas to whoever watches a session. A slow watcher loses deltas, never events."""

    def __init__(self, size: int = 2000) -> None:
        self._size = size
        self._watchers: dict[str, set[asyncio.Queue[Delta]]] = {}

    def send(self, session: str, delta: Delta) -> None:
        for queue in self._watchers.get(session, ()):
            if not queue.full():
                queue.put_nowait(delta)

    def subscribe(self, session: str) -> asyncio.Queue[Delta]:
        """A queue that receives from now on; give it back with `unsubscribe`."""
        queue: asyncio.Queue[Delta] = asyncio.Queue(self._size)
        self._watchers.setdefault(session, set()).add(queue)
        return queue

    def unsubscribe(self, session: str, queue: asyncio.Queue[Delta]) -> None:
        watchers = self._watchers.get(session, set())
        watchers.discard(queue)
        if not watchers:
            self._watchers.pop(session, None)

    async def watch(self, session: str) -> AsyncGenerator[Delta, None]:
        """The deltas of a session from now on, for ever."""
        queue = self.subscribe(session)
        try:
            while True:
                yield await queue.get()
        finally:
            self.unsubscribe(session, queue)
