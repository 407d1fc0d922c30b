"""Files and folders that an agent keeps in view: what they hold now, in how many words.

Always the present content, never a remembered one. A file that is too long is shown by head and
tail with a note, a binary or a deleted one as a note; a folder as `ls -l --full-time` writes it,
without the line of its total (after the SIA document).
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from textor.values import clean_text

log = logging.getLogger("textor.watch")

#: Bytes of one file, and of all together, that are shown.
MOST_OF_ONE = 8_000
MOST_OF_ALL = 32_000
#: Lines of one folder.
MOST_LINES = 60

Kind = Literal["file", "dir", "gone", "other"]


@dataclass(frozen=True)
class Watched:
    """A path as its agent named it, and its real place when that was allowed. `index` is its
    number; None for a folder that is shown only because a watched file lies in it."""

    name: str
    real: Path
    index: int | None


@dataclass(frozen=True)
class View:
    """What is shown of one path. `text` is content or lines of a folder, `note` stands below it."""

    name: str
    kind: Kind
    index: int | None
    text: str = ""
    note: str = ""


def views(watched: Sequence[Watched], most: int = MOST_OF_ALL) -> list[View]:
    """The present content of all, in their order. What exceeds `most` bytes is only named."""
    found: list[View] = []
    left = most
    for each in watched:
        shown = view(each, min(MOST_OF_ONE, left)) if left > 0 else _unshown(each, most)
        left -= len(shown.text.encode())
        found.append(shown)
    return found


def view(watched: Watched, most: int = MOST_OF_ONE) -> View:
    """The present content of one path."""
    name, index = watched.name, watched.index
    if os.path.realpath(watched.real) != str(watched.real):
        return View(name, "other", index, note="[a link leads elsewhere now; monitor it again]")
    try:
        # not blocking, so that a pipe in the place of a file cannot hold us up
        file = os.open(watched.real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return View(name, "gone", index, note="[deleted: there is no such file now]")
    except OSError as error:
        return View(name, "other", index, note=f"[cannot be read: {error.strerror}]")
    try:
        found = os.fstat(file)
        if stat.S_ISDIR(found.st_mode):
            text, note = _folder(watched.real, most)
            return View(name, "dir", index, text, note)
        if not stat.S_ISREG(found.st_mode):
            return View(name, "other", index, note="[neither a file nor a folder]")
        text, note = _content(file, found.st_size, most)
        return View(name, "file", index, text, note)
    except OSError as error:
        return View(name, "other", index, note=f"[cannot be read: {error.strerror}]")
    finally:
        os.close(file)


def signature(path: Path) -> tuple[int, ...]:
    """What tells two states of a path apart without reading it; of a folder also its entries."""
    try:
        found = path.stat()
        mark = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
        if not stat.S_ISDIR(found.st_mode):
            return mark
        with os.scandir(path) as entries:
            inside = sorted((e.name, e.stat(follow_symlinks=False).st_mtime_ns) for e in entries)
        return (*mark, hash(tuple(inside)))
    except OSError:
        return ()


def _unshown(watched: Watched, most: int) -> View:
    note = f"[not shown: what is monitored has more than {most} bytes; unmonitor what you do not need]"
    return View(watched.name, "other", watched.index, note=note)


# -- files ---------------------------------------------------------------------------------


def _content(file: int, size: int, most: int) -> tuple[str, str]:
    """Text and note of an open file."""
    if size <= most:
        data = os.read(file, most)
        text = _text(data)
        return (text, "") if text is not None else ("", f"[binary, {size} bytes]")
    half = most // 2
    first, last = (
        _text(os.pread(file, half, 0), end=True),
        _text(os.pread(file, half, size - half), begin=True),
    )
    if first is None or last is None:
        return "", f"[binary, {size} bytes]"
    left_out = size - len(first.encode()) - len(last.encode())
    note = f"[{left_out} of {size} bytes left out in the middle]"
    return f"{first}\n[… {left_out} bytes left out …]\n{last}", note


def _text(data: bytes, *, begin: bool = False, end: bool = False) -> str | None:
    """UTF-8 text, None for anything else. `begin` and `end` may cut a character in two."""
    if begin:
        while data and 0x80 <= data[0] < 0xC0:
            data = data[1:]
    if b"\0" in data:
        return None
    for cut in range(4 if end else 1):
        with suppress(UnicodeDecodeError):
            return clean_text(data[: len(data) - cut].decode())
    return None


# -- folders -------------------------------------------------------------------------------


def _folder(path: Path, most: int) -> tuple[str, str]:
    """The entries of a folder as lines, and a note on those left out."""
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries)
    shown: list[str] = []
    size = 0
    for name in names[:MOST_LINES]:
        line = entry_line(path / name)
        size += len(line.encode()) + 1
        if size > most:
            break
        shown.append(line)
    left_out = len(names) - len(shown)
    return "\n".join(shown), f"[{left_out} of {len(names)} entries left out]" if left_out else ""


def entry_line(path: Path) -> str:
    """One entry as `ls -l --full-time` writes it, with / behind a folder."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"?????????? {_name(path.name)} [{error.strerror}]"
    mode = stat.filemode(found.st_mode)
    seconds, nanoseconds = divmod(found.st_mtime_ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds).astimezone()
    time = f"{moment:%Y-%m-%d %H:%M:%S}.{nanoseconds:09d} {moment:%z}"
    name = _name(path.name)
    if stat.S_ISLNK(found.st_mode):
        with suppress(OSError):
            name += f" -> {_name(str(path.readlink()))}"
    elif stat.S_ISDIR(found.st_mode):
        name += "/"
    owner, group = _owner(found.st_uid), _group(found.st_gid)
    return f"{mode} {found.st_nlink} {owner} {group} {found.st_size} {time} {name}"


def _name(name: str) -> str:
    """A name that stays on its line."""
    return clean_text(name).replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _owner(number: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def _group(number: int) -> str:
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)


# -- waking --------------------------------------------------------------------------------

#: Milliseconds in which several changes count as one.
DEBOUNCE = 50
#: Milliseconds after which to look without being told: what changed while the watching began, and
#: file systems that tell nothing.
LOOK = 1_000


async def changes(paths: Sequence[Path]) -> AsyncIterator[None]:
    """Yields when something at these paths may have changed, by inotify or what the platform has.

    The folder of a file is watched, since programs replace files by renaming others.
    """
    from watchfiles import awatch

    places = {_existing(path) for path in paths}
    if not places:
        await asyncio.Event().wait()
    try:
        async for _ in awatch(
            *places,
            recursive=False,
            debounce=DEBOUNCE,
            step=DEBOUNCE,
            rust_timeout=LOOK,
            yield_on_timeout=True,
        ):
            yield None
    except (OSError, RuntimeError) as error:  # too many watches, a folder that may not be read
        log.warning("Files are looked at every %g s, since watching failed: %s", LOOK / 1000, error)
    while True:
        yield None
        await asyncio.sleep(LOOK / 1000)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    # `os.path`, since `Path.is_dir` raises for names that are too long and folders that are shut
    while not os.path.isdir(folder) and folder != folder.parent:  # noqa: PTH112
        folder = folder.parent
    return folder
