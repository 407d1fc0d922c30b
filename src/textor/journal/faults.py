"""What SQLite and the operating system report, as sentences that a person can act upon."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from textor.errors import JournalError

_SAFE = "What was acknowledged before is kept."

#: The start of SQLite's error name -> what is wrong, how to mend it.
_SQLITE: dict[str, tuple[str, str]] = {
    "SQLITE_FULL": ("cannot grow: the disk is full", f"Free some space and try again. {_SAFE}"),
    "SQLITE_IOERR": ("could not be read or written", f"Check the disk and its free space. {_SAFE}"),
    "SQLITE_CANTOPEN": ("cannot be opened", "Check that the folder exists and that you may write in it."),
    "SQLITE_READONLY": ("cannot be written: no permission", "Make it and its folder writable for you."),
    "SQLITE_PERM": ("cannot be opened: no permission", "Make it and its folder writable for you."),
    "SQLITE_BUSY": ("is held by another program", "Close what else has the file open and try again."),
    "SQLITE_LOCKED": ("is held by another program", "Close what else has the file open and try again."),
    "SQLITE_NOTADB": ("is not a journal", "Name another file, or move this one away."),
    "SQLITE_CORRUPT": ("is damaged", "Restore it from a backup, or move it away and begin a new one."),
}

_SPACE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
_PERMISSION = {errno.EACCES, errno.EPERM, errno.EROFS}


def explain(path: Path, error: BaseException) -> JournalError:
    """The `JournalError` for what went wrong with the file at `path`."""
    if isinstance(error, JournalError):
        return error
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", None) or ""
        for start, (what, hint) in _SQLITE.items():
            if name.startswith(start):
                return JournalError(f"The journal {path} {what} ({error}).", hint)
    if isinstance(error, OSError):
        if error.errno in _SPACE:
            return JournalError(f"{path} cannot be written: the disk is full.", f"Free some space. {_SAFE}")
        if error.errno in _PERMISSION:
            return JournalError(f"{path} cannot be written: no permission.", "Make its folder writable.")
        return JournalError(f"{path} cannot be used: {error.strerror}.", "Check the path and the disk.")
    return JournalError(f"The journal {path} could not carry that out: {error}.", _SAFE)


def is_missing(error: OSError) -> bool:
    return error.errno in {errno.ENOENT, errno.ENOTDIR}
