"""The tables of the SQLite journal and the two kinds of connections to them."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from textor.errors import JournalError

APPLICATION = 0x54585452  #: "TXTR": how a journal is told from any other database
VERSION = 1

#: Milliseconds that SQLite waits for programs that do not know our gate.
BUSY = 30_000

#: `event.number` orders the appends of all sessions, so that "what is new since" is one short
#: range. `data` is NULL where the content is the blob with that hash. `input` marks what was
#: appended without an epoch. A number is never used twice: nothing is ever deleted.
_TABLES = """
create table session (
    id text primary key,
    created real not null,
    updated real not null,
    head integer not null,
    epoch integer not null,
    status text not null check (status in ('idle', 'runnable')),
    title text not null
) strict, without rowid;

create table event (
    number integer primary key,
    session text not null,
    seq integer not null,
    id text not null,
    kind text not null,
    version integer not null,
    time real not null,
    data blob,
    blob text,
    input integer not null,
    unique (session, seq),
    unique (session, id),
    check ((data is null) <> (blob is null))
) strict;
"""


def open_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes; makes the journal where there is none.

    Call it inside the gate: SQLite does not wait for others when it switches to WAL.
    Raises `JournalError` for what is no journal, and what SQLite and the system raise.
    """
    _touch(path)
    connection = _connect(path)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that only reads, and therefore never checkpoints."""
    connection = _connect(path)
    connection.execute("pragma query_only = 1")
    return connection


def _touch(path: Path) -> None:
    """SQLite gives its side files the mode of the database: made here, for the owner only."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=BUSY / 1000,
        isolation_level=None,  # no transaction begins behind our back
        check_same_thread=False,  # opened here, then used by one thread only
    )
    connection.execute("pragma mmap_size = 0")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("pragma application_id").fetchone()
    (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
    if application != APPLICATION and (application or tables):
        raise JournalError(
            f"{path} is a database of another program, not a journal.", "Name another file for the journal."
        )
    (version,) = connection.execute("pragma user_version").fetchone()
    if version > VERSION:
        raise JournalError(
            f"The journal {path} has form {version}; this Textor knows forms up to {VERSION}.",
            "Use a newer Textor, or another file.",
        )
    (mode,) = connection.execute("pragma journal_mode = wal").fetchone()
    if mode != "wal":
        raise JournalError(
            f"The journal {path} cannot use a write-ahead log on this file system.",
            "Keep it on a local disk.",
        )
    connection.execute("pragma synchronous = full")
    if application == 0:
        connection.executescript(
            f"begin immediate; {_TABLES}"
            f"pragma application_id = {APPLICATION}; pragma user_version = {VERSION}; commit;"
        )
    if sqlite3.sqlite_version_info < (3, 51, 3):
        logging.getLogger("textor.journal").debug(
            "SQLite %s has the WAL-reset bug; writes and checkpoints go through one gate, which avoids it.",
            sqlite3.sqlite_version,
        )
