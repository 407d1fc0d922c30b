"""The journal on SQLite: one file, one writing thread, readers that never wait for it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from textor.events import Event
from textor.journal import packing, records
from textor.journal.blobs import FileBlobs
from textor.journal.faults import explain
from textor.journal.lock import Gate
from textor.journal.packing import pack
from textor.journal.port import SessionInfo, Status
from textor.journal.schema import open_reader, open_writer
from textor.journal.signals import Signals, follow
from textor.journal.writer import Writer

T = TypeVar("T")

#: Rows fetched at once: about a millisecond of the event loop, then others have their turn.
PAGE = 256


class SqliteJournal:
    """See `textor.journal.port.Journal`. Several processes may have the same file open.

    Beside `path` lie `path-wal` and `path-shm` (SQLite's), `path-lock` (one writer at a time),
    `path-blobs/` (contents above 64 kB and the values' blobs). Opening makes what is missing,
    readable for the owner only. Used from one event loop. Raises `JournalError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._signals = Signals(lambda: self.writer.look())
        self._blobs = FileBlobs(path.with_name(path.name + "-blobs"))
        with ExitStack() as undo:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                gate = undo.enter_context(closing(Gate(path.with_name(path.name + "-lock"))))
                with gate:
                    connection = undo.enter_context(closing(open_writer(path)))
                    self._reader = undo.enter_context(closing(open_reader(path)))
                #: For what else is kept in the same file, such as snapshots.
                self.writer = Writer(connection, path, gate, self._signals)
            except (sqlite3.Error, OSError) as error:
                raise explain(path, error) from error
            undo.pop_all()

    @property
    def blobs(self) -> FileBlobs:
        return self._blobs

    async def create(self, session: str, events: Sequence[Event]) -> int:
        if not events:
            raise packing.no_events(session)
        rows = [pack(e) for e in events]
        title = packing.title_of(events)
        return await self.writer.do(
            partial(records.create, blobs=self._blobs, session=session, title=title, rows=rows)
        )

    async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
        rows = [pack(e) for e in events]
        if epoch is not None:
            before = await self.writer.do(
                partial(records.append, blobs=self._blobs, session=session, rows=rows, epoch=epoch)
            )
            return packing.numbered(events, before + 1)
        kept = await self.writer.do(
            partial(records.append_inputs, blobs=self._blobs, session=session, rows=rows)
        )
        return [
            Event(event.body, event.id, event.time, found)
            if isinstance(found, int)
            else records.load(self._blobs, session, found)
            for event, found in zip(events, kept, strict=True)
        ]

    async def read(self, session: str, after: int = 0) -> AsyncIterator[Event]:
        while True:
            rows = self.query(partial(records.select, session=session, after=after, count=PAGE))
            for row in rows:
                yield records.load(self._blobs, session, row)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]
            await asyncio.sleep(0)

    def follow(self, session: str, after: int = 0) -> AsyncIterator[Event]:
        return follow(self.read, self._signals, session, after)

    async def claim(self, session: str) -> int:
        return await self.writer.do(partial(records.claim, session=session))

    async def set_status(self, session: str, status: Status, *, epoch: int, head: int) -> bool:
        return await self.writer.do(
            partial(records.set_status, session=session, status=status, epoch=epoch, head=head)
        )

    async def session(self, session: str) -> SessionInfo | None:
        return self.query(partial(records.info, session=session))

    async def sessions(self) -> list[SessionInfo]:
        return self.query(records.infos)

    def changes(self) -> AsyncIterator[str]:
        return self._signals.changes()

    async def close(self) -> None:
        self._signals.close()
        # The reader first: the last connection to close makes a checkpoint, which is the writer's.
        self._reader.close()
        await self.writer.close()

    def query(self, reading: Callable[[sqlite3.Connection], T]) -> T:
        """Read on the loop's own connection. Under WAL this waits for nobody, so a thread would
        cost more than it gives."""
        if self._signals.closed:
            raise packing.closed()
        try:
            return reading(self._reader)
        except (sqlite3.Error, OSError) as error:
            raise explain(self.path, error) from error
