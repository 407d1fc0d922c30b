"""Writing for a person: styles where there is a terminal, and nothing that could drive it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO

STYLES = {"dim": "2", "bold": "1", "good": "32", "bad": "31", "warn": "33", "note": "36"}

#: Control characters (but newline and tab) and the marks that turn the direction of writing: a
#: text from a model or a page could use them to show something other than what it says.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """`text` with control characters made visible; line ends of Windows become plain."""
    return _CONTROL.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class Terminal:
    """The two streams of a command: replies go to `out`, all else to `err`."""

    def __init__(self, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.colours = self.err.isatty() and _wants_colours()
        self._held: list[str] | None = None

    def say(self, text: str, style: str = "") -> None:
        """Show a line (or several) to the person beside the reply."""
        line = self.styled(clean(text), style)
        if self._held is not None:
            self._held.append(line)
        else:
            print(line, file=self.err, flush=True)

    def reply(self, text: str) -> None:
        """The reply: byte for byte into a file or pipe, made harmless on a terminal."""
        print(clean(text) if self.out.isatty() else text, file=self.out, flush=True)

    def styled(self, text: str, style: str) -> str:
        if not self.colours or style not in STYLES or not text:
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    def hold(self) -> None:
        """Keep lines back while the person is being asked something."""
        self._held = self._held or []

    def release(self) -> None:
        held, self._held = self._held or [], None
        for line in held:
            print(line, file=self.err, flush=True)


def _wants_colours() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Rows as aligned columns; what is in the last is not cut."""
    rows = [[clean(cell).replace("\n", " ") for cell in row] for row in rows]
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
