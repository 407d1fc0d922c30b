"""Folded states kept beside the journal, so that a long session wakes quickly.

A cache: it may be deleted at any time, and one that other code made is not read.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from textor import actions, events, loops, messages, values
from textor.journal.port import Journal
from textor.journal.snapshots import Snapshots
from textor.journal.sqlite import SqliteJournal
from textor.kernel import state
from textor.kernel.state import State
from textor.values import sha256_of

#: So many events after the last snapshot make a new one.
EVERY = 1_000


class Folds:
    """States by session. Journals that keep nothing have none."""

    def __init__(self, journal: Journal) -> None:
        self._snapshots = Snapshots(journal, code()) if isinstance(journal, SqliteJournal) else None
        self._taken: dict[str, int] = {}

    async def state(self, session: str) -> State:
        """The last state that was kept; the empty one when there is none that can be read."""
        found = await self._snapshots.latest(session) if self._snapshots else None
        if found is None:
            return State()
        self._taken[session] = found[0]
        try:
            return msgspec.msgpack.decode(found[1], type=State)
        except msgspec.MsgspecError:
            return State()

    async def keep(self, session: str, state: State) -> None:
        """Keep a state, when enough has happened since the last one."""
        if self._snapshots and state.seq - self._taken.get(session, 0) >= EVERY:
            await self._snapshots.put(session, state.seq, msgspec.msgpack.encode(state))
            self._taken[session] = state.seq


@cache
def code() -> str:
    """A digest of the code that a state depends on."""
    modules = (actions, events, loops, messages, state, values)
    return sha256_of(b"".join(Path(str(m.__file__)).read_bytes() for m in modules))[:16]
