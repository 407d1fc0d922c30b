"""`files.list`, `files.read`, `files.write` and `files.search`.

Paths are relative to the workspace. A path may lead anywhere: whether it may, outside the
workspace, is the gate's to say before an action comes here (`places.place`). What it looked at is
what is opened (`opening`).
"""

from __future__ import annotations

import asyncio
import codecs
import difflib
import io
import mimetypes
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from textor.actions import Capability, Outcome
from textor.capabilities import walker
from textor.capabilities.opening import opened_file, opened_folder, state_of, write_whole
from textor.capabilities.places import judged
from textor.capabilities.port import Scope
from textor.capabilities.processes import run
from textor.capabilities.table import Entry, TableProvider, parameters, text_outcome
from textor.errors import CapabilityError
from textor.values import Json, blob_value

MOST_ENTRIES = 1000  #: names that `files.list` shows
MOST_TEXT = 4_000_000  #: characters that `files.read` gives at a time
MOST_HITS = 200  #: lines that `files.search` shows
BIGGEST_IMAGE = 20_000_000  #: bytes
SEARCH_TIME = 30  #: seconds

#: Folders that are never searched: history, and what tools put there by the thousand.
SKIPPED = (".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv")

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_FOLDER: Json = {"type": "string", "format": "path", "default": ".", "description": "the folder"}

LIST = Capability(
    "files.list",
    "List the files and folders in a folder, with sizes.",
    parameters(folder=_FOLDER),
    repeat="idempotent",
    phrases=("list files in []",),
    examples=("what files are in [docs]", "show the contents of the folder [src]"),
)

READ = Capability(
    "files.read",
    "Read a text file, whole or some lines of it; an image is shown.",
    parameters(
        ["path"],
        path={"type": "string", "format": "path", "description": "the file"},
        start_line={"type": "integer", "default": 1, "minimum": 1, "description": "the first line, from 1"},
        line_count={"type": "integer", "minimum": 1, "description": "how many lines; all if left out"},
    ),
    repeat="idempotent",
    phrases=("read file []",),
    examples=("open the file [README.md]", "show what is in [notes.txt]"),
)

WRITE = Capability(
    "files.write",
    "Write a text to a file: makes it and its folders, or replaces what it held.",
    parameters(
        ["text", "path"],
        text={"type": "string", "description": "the whole new content"},
        path={"type": "string", "format": "path", "description": "the file"},
    ),
    effects=("write",),
    repeat="idempotent",
    phrases=("write [] to file []",),
    examples=("save [hello] in [hello.txt]", "put the text [a, b] into the file [list.csv]"),
)

SEARCH = Capability(
    "files.search",
    "Search a text in all files below a folder; gives file, line number and line. "
    "A query without capitals ignores case.",
    parameters(
        ["query"],
        query={"type": "string", "description": "the text to find"},
        folder={**_FOLDER, "description": "where to search"},
        pattern={"type": "string", "default": "", "description": 'only in files named so, e.g. "*.py"'},
        regex={"type": "boolean", "default": False, "description": "the query is a regular expression"},
    ),
    repeat="idempotent",
    phrases=("search files for []",),
    examples=("find [TODO] in the files", "where does [main] occur"),
)


class FilesProvider(TableProvider):
    """The provider `files`. `ripgrep` is the path of `rg`; empty: search by our own walker."""

    def __init__(self, ripgrep: str | None = None) -> None:
        self.ripgrep = shutil.which("rg") or "" if ripgrep is None else ripgrep
        entries = [Entry(LIST, _list), Entry(READ, _read), Entry(WRITE, _write), Entry(SEARCH, self._search)]
        super().__init__("files", entries)

    async def _search(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        query, pattern, regex = arguments["query"], arguments["pattern"], arguments["regex"]
        target, is_folder = _existing(arguments["folder"], scope)
        if not query or "\0" in query + pattern:
            raise CapabilityError("files.search needs a query: some text without NUL.")
        inside = target if is_folder else target.parent
        below = "." if is_folder else f"./{target.name}"
        argv = (self._ripgrep_argv if self.ripgrep else _walker_argv)(query, below, pattern, regex)
        try:
            with opened_folder(inside) as folder:
                ended = await run(
                    argv,
                    cwd=entered(folder, inside),
                    env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
                    timeout=SEARCH_TIME,
                    keep=2_000_000,
                    stop_when_full=True,
                )
        except OSError as error:
            raise _mended(error, inside, scope.workspace) from None
        if ended.reason == "cancelled":
            return Outcome("cancelled", "The search was cancelled.")
        output = ended.output.decode("utf-8", "replace")
        if ended.exit_status == 2 and "\0" not in output:
            raise CapabilityError(f"files.search cannot search for {query!r:.200}: {output.strip()[:500]}")
        note = f"stopped after {SEARCH_TIME} seconds" if ended.reason == "timeout" else ""
        return _hits(output, query, inside, note, scope)

    def _ripgrep_argv(self, query: str, below: str, pattern: str, regex: bool) -> list[str]:
        return [
            *(self.ripgrep, "--no-config", "--no-messages", "--color", "never", "--null", "--line-number"),
            *("--no-heading", "--with-filename", "--smart-case", "--hidden", "--no-ignore", "--sort", "path"),
            *("--max-columns", str(walker.LONGEST_LINE), "--max-columns-preview"),
            *("--max-count", str(walker.PER_FILE)),
            *(() if regex else ("--fixed-strings",)),
            *(("--glob", pattern) if pattern else ()),
            *[word for name in SKIPPED for word in ("--glob", f"!**/{name}/**")],
            *("--regexp", query, "--", below),
        ]


def _walker_argv(query: str, below: str, pattern: str, regex: bool) -> list[str]:
    mode = "1" if regex else ""
    return [sys.executable, "-I", "-S", walker.__file__, query, below, pattern, mode, *SKIPPED]


def _hits(output: str, query: str, inside: Path, note: str, scope: Scope) -> Outcome:
    """The lines `path NUL number:text` of a search as an outcome."""
    data: list[Json] = []
    for line in output.split("\n"):
        path, separator, rest = line.partition("\0")
        number, _, text = rest.partition(":")
        if separator and number.isdigit():  # else a remark of ripgrep on a binary file
            name = _name(inside / path, scope.workspace)
            data.append({"path": name, "line": int(number), "text": text.strip("\r")})
    more = [f"[{note}]"] if note else []
    if len(data) > MOST_HITS:
        more.append(f"[the first {MOST_HITS} hits; there are more: ask for something narrower]")
        data = data[:MOST_HITS]
    lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in data]
    if not lines:
        lines = [f"{query!r} was not found in {_name(inside, scope.workspace)}."]
    return text_outcome("\n".join(lines + more), scope, data=data)


async def _list(arguments: dict[str, Json], scope: Scope) -> Outcome:
    folder, is_folder = _existing(arguments["folder"], scope)
    if not is_folder:
        raise CapabilityError(f"{_name(folder, scope.workspace)} is a file, no folder.", "Use files.read.")
    data = await asyncio.to_thread(_entries, folder, scope.workspace)
    lines = [
        f"{entry['name']}/" if entry["kind"] == "folder" else f"{entry['name']}  {readable(entry['size'])}"
        for entry in data[:MOST_ENTRIES]
    ]
    if len(data) > MOST_ENTRIES:
        lines.append(f"[and {len(data) - MOST_ENTRIES} more]")
    return text_outcome("\n".join(lines) or "The folder is empty.", scope, data=data[:MOST_ENTRIES])


def _entries(folder: Path, workspace: Path) -> list[dict[str, Json]]:
    """Folders first, then by name without regard to case."""
    found: list[dict[str, Json]] = []
    try:
        with opened_folder(folder) as above, os.scandir(readable_folder(above)) as entries:
            for entry in entries:
                kind = "folder" if entry.is_dir() else "file"
                # of a link, the link itself: where it leads was not judged
                size = entry.stat(follow_symlinks=False).st_size
                found.append({"name": _printable(entry.name), "kind": kind, "size": size})
    except OSError as error:
        raise _mended(error, folder, workspace) from None
    return sorted(found, key=lambda e: (e["kind"] == "file", str(e["name"]).lower(), e["name"]))


async def _read(arguments: dict[str, Json], scope: Scope) -> Outcome:
    path, is_folder = _existing(arguments["path"], scope)
    name = _name(path, scope.workspace)
    if is_folder:
        raise CapabilityError(f"{name} is a folder.", "Use files.list.")
    try:
        if not stat.S_ISREG(state_of(path).st_mode):  # opening a device may do something already
            raise CapabilityError(f"{name} is no regular file (a pipe, socket or device).")
        with opened_file(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            return await _told(path, file, arguments, scope)
    except OSError as error:
        raise _mended(error, path, scope.workspace) from None


async def _told(path: Path, file: BinaryIO, arguments: dict[str, Json], scope: Scope) -> Outcome:
    """A file as a model is shown it: lines of text, an image, or what else it is."""
    name = _name(path, scope.workspace)
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise CapabilityError(f"{name} is no regular file (a pipe, socket or device).")
    head = file.read(65536)
    image = image_type(head)
    if image and status.st_size <= BIGGEST_IMAGE:
        content = head + await asyncio.to_thread(file.read)
        value = blob_value(content, "image", image, scope.blobs, name=path.name)
        return Outcome("done", f"[{name}: {image}, {readable(value.size)}]", values=(value,))
    if is_binary(head):
        kind = image or mimetypes.guess_type(path.name)[0] or "of unknown kind"
        return Outcome("done", f"[{name} is no text: {kind}, {readable(status.st_size)}]")
    text = await asyncio.to_thread(read_lines, file, head, arguments["start_line"], arguments["line_count"])
    return text_outcome(text, scope)


def is_binary(head: bytes) -> bool:
    """Whether what begins like this is no text: it has a NUL and no mark of a wide encoding."""
    return b"\0" in head and not any(head.startswith(bom) for bom, _ in BOMS)


def image_type(head: bytes) -> str:
    """The media type by the first bytes, for the images that models take; else empty."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def read_lines(file: BinaryIO, head: bytes, start: int, count: int | None) -> str:
    """`count` lines from line `start` (from 1) on, their line ends as they are.

    The encoding is that of the byte order mark, else UTF-8, else Latin-1, which takes any bytes.
    Reads no more than it needs, at most `MOST_TEXT` characters; a note says where to go on.
    """
    marked = [encoding for bom, encoding in BOMS if head.startswith(bom)]
    for encoding in [*marked, "utf-8", "latin-1"]:
        file.seek(0)
        text = io.TextIOWrapper(file, encoding, newline="")
        try:
            return _lines(text, start, count)
        except UnicodeDecodeError:
            continue
        finally:
            text.detach()  # it would close the file
    raise AssertionError("Latin-1 takes any bytes")


def _lines(file: io.TextIOWrapper, start: int, count: int | None) -> str:
    number, size = 0, 0
    taken: list[str] = []
    while line := file.readline(MOST_TEXT):
        number += 1
        if number < start:
            continue
        if count is not None and number >= start + count:
            return "".join(taken) + f"\n[more follows; go on with start_line={number}]"
        taken.append(line)
        size += len(line)
        if size >= MOST_TEXT:
            return "".join(taken) + f"\n[cut; go on with start_line={number + 1}]"
    if not taken and start > 1:
        raise CapabilityError(f"The file has {number} lines; there is no line {start}.")
    return "".join(taken)


async def _write(arguments: dict[str, Json], scope: Scope) -> Outcome:
    path = judged(arguments["path"], scope)
    name = _name(path, scope.workspace)
    if path.is_dir():
        raise CapabilityError(f"{name} is a folder.", "Give the path of a file.")
    try:
        content = arguments["text"].encode()
    except UnicodeEncodeError:
        raise CapabilityError("The text holds half a character (a lone surrogate).") from None
    try:
        is_new = await asyncio.to_thread(write_whole, path, content)
    except OSError as error:
        raise _mended(error, path, scope.workspace) from None
    return Outcome("done", f"{'Made' if is_new else 'Replaced'} {name} ({readable(len(content))}).")


def _existing(path: str, scope: Scope) -> tuple[Path, bool]:
    """The place that was judged, and whether it is a folder."""
    real = judged(path, scope)
    try:
        return real, stat.S_ISDIR(state_of(real).st_mode)
    except OSError as error:
        raise _mended(error, real, scope.workspace) from None


def readable_folder(above: int) -> int:
    """A descriptor whose names can be read, of a folder that was only passed through."""
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)


def entered(above: int, folder: Path) -> Path:
    """What a program is told as its current folder: the opened one, where there is a name for it."""
    name = Path(f"/proc/self/fd/{above}")
    return name if name.exists() else folder


def _mended(error: OSError, path: Path, workspace: Path) -> CapabilityError:
    """What a person would say of an error of the file system."""
    name = _name(path, workspace)
    if isinstance(error, FileNotFoundError):
        return CapabilityError(f"There is no {name}.", _nearest(path, workspace))
    if isinstance(error, PermissionError):
        return CapabilityError(f"No permission for {name}.")
    if isinstance(error, NotADirectoryError):
        return CapabilityError(f"A part of {name} is a file, no folder.")
    if isinstance(error, FileExistsError):
        return CapabilityError(f"A part of the folder of {name} exists as a file.")
    return CapabilityError(f"{name}: {error.strerror or error}.")


def _nearest(path: Path, workspace: Path) -> str:
    """A hint with the names most like the one that is missing."""
    missing = path
    while not missing.parent.is_dir():
        missing = missing.parent
    try:
        names = sorted(entry.name for entry in missing.parent.iterdir())
    except OSError:
        return ""
    by_lower = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(missing.name.lower(), by_lower, n=3, cutoff=0.5)
    where = _name(missing.parent, workspace)
    if near:
        return f"In {where} there is: {', '.join(by_lower[name] for name in near)}."
    return f"In {where} there is nothing of a name like {missing.name!r}."


def _name(path: Path, workspace: Path) -> str:
    """A path as it is shown: relative inside the workspace, else absolute."""
    root = workspace.resolve()
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return _printable(str(shown)) if str(shown) != "." else "the workspace"


def _printable(name: str) -> str:
    """A file name that is not UTF-8, with U+FFFD for what cannot be shown."""
    return os.fsencode(name).decode("utf-8", "replace")


def readable(size: int) -> str:
    """A number of bytes for people."""
    if size < 1000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:.1f} MB"
