"""What a module said beside the protocol: its last lines in memory, and a file of bounded size."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from textor.values import clean_text

KEEP_LINES = 200
KEEP_BYTES = 1_000_000  #: of the file; the one before it is kept as `NAME.log.1`
LONGEST_LINE = 2_000


class Log:
    """Lines of one module. `path` None keeps them in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.lines: deque[str] = deque(maxlen=KEEP_LINES)
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Bytes as they come from the module's stderr."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-LONGEST_LINE:]
        for line in lines:
            self.add(line.decode("utf-8", "replace"))

    def finish(self) -> None:
        """The last line may have no end."""
        if self._rest:
            self.feed(b"\n")

    def add(self, line: str) -> None:
        line = clean_text(line.rstrip("\r"))[:LONGEST_LINE]
        if not line.strip():
            return
        self.lines.append(line)
        if self.path is not None:
            self._write(line)

    def last(self, count: int = 8) -> str:
        """The last lines, for a message. Of a traceback only what it ends with: the rest is for
        whoever mends the module, and stands in its file."""
        told: list[str] = []
        inside = False
        for line in self.lines:
            if line.startswith("Traceback (most recent call last)"):
                inside = True
            elif not inside or not line[0].isspace():
                inside = False
                told.append(line)
        return "\n".join(told[-count:])

    def _write(self, line: str) -> None:
        assert self.path is not None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size > KEEP_BYTES:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
            # it may hold what a module was given, so it is its owner's alone
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "ab") as file:
                file.write(line.encode() + b"\n")
        except OSError:  # a full disk must not end the module; the lines are still in memory
            self.path = None


def read_log(path: Path, count: int) -> list[str]:
    """The last lines of a module's file, of this and of former lives; none where there is no file."""
    lines: list[str] = []
    for part in (path.with_name(path.name + ".1"), path):
        try:
            lines += part.read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
    return lines[-count:]
