"""The one thread of a journal that writes: what is queued is committed together.

An fsync costs more than all else in an append, so whoever comes while one runs shares the next
(group commit). Each piece of work has its own savepoint: one that fails takes nothing else along.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from textor.errors import JournalError
from textor.journal import packing
from textor.journal.faults import explain
from textor.journal.lock import Gate
from textor.journal.signals import Signals, Touched

T = TypeVar("T")
Done = tuple[T, Touched]  #: a result and what was touched on the way to it
Work = Callable[[sqlite3.Connection], Done[T]]

#: Seconds between two looks for appends of other processes, while anybody waits for news.
POLL = 0.03

#: Most pieces of work in one transaction.
GROUP = 500


class _Item(NamedTuple):
    work: Work[Any] | None  #: None closes the journal
    future: asyncio.Future[Any]


class _Answer(NamedTuple):
    future: asyncio.Future[Any]
    result: Any
    error: JournalError | None


class Writer:
    """Owns the writing connection from `start` to `close`. Used from one event loop at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path, gate: Gate, signals: Signals) -> None:
        self._connection = connection
        self._path = path
        self._gate = gate
        self._signals = signals
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()  # None: only look whether anybody waits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._version = self._data_version()  # changes when another connection commits
        self._number = self._last_number()  # of the last event that we know of
        # A daemon: a program that ends without closing loses nothing that was acknowledged.
        self._thread = threading.Thread(target=self._run, name="textor-journal", daemon=True)
        self._thread.start()

    async def do(self, work: Work[T]) -> T:
        """Run `work` in a transaction and return its result once that is on the disk.

        Raises `JournalError`; nothing of the work is then kept. When the waiting is cancelled, the
        work may still be done.
        """
        if self._closed:
            raise packing.closed()
        future: asyncio.Future[T] = self.here().create_future()
        self._queue.put(_Item(work, future))
        return await future

    async def close(self) -> None:
        """Finish what is queued, then close the connection. Idempotent."""
        if not self._closed:
            self._closed = True
            future: asyncio.Future[None] = self.here().create_future()
            self._queue.put(_Item(None, future))
            await future

    def here(self) -> asyncio.AbstractEventLoop:
        """Remember the running loop as the one that hears of news."""
        self._loop = asyncio.get_running_loop()
        return self._loop

    def look(self) -> None:
        """Somebody waits for news now: begin to look for appends of others."""
        self.here()
        self._queue.put(None)

    # -- in the thread ---------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            items = self._gather()
            closing = [item for item in items if item.work is None]
            answers, touched = self._commit([item for item in items if item.work is not None])
            if closing:
                answers += [_Answer(item.future, None, self._shut()) for item in closing]
            self._deliver(answers, touched)
            if closing:
                return

    def _gather(self) -> list[_Item]:
        """What is queued; waits for the first, at most one poll long while anybody watches."""
        items: list[_Item] = []
        try:
            item = self._queue.get(timeout=POLL if self._signals.watched else None)
            while True:
                if item is not None:
                    items.append(item)
                if len(items) >= GROUP:
                    return items
                item = self._queue.get_nowait()
        except Empty:
            return items

    def _commit(self, items: list[_Item]) -> tuple[list[_Answer], dict[str, bool]]:
        touched: dict[str, bool] = {}
        try:
            if not items:
                self._notice_others(touched)
                return [], touched
            own: dict[str, bool] = {}
            with self._gate:
                answers = self._transaction(items, touched, own)
            _merge(touched, own)
        except Exception as error:  # whatever it was: this thread must go on and answer
            reason = explain(self._path, error)
            return [_Answer(item.future, None, reason) for item in items], touched
        return answers, touched

    def _transaction(
        self, items: list[_Item], others: dict[str, bool], own: dict[str, bool]
    ) -> list[_Answer]:
        connection = self._connection
        try:
            connection.execute("begin immediate")
            # Nobody else can commit from here on, so what is noticed now is exactly what others
            # appended, and all numbers that follow are ours.
            self._notice_others(others)
            answers = [self._attempt(item, own) for item in items]
            last = self._last_number() if own else self._number
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
        self._number = last
        return answers

    def _attempt(self, item: _Item, own: dict[str, bool]) -> _Answer:
        """One piece of work under its savepoint. Raises only when the whole group is lost."""
        assert item.work is not None
        connection = self._connection
        connection.execute("savepoint item")
        try:
            result, touched = item.work(connection)
            connection.execute("release item")
        except Exception as error:
            # A full disk or a failed write may have rolled the transaction back on its own.
            if not connection.in_transaction:
                raise explain(self._path, error) from error
            connection.execute("rollback to item")
            connection.execute("release item")
            return _Answer(item.future, None, explain(self._path, error))
        _merge(own, touched)
        return _Answer(item.future, result, None)

    def _notice_others(self, touched: dict[str, bool]) -> None:
        if not self._signals.watched:
            return
        version = self._data_version()
        if version == self._version:
            return
        rows = self._connection.execute(
            "select session, max(input), max(number) from event where number > ? group by session",
            (self._number,),
        ).fetchall()
        for session, is_input, number in rows:
            touched[session] = bool(is_input)
            self._number = max(self._number, number)
        self._version = version

    def _data_version(self) -> int:
        return int(self._connection.execute("pragma data_version").fetchone()[0])

    def _last_number(self) -> int:
        return int(self._connection.execute("select ifnull(max(number), 0) from event").fetchone()[0])

    def _shut(self) -> JournalError | None:
        try:
            with self._gate:  # the last one to close makes a checkpoint
                self._connection.close()
            self._gate.close()
        except (JournalError, sqlite3.Error) as error:
            return explain(self._path, error)
        return None

    def _deliver(self, answers: list[_Answer], touched: dict[str, bool]) -> None:
        """Into the loop at once: a call for each future would wake it each time."""
        if (answers or touched) and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._resolve, answers, touched)
            except RuntimeError:  # the loop is closed: nobody waits there any more
                pass

    def _resolve(self, answers: list[_Answer], touched: dict[str, bool]) -> None:
        for future, result, error in answers:
            if future.done():
                continue  # cancelled
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        self._signals.tell(touched)


def _merge(into: dict[str, bool], more: Touched) -> None:
    for session, is_input in more.items():
        into[session] = into.get(session, False) or is_input
