"""Locks between processes that the operating system itself releases when their holder dies."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from textor.errors import JournalError
from textor.journal.faults import explain

#: The one byte that Windows locks, far behind the content so that others can read that.
_BYTE = 1 << 30


class FileLock:
    """An exclusive lock on a small file. `flock`, not POSIX record locks: those fall when any
    handle of the process on the file is closed, and do not exclude within one process.

    The file stays when the lock is dropped: removing it would let two processes hold "the" lock,
    one on the removed file and one on a new one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held = False
        self._handle: int | None = None

    def take(self, seconds: float = 0.0) -> bool:
        """Whether the lock was had within so many seconds. Raises `JournalError` where the file
        cannot be made."""
        handle = self._open()
        deadline = time.monotonic() + seconds
        pause = 0.0005
        while not _try(handle):
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.01)
        self.held = True
        return True

    def drop(self) -> None:
        """Let others have it; the file stays open for the next time."""
        if self.held and self._handle is not None:
            self.held = False
            _release(self._handle)

    def close(self) -> None:
        self.drop()
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def write(self, content: bytes) -> None:
        """Put a note into the file, for whoever finds it locked."""
        handle = self._open()
        with suppress(OSError):  # a full disk: the lock holds without the note
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, content)

    def _open(self) -> int:
        if self._handle is None:
            try:
                # Python's handles are not inherited by programs that we start, so no child of
                # ours keeps the lock alive after us.
                self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise explain(self.path, error) from error
        return self._handle


class Gate:
    """A `FileLock` as a context manager that waits, and gives up with a sentence.

    Two processes that write and checkpoint one WAL database at the same moment can damage it
    ("WAL-reset bug", SQLite 3.7.0 to 3.51.2, https://sqlite.org/wal.html#walresetbug), and most
    systems still carry such a version. Every transaction and checkpoint of Textor goes through
    this gate, so that moment does not exist; it costs some microseconds.
    """

    def __init__(self, path: Path, seconds: float = 30.0) -> None:
        self._lock = FileLock(path)
        self._seconds = seconds

    def __enter__(self) -> None:
        if not self._lock.take(self._seconds):
            raise JournalError(
                f"The journal was not free within {self._seconds:g} seconds ({self._lock.path} is held).",
                "Another Textor process writes in it or is suspended: end or continue that one.",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.drop()

    def close(self) -> None:
        self._lock.close()


class HostLock:
    """One host process per database. Beside the database `path` lies `path-host`, locked as long
    as the host lives and holding its process id, for messages.
    """

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path.with_name(path.name + "-host"))

    def acquire(self) -> bool:
        """Whether this process is the host now. Raises `JournalError` if the folder of the
        database cannot be used."""
        if self._lock.held:
            return True
        try:
            self._lock.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise explain(self._lock.path.parent, error) from error
        if not self._lock.take():
            self._lock.close()
            return False
        self._lock.write(str(os.getpid()).encode())
        return True

    def release(self) -> None:
        self._lock.close()

    @property
    def holder(self) -> int | None:
        """The process id that the last host left, for a message after `acquire` was False."""
        try:
            content = self._lock.path.read_text("utf-8", "replace")
        except OSError:
            return None
        return int(content) if content.isdecimal() else None


if sys.platform == "win32":
    import msvcrt

    def _try(handle: int) -> bool:
        os.lseek(handle, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(handle: int) -> None:
        os.lseek(handle, _BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
