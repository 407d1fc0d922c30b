"""What is shown and not kept: pieces of text as they arrive, progress, waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from textor.secrets import Handed


class Delta(msgspec.Struct, frozen=True):
    """One ephemeral piece. `kind`: text, reasoning, action, argument, progress, output, fault."""

    agent: str
    kind: str
    text: str
    action: str = ""


class Hub:
    """Hands deltas to whoever watches a session. A slow watcher loses deltas, never events.

    What a generation has said so far is given to a watcher that comes in the middle of it, and why a
    session was given up to one that comes after it.
    """

    def __init__(self, size: int = 2000) -> None:
        self._size = size
        self._watchers: dict[str, set[asyncio.Queue[Delta]]] = {}
        self.secrets = Handed()  #: answers that are never kept, by key, until they are fetched
        self._said: dict[str, dict[str, list[Delta]]] = {}
        self._faults: dict[str, Delta] = {}  # of sessions that stand still

    def fresh(self, session: str, agent: str) -> None:
        """A generation of this agent begins, begins again, or is over."""
        agents = self._said.get(session, {})
        agents.pop(agent, None)
        if not agents:
            self._said.pop(session, None)

    def send(self, session: str, delta: Delta) -> None:
        if delta.kind in ("text", "reasoning"):
            self._said.setdefault(session, {}).setdefault(delta.agent, []).append(delta)
        elif delta.kind == "fault":
            self._faults[session] = delta
        for queue in self._watchers.get(session, ()):
            if not queue.full():
                queue.put_nowait(delta)

    def well(self, session: str) -> None:
        """A session that was given up is tried again."""
        self._faults.pop(session, None)

    def subscribe(self, session: str) -> asyncio.Queue[Delta]:
        """A queue that receives from now on; give it back with `unsubscribe`."""
        queue: asyncio.Queue[Delta] = asyncio.Queue(self._size)
        self._watchers.setdefault(session, set()).add(queue)
        if fault := self._faults.get(session):
            queue.put_nowait(fault)
        for said in self._said.get(session, {}).values():
            for kind in ("reasoning", "text"):
                if text := "".join(delta.text for delta in said if delta.kind == kind):
                    queue.put_nowait(Delta(said[0].agent, kind, text))
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
