"""The state of no session (apps, modules, "always" answers): a fold over the journal of `machine`."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from textor.errors import JournalError
from textor.events import Event, Stored
from textor.journal.port import MACHINE, Journal
from textor.values import Json


class MachineState:
    """What is stored, by (area, key). `read` brings it up to now, `follow` keeps it there. `areas`
    are those that are taken in, by default all; apps alone may store thousands of things."""

    def __init__(self, journal: Journal, areas: Collection[str] = ()) -> None:
        self._areas = areas
        self.stored: dict[tuple[str, str], Json] = {}
        self._journal = journal
        self._seq = 0
        self._following: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Take in all that was appended until now, by whatever process."""
        async for event in self._journal.read(MACHINE, self._seq):
            self._take(event)

    def follow(self) -> None:
        """From now on take in what anybody appends, as it comes, until the journal is closed."""
        self._following = asyncio.create_task(self._follow(), name="state of the machine")

    async def _follow(self) -> None:
        async for event in self._journal.follow(MACHINE, self._seq):
            self._take(event)

    def _take(self, event: Event) -> None:
        if event.seq <= self._seq:
            return
        self._seq = event.seq
        body = event.body
        if not isinstance(body, Stored) or (self._areas and body.area not in self._areas):
            return
        if body.value is None:
            self.stored.pop((body.area, body.key), None)
        else:
            self.stored[body.area, body.key] = body.value


async def store(journal: Journal, event: Event) -> None:
    """Append to the journal of `machine`, which is made when there is none yet."""
    if await journal.session(MACHINE) is None:
        try:
            await journal.create(MACHINE, [event])
            return
        except JournalError:  # another process made it in the same moment
            if await journal.session(MACHINE) is None:
                raise
    await journal.append(MACHINE, [event], epoch=None)
