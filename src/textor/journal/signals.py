"""Who waits for news of a journal, and how they are told.

A signal says only "look again", it carries no event: what a follower yields comes from the journal
in the journal's order, so a signal that is lost, doubled or late can neither lose nor double one.
All of this lives in the event loop; journals with threads come here by `call_soon_threadsafe`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakSet

from textor.events import Event

Touched = Mapping[str, bool]  #: session -> whether an input was among what was appended


class Changes(AsyncIterator[str]):
    """Session ids with new inputs since this was made. Bounded: an id that waits to be taken
    is not queued again."""

    def __init__(self) -> None:
        self._pending: dict[str, None] = {}
        self._news = asyncio.Event()
        self._closed = False

    def add(self, session: str) -> None:
        self._pending[session] = None
        self._news.set()

    def close(self) -> None:
        self._closed = True
        self._news.set()

    async def __anext__(self) -> str:
        while not self._pending:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        session = next(iter(self._pending))
        del self._pending[session]
        return session


class Signals:
    """The followers and watchers of one journal. `on_wait` is called when somebody begins to wait."""

    def __init__(self, on_wait: Callable[[], None] = lambda: None) -> None:
        self._on_wait = on_wait
        self._followers: dict[str, set[asyncio.Event]] = {}
        # Weak, because an iterator has no moment at which its user must say that he is done.
        self._watchers: WeakSet[Changes] = WeakSet()
        self.closed = False

    @property
    def watched(self) -> bool:
        """Whether anybody waits. Safe to read from any thread."""
        return bool(self._followers) or bool(self._watchers)

    def changes(self) -> Changes:
        watcher = Changes()
        self._watchers.add(watcher)
        if self.closed:
            watcher.close()
        else:
            self._on_wait()
        return watcher

    @contextmanager
    def listen(self, session: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something was appended to the session."""
        news = asyncio.Event()
        self._followers.setdefault(session, set()).add(news)
        self._on_wait()
        try:
            yield news
        finally:
            waiting = self._followers[session]
            waiting.discard(news)
            if not waiting:
                del self._followers[session]

    def tell(self, touched: Touched) -> None:
        for session, is_input in touched.items():
            for news in self._followers.get(session, ()):
                news.set()
            if is_input:
                for watcher in self._watchers:
                    watcher.add(session)

    def close(self) -> None:
        """Every follower and watcher comes to its end."""
        self.closed = True
        for waiting in self._followers.values():
            for news in waiting:
                news.set()
        for watcher in self._watchers:
            watcher.close()


async def follow(
    read: Callable[[str, int], AsyncIterator[Event]], signals: Signals, session: str, after: int
) -> AsyncIterator[Event]:
    """The events above `after`, then all to come, until the journal is closed."""
    with signals.listen(session) as news:
        while not signals.closed:
            # Cleared before the look: what is appended during it sets the event again.
            news.clear()
            async for event in read(session, after):
                after = event.seq
                yield event
            await news.wait()
