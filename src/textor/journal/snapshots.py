"""Snapshots: a cache of folded states, so that a long session wakes without its whole past.

Only the events are true. The table may be emptied or dropped at any time, and a snapshot is used
only by the code that made it: a fold that changed gives itself another `code` and begins anew.
"""

from __future__ import annotations

import sqlite3

from textor.errors import JournalError
from textor.journal.sqlite import SqliteJournal
from textor.journal.writer import Done

_TABLE = """
create table if not exists snapshot (
    session text primary key, code text not null, seq integer not null, data blob not null
) strict"""


class Snapshots:
    """The last snapshot of each session, kept in the journal's file. `code` is the version of the
    fold and of the form of `data`."""

    def __init__(self, journal: SqliteJournal, code: str) -> None:
        self._journal = journal
        self._code = code

    async def put(self, session: str, seq: int, data: bytes) -> None:
        """Keep the state after event `seq`; an older one of the same code does not replace a newer."""

        def work(connection: sqlite3.Connection) -> Done[None]:
            connection.execute(_TABLE)
            connection.execute(
                "insert into snapshot values (?, ?, ?, ?) on conflict do update"
                " set code = excluded.code, seq = excluded.seq, data = excluded.data"
                " where code <> excluded.code or seq < excluded.seq",
                (session, self._code, seq, data),
            )
            return None, {}

        await self._journal.writer.do(work)

    async def latest(self, session: str) -> tuple[int, bytes] | None:
        """(seq, data) of the snapshot, None where there is none that fits this code and journal."""

        def reading(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
            found = connection.execute(
                "select seq, data from snapshot join session on session.id = snapshot.session"
                " where session = ? and code = ? and seq <= head",
                (session, self._code),
            ).fetchone()
            return (found[0], found[1]) if found is not None else None

        try:
            return self._journal.query(reading)
        except JournalError:
            return None  # no such table, or a damaged one: a cache that cannot be read is empty
