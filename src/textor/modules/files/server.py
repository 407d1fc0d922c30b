"""The tools of the module `files`, for any MCP client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import Field

from textor import __version__
from textor.actions import Action, Outcome
from textor.capabilities.files import FilesProvider
from textor.capabilities.live import is_live
from textor.capabilities.places import Judged
from textor.journal.blobs import MemoryBlobs
from textor.modules.files import bin, patching
from textor.modules.files.roots import Refused, Roots
from textor.modules.files.texts import Text, read_text, write_text
from textor.values import Value, content_of

T = TypeVar("T")

SHOWN = 60_000  #: characters of a result
LONGEST_MATCH = 20.0  #: seconds for a regular expression

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(destructive_hint=True, open_world_hint=False)

#: For Textor, exactly.
WRITES = {"textor/effects": ["write"]}
READ = {"textor/effects": ["read"]}

APath = Annotated[
    str, Field(description="relative to the first root, or absolute", json_schema_extra={"format": "path"})
]


class Desk:
    """What the capabilities of Textor want to know of an action."""

    session, agent, key = "", "", ""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.blobs = MemoryBlobs()
        self.judged: dict[str, Judged] = {}

    def value(self, handle: str) -> Value:
        raise KeyError(handle)

    def progress(self, text: str) -> None:
        """Nobody looks."""


def make_server(folders: list[Path]) -> MCPServer[Any]:
    """The server; nothing outside of `folders` is read or changed."""
    roots = Roots(folders)
    server: MCPServer[Any] = MCPServer(
        "textor-files",
        version=__version__,
        instructions=f"Files below: {', '.join(str(root) for root in roots.folders)}.",
        log_level="WARNING",
    )
    _add_reading(server, roots, FilesProvider())
    _add_writing(server, roots)
    _add_moving(server, roots)
    return server


def _add_reading(server: MCPServer[Any], roots: Roots, provider: FilesProvider) -> None:
    async def perform(name: str, arguments: dict[str, Any]) -> CallToolResult:
        desk = Desk(roots.folders[0])
        outcome = await provider.invoke(Action("", name, arguments), desk)
        if outcome.state != "done":
            raise ToolError(outcome.text)
        return _shown(outcome, desk)

    @server.tool(name="list", annotations=READS, meta=READ)
    async def list_folder(folder: APath = ".") -> CallToolResult:
        """List the files and folders in a folder, with sizes."""
        return await perform("files.list", {"folder": str(_refusing(roots.place, folder))})

    @server.tool(annotations=READS, meta=READ)
    async def read(
        path: APath,
        start_line: Annotated[int, Field(ge=1, description="the first line, from 1")] = 1,
        line_count: Annotated[int, Field(ge=0, description="how many lines; 0: all")] = 0,
        encoding: Annotated[str, Field(description="found out by itself where it is left out")] = "",
    ) -> CallToolResult:
        """Read a text file, whole or some lines of it; an image is shown."""
        place = _refusing(roots.place, path)
        if encoding:
            text = (await asyncio.to_thread(_refusing, read_text, place, path, encoding)).text
            lines = text.splitlines(keepends=True)[start_line - 1 :]
            return _text("".join(lines[:line_count] if line_count else lines))
        count = {"line_count": line_count} if line_count else {}
        return await perform("files.read", {"path": str(place), "start_line": start_line, **count})

    @server.tool(annotations=READS, meta=READ)
    async def search(
        query: str,
        folder: APath = ".",
        pattern: Annotated[str, Field(description='only in files named so, e.g. "*.py"')] = "",
        regex: bool = False,
    ) -> CallToolResult:
        """Search a text in all files below a folder; gives file, line number and line. A query without
        capitals ignores case."""
        place = str(_refusing(roots.place, folder))
        return await perform(
            "files.search", {"query": query, "folder": place, "pattern": pattern, "regex": regex}
        )


def _add_writing(server: MCPServer[Any], roots: Roots) -> None:
    @server.tool(annotations=ToolAnnotations(idempotent_hint=True, open_world_hint=False), meta=WRITES)
    def write(
        path: APath,
        text: Annotated[str, Field(description="the whole new content")],
        encoding: Annotated[str, Field(description="that of the file as it was, else UTF-8")] = "",
    ) -> str:
        """Write a text to a file: makes it and its folders, or replaces what it held."""
        place = _refusing(roots.place, path)
        if place.is_dir():
            raise ToolError(f"{path} is a folder.")
        made = Text(text, encoding or "utf-8")
        if not encoding and place.exists():
            try:
                before = read_text(place, path)
                made = Text(text, before.encoding, before.mark)
                made.text.encode(made.encoding)
            except (Refused, UnicodeEncodeError):  # no text, or one that its old encoding cannot hold
                made = Text(text, "utf-8")
        is_new = _refusing(write_text, place, path, made)
        return f"{'Made' if is_new else 'Replaced'} {path} ({len(text)} characters, {made.encoding})."

    @server.tool(annotations=CHANGES, meta=WRITES)
    async def replace(
        path: APath,
        old: Annotated[str, Field(min_length=1, description="the exact text, or a regular expression")],
        new: Annotated[str, Field(description="what stands there afterwards; \\1 is a group of a regex")],
        regex: bool = False,
        expected: Annotated[
            int, Field(ge=0, description="how often it must occur; 0: any number of times")
        ] = 1,
        encoding: str = "",
    ) -> str:
        """Replace a text in a file, in all its places. Nothing is changed unless it occurs exactly as
        often as expected."""
        place = _refusing(roots.place, path)
        before = await asyncio.to_thread(_refusing, read_text, place, path, encoding)
        text, count = await _replaced(before, old, new, regex, path)
        if count == 0 or (expected and count != expected):
            raise ToolError(
                f"The text occurs {count} times in {path}"
                + (
                    f", not {expected}. Take in more of what stands around it."
                    if count
                    else ". Nothing was changed."
                )
            )
        await asyncio.to_thread(_refusing, write_text, place, path, Text(text, before.encoding, before.mark))
        return f"Replaced in {count} {'place' if count == 1 else 'places'} of {path}."

    @server.tool(annotations=CHANGES, meta=WRITES)
    def patch(
        diff: Annotated[str, Field(description="a unified diff of one or several files")],
        folder: Annotated[str, Field(description="what its paths are relative to")] = ".",
    ) -> str:
        """Apply a unified diff: all of it or nothing. Context must be exact, line numbers may be off."""
        return _refusing(_patched, roots, diff, folder)


def _add_moving(server: MCPServer[Any], roots: Roots) -> None:
    @server.tool(annotations=CHANGES, meta=WRITES)
    def move(source: APath, target: APath) -> str:
        """Move or rename a file or folder. What exists is not overwritten."""
        old, new = _refusing(roots.entry, source), _refusing(roots.entry, target)
        if not old.is_symlink() and not old.exists():
            raise ToolError(f"There is no {source}.")
        if new.is_dir() and not new.is_symlink():
            new = new / old.name
        if new.is_symlink() or new.exists():
            raise ToolError(f"{roots.name(new)} exists. Remove it first, or take another name.")
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)
        except OSError as error:
            raise ToolError(f"{source} cannot be moved to {target}: {error.strerror}.") from None
        return f"Moved {source} to {roots.name(new)}."

    @server.tool(annotations=ADDS, meta=WRITES)
    def make_folder(path: APath) -> str:
        """Make a folder and those above it."""
        try:
            _refusing(roots.place, path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"{path} cannot be made: {error.strerror}.") from None
        return f"There is a folder {path}."

    @server.tool(annotations=CHANGES, meta=WRITES)
    def remove(path: APath) -> str:
        """Move a file or folder to the bin, from where a person can bring it back."""
        place = _refusing(roots.entry, path)
        if not place.is_symlink() and not place.exists():
            raise ToolError(f"There is no {path}.")
        root = next(root for root in roots.folders if place.is_relative_to(root))
        try:
            now = bin.remove(place, root)
        except OSError as error:
            raise ToolError(f"{path} cannot be moved to the bin: {error.strerror}.") from None
        return f"{path} is in the bin: {now}."


async def _replaced(before: Text, old: str, new: str, regex: bool, path: str) -> tuple[str, int]:
    """The new text and how often the old one occurred."""
    if not regex:
        if "\n" in old and before.newline == "\r\n" and old not in before.text:
            old, new = (re.sub(r"\r?\n", "\r\n", part) for part in (old, new))
        return before.text.replace(old, new), before.text.count(old)
    try:
        pattern = re.compile(old, re.MULTILINE)
    except re.error as error:
        raise ToolError(f"This is no regular expression: {error}.") from None
    try:
        async with asyncio.timeout(LONGEST_MATCH):
            return await _substituted(pattern, new, before.text)
    except TimeoutError:
        raise ToolError(
            f"The regular expression took more than {LONGEST_MATCH:g} seconds in {path}."
        ) from None


async def _substituted(pattern: re.Pattern[str], new: str, text: str) -> tuple[str, int]:
    """In a process of its own, since nothing can end a regular expression that runs for ever."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, pattern.subn, new, text)
    except (re.error, IndexError) as error:
        raise ToolError(f"The replacement cannot be used: {error}.") from None
    finally:
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def _patched(roots: Roots, diff: str, folder: str) -> str:
    """Work all out before anything is written."""
    base = roots.place(folder)
    made: dict[Path, tuple[str, Text | None]] = {}
    for change in patching.parse(diff):
        _plan(change, roots, base, made)
    for place, (name, _) in made.items():  # the gate does not see the paths in a diff
        if any(place.is_relative_to(root) and is_live(place, root) for root in roots.folders):
            raise Refused(f"Programs run {name}, or go by it, by themselves; use write. Nothing was changed.")
    for place, (name, text) in made.items():
        if text is not None:
            write_text(place, name, text)
        elif place.exists():
            bin.remove(place, next(root for root in roots.folders if place.is_relative_to(root)))
    return "Changed: " + ", ".join(name for name, _ in made.values()) + "."


def _plan(
    change: patching.Change, roots: Roots, base: Path, made: dict[Path, tuple[str, Text | None]]
) -> None:
    """What one change of a diff comes to, after those before it."""
    name = change.new or change.old or ""
    place = roots.place(str(base / name))
    if change.old is None:
        if place.exists():
            raise Refused(f"{name} exists already; the diff makes it. Nothing was changed.")
        made[place] = (name, Text(patching.apply("", change.hunks, name, "\n"), "utf-8"))
        return
    source = roots.place(str(base / change.old))
    before = made[source][1] if source in made else read_text(source, change.old)
    if before is None:
        raise Refused(f"The diff changes {change.old} after it has removed it. Nothing was changed.")
    text = patching.apply(before.text, change.hunks, change.old, before.newline)
    if change.new is None and text:
        raise Refused(f"{change.old} has more lines than the diff removes. Nothing was changed.")
    made[place] = (name, None if change.new is None else Text(text, before.encoding, before.mark))
    if place != source:
        made[source] = (change.old, None)


def _refusing(work: Callable[..., T], *arguments: Any) -> T:
    try:
        return work(*arguments)
    except Refused as error:
        raise ToolError(str(error)) from None
    except OSError as error:
        raise ToolError(f"{error.strerror or error}.") from None


def _shown(outcome: Outcome, desk: Desk) -> CallToolResult:
    """Text whole up to a bound, images as images."""
    import base64

    content: list[Any] = []
    text = outcome.text
    for value in outcome.values:
        if value.kind == "text":
            text = content_of(value, desk.blobs).decode()
        elif value.kind == "image":
            data = base64.b64encode(content_of(value, desk.blobs)).decode()
            content.append(ImageContent(type="image", data=data, mime_type=value.media_type))
    return CallToolResult(content=[*_text(text).content, *content], structured_content=None)


def _text(text: str) -> CallToolResult:
    if len(text) > SHOWN:
        shown = text[:SHOWN]
        text = (
            f"{shown}\n[{len(text) - SHOWN} characters are left out, after line {shown.count(chr(10)) + 1}]"
        )
    return CallToolResult(content=[TextContent(type="text", text=text)])
