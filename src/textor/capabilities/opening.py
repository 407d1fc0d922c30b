"""Files and folders opened at their real place and nowhere else.

The gate looks at where a path leads, and a moment later it is opened. Whatever writes in the workspace
meanwhile could have put a link there. So from the gate on a place is its real path, which holds no
link, and here each part of it is opened below the one before, links refused. What is then read or
written is what was judged, whatever names point at by now.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC
#: One call on macOS; elsewhere folders are passed through by a descriptor that cannot read them, as a
#: path would pass through them.
_AT_ONCE: int = getattr(os, "O_NOFOLLOW_ANY", 0)
_THROUGH: int = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)


class Moved(OSError):
    """A link stands where none stood when the place was judged."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ELOOP, "a link was put there after it was looked at, so it is left alone")
        self.filename = str(path)


@contextmanager
def opened_folder(path: Path, *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder, for `dir_fd`; with `make` missing ones are made. Raises `OSError`."""
    descriptor = _folder(path, make)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_file(path: Path) -> Iterator[int]:
    """A descriptor of a file to read. Never waits, whatever it is. Raises `OSError`."""
    with opened_folder(path.parent) as above:
        try:
            descriptor = os.open(
                path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above
            )
        except OSError as error:
            raise (Moved(path) if error.errno == errno.ELOOP else error) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def state_of(path: Path) -> os.stat_result:
    """As `Path.stat`, of a real place."""
    if path == Path(path.anchor):
        return path.stat()
    with opened_folder(path.parent) as above:
        found = os.stat(path.name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        raise Moved(path)
    return found


def write_whole(path: Path, content: bytes) -> bool:
    """Put `content` at a real place in one step, so that no reader sees half of it; True when it is new.

    Keeps mode and owner of what it replaces; makes missing folders. Raises `OSError`.
    """
    with opened_folder(path.parent, make=True) as above:
        try:
            before = os.stat(path.name, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            before = None
        if before is not None and stat.S_ISLNK(before.st_mode):
            raise Moved(path)
        draft = f".{path.name[:200]}.{secrets.token_hex(4)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            # not by `tempfile`, whose files are private, so that a new file gets the person's umask
            with os.fdopen(os.open(draft, flags, 0o666, dir_fd=above), "wb") as file:
                file.write(content)
                if before is not None:
                    if (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
                        os.fchown(file.fileno(), before.st_uid, before.st_gid)
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                file.flush()
                os.fsync(file.fileno())
            os.rename(draft, path.name, src_dir_fd=above, dst_dir_fd=above)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=above)
            raise
    return before is None


def _folder(path: Path, make: bool) -> int:
    try:
        return os.open(path, os.O_RDONLY | _FOLDER | _AT_ONCE) if _AT_ONCE else _walked(path)
    except FileNotFoundError:
        if not make or path == path.parent:
            raise
    except OSError as error:
        raise (Moved(path) if error.errno == errno.ELOOP else error) from None
    with opened_folder(path.parent, make=True) as above:
        with suppress(FileExistsError):
            os.mkdir(path.name, dir_fd=above)
        return _below(above, path)


def _walked(path: Path) -> int:
    descriptor = os.open(path.anchor, _THROUGH)
    for depth in range(1, len(path.parts)):
        above = descriptor
        try:
            descriptor = _below(above, Path(*path.parts[: depth + 1]))
        finally:
            os.close(above)
    return descriptor


def _below(above: int, path: Path) -> int:
    try:
        return os.open(path.name, _THROUGH | os.O_NOFOLLOW, dir_fd=above)
    except NotADirectoryError:  # so a link is told as well
        if stat.S_ISLNK(os.stat(path.name, dir_fd=above, follow_symlinks=False).st_mode):
            raise Moved(path) from None
        raise
