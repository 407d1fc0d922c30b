"""Text that arrives in pieces, as lines that fit the terminal.

Lines above a prompt can only be written whole; so a paragraph is broken where the terminal would
break it, and the line that is not full yet stands in `unfinished`, which the prompt shows.
"""

from __future__ import annotations

from collections.abc import Callable

from textor.cli.terminal import clean


class Stream:
    """The words of one message. `width` gives the columns of the terminal."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._text = ""
        self._printed = 0
        self._last = ""

    @property
    def unfinished(self) -> str:
        return clean(self._text[self._printed :])

    def begin(self) -> None:
        self._text, self._printed = "", 0

    def feed(self, text: str) -> list[str]:
        """Take a piece; returns the lines that are full now."""
        self._text += text
        return self._full()

    def void(self) -> list[str]:
        """What came does not count: the request is made again."""
        rest = self._text[self._printed :]
        self.begin()
        return [rest] if rest else []

    def finish(self, whole: str) -> list[str]:
        """The message is there; returns the lines still to be shown, all if they were not these."""
        lines = []
        if not whole.startswith(self._text):
            lines = [*self.void(), ""]
        self._text = whole
        lines += self._full()
        rest = self._text[self._printed :]
        self._last = whole
        self.begin()
        return [*lines, rest] if rest.strip() else lines

    def has_said(self, text: str) -> bool:
        """Whether this text was the last message, so that it need not be shown again."""
        return not text.strip() or text.strip() == self._last.strip()

    def _full(self) -> list[str]:
        lines: list[str] = []
        width = max(self._width() - 1, 20)
        while True:
            rest = self._text[self._printed :]
            end = rest.find("\n")
            if 0 <= end <= width:
                lines.append(rest[:end])
                self._printed += end + 1
            elif len(rest) > width:
                # At the last blank that fits; a word longer than a line is cut.
                blank = rest.rfind(" ", 1, width + 1)
                cut, skip = (blank, 1) if blank > 0 else (width, 0)
                lines.append(rest[:cut])
                self._printed += cut + skip
            else:
                return lines
