"""What the SQLite journal reads and writes, as functions over a connection.

Those that write run inside a transaction of the writer. Each returns its result and what it
touched (`Done`), so that news is given only of what was committed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from textor.errors import JournalError
from textor.events import Event
from textor.journal import packing
from textor.journal.blobs import FileBlobs
from textor.journal.packing import Packed
from textor.journal.port import MACHINE, SessionInfo, Status
from textor.journal.signals import Touched
from textor.journal.writer import Done

#: Events with more bytes of JSON lie in the blob folder: a database of small rows stays fast.
BIG_DATA = 64 * 1024

_COLUMNS = "seq, id, kind, version, time, data, blob"
_INFO = "select id, created, updated, head, status, title from session"
_NOTHING: Touched = {}

Row = tuple[int, str, str, int, float, bytes | None, str | None]


def create(
    connection: sqlite3.Connection, blobs: FileBlobs, session: str, title: str, rows: Sequence[Packed]
) -> Done[int]:
    created, updated = rows[0].time, max(row.time for row in rows)
    made = connection.execute(
        "insert into session values (?, ?, ?, ?, 0, 'runnable', ?) on conflict do nothing",
        (session, created, updated, len(rows), title),
    )
    if made.rowcount == 0:
        raise packing.session_exists(session)
    for seq, row in enumerate(rows, 1):
        _insert(connection, blobs, session, seq, row, is_input=True)
    return len(rows), {session: True}


def append(
    connection: sqlite3.Connection, blobs: FileBlobs, session: str, rows: Sequence[Packed], epoch: int
) -> Done[int]:
    """Append as the host. Returns the number before the first one. The fence and the new head
    are one statement."""
    updated = max((row.time for row in rows), default=0.0)
    found = connection.execute(
        "update session set head = head + ?, updated = max(updated, ?)"
        " where id = ? and epoch = ? returning head",
        (len(rows), updated, session, epoch),
    ).fetchone()
    if found is None:
        _head(connection, session)
        raise packing.fenced(session, epoch)
    before: int = found[0] - len(rows)
    for seq, row in enumerate(rows, before + 1):
        _insert(connection, blobs, session, seq, row, is_input=False)
    return before, {session: False} if rows else _NOTHING


def append_inputs(
    connection: sqlite3.Connection, blobs: FileBlobs, session: str, rows: Sequence[Packed]
) -> Done[list[int | Row]]:
    """Append as a face. Returns for each event its new number, or the row that was there."""
    before = head = _head(connection, session)
    result: list[int | Row] = []
    for row in rows:
        stored: Row | None = connection.execute(
            f"select {_COLUMNS} from event where session = ? and id = ?", (session, row.id)
        ).fetchone()
        if stored is None:
            head += 1
            _insert(connection, blobs, session, head, row, is_input=True)
        result.append(stored or head)
    if head == before:
        return result, _NOTHING
    connection.execute(
        "update session set head = ?, updated = max(updated, ?), status = 'runnable' where id = ?",
        (head, max(row.time for row in rows), session),
    )
    return result, {session: True}


def claim(connection: sqlite3.Connection, session: str) -> Done[int]:
    found = connection.execute(
        "update session set epoch = epoch + 1 where id = ? returning epoch", (session,)
    ).fetchone()
    if found is None:
        raise packing.no_session(session)
    return int(found[0]), _NOTHING


def set_status(
    connection: sqlite3.Connection, session: str, status: Status, epoch: int, head: int
) -> Done[bool]:
    changed = connection.execute(
        "update session set status = ? where id = ? and epoch = ? and head = ?",
        (status, session, epoch, head),
    )
    return changed.rowcount == 1, _NOTHING


def select(connection: sqlite3.Connection, session: str, after: int, count: int) -> list[Row]:
    """At most `count` rows above `after`, in order."""
    return connection.execute(
        f"select {_COLUMNS} from event where session = ? and seq > ? order by seq limit ?",
        (session, after, count),
    ).fetchall()


def info(connection: sqlite3.Connection, session: str) -> SessionInfo | None:
    row = connection.execute(f"{_INFO} where id = ?", (session,)).fetchone()
    return SessionInfo(*row) if row is not None else None


def infos(connection: sqlite3.Connection) -> list[SessionInfo]:
    rows = connection.execute(f"{_INFO} where id <> ? order by updated desc, id", (MACHINE,))
    return [SessionInfo(*row) for row in rows]


def load(blobs: FileBlobs, session: str, row: Row) -> Event:
    """The event of a row, its content fetched from the blob folder where it lies there."""
    seq, id, kind, version, time, data, blob = row
    if data is None:
        assert blob is not None
        try:
            data = blobs.get(blob)
        except KeyError:
            raise JournalError(
                f"The content of event {seq} of session {session} ({kind}) is missing: {blob} in"
                f" {blobs.folder}.",
                "Restore that folder together with the journal beside it.",
            ) from None
    return packing.unpack(session, seq, id, kind, version, time, data)


def _head(connection: sqlite3.Connection, session: str) -> int:
    found = connection.execute("select head from session where id = ?", (session,)).fetchone()
    if found is None:
        raise packing.no_session(session)
    return int(found[0])


def _insert(
    connection: sqlite3.Connection, blobs: FileBlobs, session: str, seq: int, row: Packed, *, is_input: bool
) -> None:
    data: bytes | None = row.data
    blob: str | None = None
    if len(row.data) > BIG_DATA:
        data, blob = None, blobs.put(row.data)
    try:
        connection.execute(
            "insert into event (session, seq, id, kind, version, time, data, blob, input)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (session, seq, row.id, row.kind, row.version, row.time, data, blob, is_input),
        )
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE":
            raise packing.doubled(session, row.id) from error
        raise
