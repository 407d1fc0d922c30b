"""The port of journals: an append-only list of events per session.

Real implementations: `MemoryJournal`, `SqliteJournal`; both pass `tests/journal/conformance.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

import msgspec

from textor.events import Event
from textor.values import Blobs

Status = Literal["idle", "runnable"]

MACHINE = "machine"  #: the reserved session that holds the state of no session


class SessionInfo(msgspec.Struct, frozen=True):
    """One row of the list of sessions. `head` is the number of its last event."""

    id: str
    created: float
    updated: float
    head: int
    status: Status
    title: str = ""


class Journal(Protocol):
    """Where events are kept. An event is durable when `append` returns.

    Raises `JournalError` when it cannot be written (nothing of the batch is then kept) and
    `Fenced` when `epoch` is no longer the session's.
    """

    @property
    def blobs(self) -> Blobs: ...

    async def create(self, session: str, events: Sequence[Event]) -> int:
        """Make a session with its first events and return how many. It is "runnable" then, and
        `changes` names it. Raises `JournalError` if it exists."""
        ...

    async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
        """Append a batch, whole or not at all, and return the events with their numbers.

        The host appends under its `epoch`. An input from a face has `epoch` None; an event whose
        id the session already holds is not appended again (the stored one is returned), and a
        new input turns the session "runnable" in the same transaction. The host's ids are new
        ones: a known one is a `JournalError`. When the waiting is cancelled, the batch may still
        be kept: read before going on.
        """
        ...

    def read(self, session: str, after: int = 0) -> AsyncIterator[Event]:
        """The events numbered above `after`, in order, to the present end."""
        ...

    def follow(self, session: str, after: int = 0) -> AsyncIterator[Event]:
        """As `read`, then every event to come, for ever; sees appends of other processes."""
        ...

    async def claim(self, session: str) -> int:
        """Take the session over: a new epoch, which fences the former holder."""
        ...

    async def set_status(self, session: str, status: Status, *, epoch: int, head: int) -> bool:
        """Change the status if epoch and head are still these; False if not."""
        ...

    async def session(self, session: str) -> SessionInfo | None: ...

    async def sessions(self) -> list[SessionInfo]:
        """All sessions but `machine`, the last used first."""
        ...

    def changes(self) -> AsyncIterator[str]:
        """Session ids in which somebody appended an input, of this process or another, from the
        moment of this call; one that waits to be taken comes once."""
        ...

    async def close(self) -> None: ...
