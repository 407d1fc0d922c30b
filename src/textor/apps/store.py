"""The document of an app: one typed state, its versions, its file, and what was changed by whom.

A change happens as a whole or not at all, is written before it is told, and gets a version. Two
processes may hold the same file: each change is made under a lock on what the file says now.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from textor.errors import TextorError, UseError

By = Literal["person", "ai", "elsewhere"]
S = TypeVar("S", bound=msgspec.Struct)

HISTORY = 200  #: changes that can be taken back
LOOK = 0.5  #: seconds between two looks whether another process changed the file


class Refused(TextorError):
    """A request that an app will not carry out. `status` is that of the HTTP answer."""

    def __init__(self, message: str, hint: str = "", *, status: int = 422) -> None:
        super().__init__(message, hint)
        self.status = status


class Change(msgspec.Struct, frozen=True):
    """What happened last: `label` is a short phrase for a person ("set email subject")."""

    version: int
    by: By
    label: str


class Entry(msgspec.Struct):
    """A change that can be taken back, as the JSON of the state before and after it."""

    change: Change
    before: dict[str, Any]
    after: dict[str, Any]


class Store(Generic[S]):
    """Holds `state`, and the file that keeps it. `window` is what belongs to this process alone (a
    form that is being filled in): it is shown and undone like the state, but not kept."""

    def __init__(self, fresh: Callable[[], S], window: Callable[[], msgspec.Struct] | None = None) -> None:
        self.fresh = fresh
        self.state: S = fresh()
        self.fresh_window = window
        self.window: msgspec.Struct | None = window() if window else None
        self.version = 0
        self.path: Path | None = None
        self.last: Change | None = None
        self._history: list[Entry] = []
        self._stamp: tuple[int, int, int] | None = None
        self._waiting: set[asyncio.Event] = set()
        self._inside = False

    # -- what is there -----------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The name of the document; "" while it has no file."""
        return self.path.stem if self.path else ""

    def snapshot(self) -> dict[str, Any]:
        """What a page is sent."""
        change = msgspec.to_builtins(self.last) if self.last else None
        undoable = self._undoable() is not None
        return {
            "document": self.id,
            "version": self.version,
            "state": self._json(),
            "change": change,
            "undoable": undoable,
        }

    def _json(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self.state)
        if self.window is not None:
            found["window"] = msgspec.to_builtins(self.window)
        return found

    def _take(self, tree: dict[str, Any]) -> None:
        """The state from its JSON; raises `msgspec.ValidationError`, and then nothing has changed."""
        parts = dict(tree)
        window = parts.pop("window", None)
        state = msgspec.convert(parts, type(self.state))
        if self.window is not None and window is not None:
            self.window = msgspec.convert(window, type(self.window))
        self.state = state

    # -- opening ---------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Go over to the document in `path`, which need not exist yet."""
        before = self.path, self.state, self.version, self._stamp
        self.path, self.state, self.version, self._stamp = path, self.fresh(), 0, None
        try:
            self.reload()
        except Refused:
            self.path, self.state, self.version, self._stamp = before
            raise
        self._history.clear()
        self.last = None
        self._tell()

    def reload(self) -> None:
        """Take over what another process has written. Raises `Refused` for a file that is none of ours."""
        if self.path is None or (stamp := _stamp(self.path)) == self._stamp:
            return
        first = self._stamp is None
        if stamp is None:
            self.state, self.version = self.fresh(), self.version + 1
        else:
            try:
                kept = json.loads(self.path.read_text("utf-8"))
                state = msgspec.convert(kept["state"], type(self.state))
                version = int(kept["version"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise Refused(
                    f"The file {self.path} cannot be read: {error}.", "Move it away or mend it.", status=409
                ) from None
            self.state, self.version = state, version
        self._stamp = stamp
        if not first:
            self.last = Change(self.version, "elsewhere", "changed in another window")
            self._tell()

    # -- changing --------------------------------------------------------------------------

    @contextmanager
    def change(self, by: By, label: str, *, final: bool = False) -> Iterator[None]:
        """Whatever the body does to `state` is one change; when it raises, nothing has happened.

        After a `final` one, neither it nor what came before can be taken back.
        """
        if self._inside:
            yield
            return
        with _locked(self.path):
            self.reload()
            before = self._json()
            self._inside = True
            try:
                yield
                after = self._json()
                self._take(after)  # what an action put there is checked like what a page sends
            except msgspec.ValidationError as error:
                self._take(before)
                raise Refused(f"That does not fit: {error}.") from None
            except BaseException:
                self._take(before)
                raise
            finally:
                self._inside = False
            if after != before:
                self._commit(Change(self.version + 1, by, label), before, after, final)

    def _commit(self, change: Change, before: dict[str, Any], after: dict[str, Any], final: bool) -> None:
        kept = {key: value for key, value in after.items() if key != "window"}
        if self.path is not None and kept != {k: v for k, v in before.items() if k != "window"}:
            try:
                write_atomically(self.path, json.dumps({"version": change.version, "state": kept}).encode())
            except OSError as error:
                self._take(before)
                raise Refused(f"{self.path} cannot be written: {error.strerror}.", status=507) from None
            self._stamp = _stamp(self.path)
        self.version, self.last = change.version, change
        self._history = [] if final else [*self._history, Entry(change, before, after)][-HISTORY:]
        self._tell()

    def edit(self, path: str, value: Any, base: Any, by: By = "person") -> None:
        """Set one place of the state ("subject", "series.0.name"), as a page does.

        `base` is the text that the person began from: what was added to it meanwhile is kept. With None
        the value simply counts.
        """
        tree = self._json()
        steps = path.split(".")
        holder: Any = tree
        try:
            for step in steps[:-1]:
                holder = holder[int(step)] if isinstance(holder, list) else holder[step]
            last: Any = int(steps[-1]) if isinstance(holder, list) else steps[-1]
            current = holder[last]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Refused(f"There is no {path[:80]!r} in this document.", status=404) from None
        holder[last] = merged(value, base, current)
        with self.change(by, f"changed {steps[-1] if not steps[-1].isdigit() else steps[0]}"):
            try:
                self._take(tree)
            except msgspec.ValidationError as error:
                raise Refused(f"{steps[-1]} does not take that: {error}.") from None

    # -- taking back -------------------------------------------------------------------------

    def _undoable(self) -> Entry | None:
        return next((e for e in reversed(self._history) if e.change.by == "ai"), None)

    def undo(self) -> str:
        """Take back the last change that the AI made, and say which. What a person changed since
        stays, so a part that both changed is refused."""
        entry = self._undoable()
        if entry is None:
            raise Refused("There is nothing of the AI to take back.", status=409)
        now = self._json()
        for key in entry.before:
            if entry.before[key] == entry.after[key]:
                continue
            if now[key] != entry.after[key]:
                raise Refused(f"{key} was changed since; it is not taken back.", status=409)
            now[key] = entry.before[key]
        with self.change("person", f"took back: {entry.change.label}"):
            self._take(now)
        self._history.remove(entry)
        return entry.change.label

    # -- telling ---------------------------------------------------------------------------

    def _tell(self) -> None:
        for event in self._waiting:
            event.set()

    async def follow(self) -> AsyncGenerator[dict[str, Any], None]:
        """The snapshot now and after each change; a slow reader is given the latest."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            while True:
                event.clear()
                yield self.snapshot()
                while not event.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(event.wait(), LOOK)
                    with contextlib.suppress(Refused):  # told when somebody next changes something
                        self.reload()
        finally:
            self._waiting.discard(event)


def merged(value: Any, base: Any, current: Any) -> Any:
    """The text that a person made of `base`, with what was added at its end or beginning meanwhile."""
    if not (isinstance(value, str) and isinstance(base, str) and isinstance(current, str)) or current == base:
        return value
    if not base:
        return f"{value}\n{current}" if value else current
    if current.startswith(base):
        return value + current[len(base) :]
    if current.endswith(base):
        return current[: len(current) - len(base)] + value
    return value


def write_atomically(path: Path, content: bytes) -> None:
    """The whole file or the old one, whatever happens in between. Only its owner reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def _locked(path: Path | None) -> Iterator[None]:
    """Nobody else changes the document while we do; held for milliseconds."""
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / ".lock").open("a+b") as file:
        try:
            _lock(file.fileno())
            yield
        finally:
            _unlock(file.fileno())


if sys.platform != "win32":
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

else:
    import msvcrt

    def _lock(handle: int) -> None:
        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        except OSError:
            raise UseError("Another program holds the document; try again.") from None

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
