"""The book over the journal of `machine`: read at the start, followed, and written to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from textor.broker.book import AREAS, Book
from textor.errors import JournalError
from textor.events import Event, Stored, new_id
from textor.journal.port import MACHINE, Journal

log = logging.getLogger("textor.broker")


class Store:
    """Keeps a `Book` up to date. `changed` is called when what can be called has changed."""

    def __init__(
        self, journal: Journal, book: Book, changed: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._journal = journal
        self.book = book
        self.changed = changed
        self._seq = 0
        self._following: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._made = False  #: the session of the machine exists
        self.version = 0  #: grows with every event that was taken in

    async def load(self) -> None:
        """Take in all that the journal holds by now."""
        async with self._lock:
            await self._load()

    async def _load(self) -> None:
        touched = False
        async for event in self._journal.read(MACHINE, self._seq):
            touched = self._take(event) or touched
        if touched and self.changed is not None:
            await self.changed()

    def _take(self, event: Event) -> bool:
        self._seq = event.seq
        body = event.body
        if not isinstance(body, Stored) or body.area not in AREAS:
            return False
        self.version += 1
        return self.book.apply(body)

    async def write(self, *decisions: Callable[[], Sequence[Stored]]) -> None:
        """Append what each of `decisions` finds right, all or nothing.

        Each sees everything that was appended before, by whatever process, and what those before
        it decided. Raises what they raise; then nothing is written.
        """
        async with self._lock:
            await self._load()
            events: list[Event] = []
            try:
                for number, decide in enumerate(decisions, 1):
                    bodies = decide()
                    if number < len(decisions):
                        for body in bodies:
                            self.book.apply(body)
                    events += [Event(body, new_id(), time.time()) for body in bodies]
                appended = await self._append(events) if events else []
            except BaseException:
                if len(decisions) > 1:  # the book is ahead of the journal, which is the truth
                    self.book.clear()
                    self._seq = 0
                    await self._load()
                raise
            await self._take_all(appended)

    async def _append(self, events: list[Event]) -> list[Event]:
        if not self._made and await self._journal.session(MACHINE) is None:
            try:
                await self._journal.create(MACHINE, events)
                return []  # they are read
            except JournalError:  # another process made it in the same moment
                if await self._journal.session(MACHINE) is None:
                    raise
        self._made = True
        return await self._journal.append(MACHINE, events, epoch=None)

    async def _take_all(self, appended: list[Event]) -> None:
        """Take in what was appended; from the journal where others appended in between."""
        if not appended or appended[0].seq != self._seq + 1:
            await self._load()
            return
        touched = [self._take(event) for event in appended]
        if any(touched) and self.changed is not None:
            await self.changed()

    def follow(self) -> None:
        """Take in from now on what other processes append."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow(), name="apps")

    async def _follow(self) -> None:
        try:
            async for _ in self._journal.follow(MACHINE, self._seq):
                await self.load()
        except JournalError as error:
            log.warning("what other processes register is no longer seen: %s", error)

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
            self._following = None
