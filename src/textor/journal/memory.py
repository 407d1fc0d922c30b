"""A journal in memory: for tests, for programs that keep nothing, for `--no-journal` runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from textor.events import Event
from textor.journal import packing
from textor.journal.blobs import MemoryBlobs
from textor.journal.packing import Packed, pack, unpack
from textor.journal.port import MACHINE, SessionInfo, Status
from textor.journal.signals import Signals, follow


class _Session:
    def __init__(self, id: str, title: str, created: float) -> None:
        self.id = id
        self.title = title
        self.created = created
        self.updated = created
        self.epoch = 0
        self.status: Status = "runnable"
        self.rows: list[Packed] = []
        self.seq_of: dict[str, int] = {}

    def add(self, row: Packed) -> None:
        self.rows.append(row)
        self.seq_of[row.id] = len(self.rows)
        self.updated = max(self.updated, row.time)

    def event(self, seq: int) -> Event:
        return unpack(self.id, seq, *self.rows[seq - 1])

    @property
    def info(self) -> SessionInfo:
        return SessionInfo(self.id, self.created, self.updated, len(self.rows), self.status, self.title)


class MemoryJournal:
    """See `textor.journal.port.Journal`.

    Events are kept encoded, as on disk: what comes back has been through JSON here too, and a
    caller that changes a dictionary afterwards does not change the past.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._signals = Signals()
        self._blobs = MemoryBlobs()

    @property
    def blobs(self) -> MemoryBlobs:
        return self._blobs

    async def create(self, session: str, events: Sequence[Event]) -> int:
        self._check_open()
        if session in self._sessions:
            raise packing.session_exists(session)
        if not events:
            raise packing.no_events(session)
        rows = [pack(e) for e in events]
        made = _Session(session, packing.title_of(events), events[0].time)
        self._add_all(made, rows)
        self._sessions[session] = made
        self._signals.tell({session: True})
        return len(made.rows)

    async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
        self._check_open()
        rows = [pack(e) for e in events]
        kept = self._find(session)
        before = len(kept.rows)
        if epoch is not None:
            if epoch != kept.epoch:
                raise packing.fenced(session, epoch)
            self._add_all(kept, rows)
            appended = packing.numbered(events, before + 1)
        else:
            for row in rows:
                if row.id not in kept.seq_of:
                    kept.add(row)
            appended = [kept.event(kept.seq_of[row.id]) for row in rows]
        if len(kept.rows) > before:
            if epoch is None:
                kept.status = "runnable"
            self._signals.tell({session: epoch is None})
        return appended

    def _add_all(self, kept: _Session, rows: Sequence[Packed]) -> None:
        seen: set[str] = set()
        for row in rows:
            if row.id in kept.seq_of or row.id in seen:
                raise packing.doubled(kept.id, row.id)
            seen.add(row.id)
        for row in rows:
            kept.add(row)

    async def read(self, session: str, after: int = 0) -> AsyncIterator[Event]:
        kept = self._sessions.get(session)
        seq = max(after, 0) + 1
        while kept is not None and seq <= len(kept.rows):
            yield kept.event(seq)
            seq += 1

    def follow(self, session: str, after: int = 0) -> AsyncIterator[Event]:
        return follow(self.read, self._signals, session, after)

    async def claim(self, session: str) -> int:
        self._check_open()
        kept = self._find(session)
        kept.epoch += 1
        return kept.epoch

    async def set_status(self, session: str, status: Status, *, epoch: int, head: int) -> bool:
        self._check_open()
        kept = self._sessions.get(session)
        if kept is None or kept.epoch != epoch or len(kept.rows) != head:
            return False
        kept.status = status
        return True

    async def session(self, session: str) -> SessionInfo | None:
        kept = self._sessions.get(session)
        return kept.info if kept is not None else None

    async def sessions(self) -> list[SessionInfo]:
        infos = [kept.info for kept in self._sessions.values() if kept.id != MACHINE]
        return sorted(infos, key=lambda info: (-info.updated, info.id))

    def changes(self) -> AsyncIterator[str]:
        return self._signals.changes()

    async def close(self) -> None:
        self._signals.close()

    def _find(self, session: str) -> _Session:
        kept = self._sessions.get(session)
        if kept is None:
            raise packing.no_session(session)
        return kept

    def _check_open(self) -> None:
        if self._signals.closed:
            raise packing.closed()
