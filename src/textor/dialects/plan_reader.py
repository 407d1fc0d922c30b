"""From a streaming reply to its lines, taken apart.

What is outside the brackets goes through `Fences`; what is inside is taken as it is, so that a
backtick in a payload opens nothing. Each character is looked at once.
"""

from __future__ import annotations

import re

import msgspec

from textor.dialects.fences import Fences
from textor.dialects.plan_lines import Line, line_of, marker_length

_IN_SLOT = re.compile(r"[\[\]\n]")


class Written(msgspec.Struct, frozen=True):
    """One line of a reply, without its line break.

    `number` and `column` count from 1; the column is where the line begins behind its markers, or
    the bracket that is never closed if it is `unclosed`. A `quoted` line holds something that does
    not act: a fence, inline code, a quotation, reasoning. `disowned`: the reasoning of the model
    ended in this line and had begun before the reply, so that nothing up to here was meant.
    """

    line: Line
    raw: str
    number: int
    column: int
    unclosed: bool = False
    quoted: bool = False
    disowned: bool = False


class PlanReader:
    """`feed` and `end` give the lines that are complete; brackets nest."""

    def __init__(self) -> None:
        self._fences = Fences(("[",))
        self._number = 0
        self._reasoning = False  # between the lines [THINK] and [/THINK]
        self._begin()

    def _begin(self) -> None:
        self._number += 1
        self._raw: list[str] = []
        self._outside: list[list[str]] = [[]]
        self._slots: list[list[str]] = []
        self._length = 0
        self._depth = 0
        self._opened = 0  # the column of the outermost bracket that is open
        self._unclosed = 0
        self._quoted = False
        self._disowned = False

    def feed(self, text: str) -> list[Written]:
        self._fences.feed(text)
        return self._read()

    def end(self) -> tuple[list[Written], Written]:
        """The lines that become certain by the end, and the last one, which has no line break."""
        self._fences.end()
        lines = self._read()
        if self._depth:
            self._give_up()
        return lines, self._written()

    def _read(self) -> list[Written]:
        lines: list[Written] = []
        while True:
            if self._depth:
                if not self._slot():
                    return lines
                continue
            piece = self._fences.next()
            if piece is None:
                return lines
            if piece.zone == "mark":
                self._keep("[")
                self._opened, self._depth = self._length, 1
                self._slots.append([])
                continue
            self._disowned = self._disowned or piece.edge == "orphan"
            lines += self._plain(piece.text, piece.zone != "prose")

    def _keep(self, text: str) -> None:
        self._raw.append(text)
        self._length += len(text)

    def _plain(self, text: str, quoted: bool) -> list[Written]:
        """Text outside brackets."""
        lines: list[Written] = []
        for at, part in enumerate(text.split("\n")):
            if at > 0:
                lines.append(self._written())
                self._begin()
            self._keep(part)
            self._outside[-1].append(part)
            self._quoted = self._quoted or (quoted and bool(part))
        return lines

    def _slot(self) -> bool:
        """Text inside brackets, up to the next one or the line break. False: more is needed."""
        buffer, start = self._fences.buffer, self._fences.pos
        found = _IN_SLOT.search(buffer, start)
        sign = found[0] if found else ""
        self._depth += {"[": 1, "]": -1}.get(sign, 0)
        end = len(buffer) if found is None else found.start() if sign == "\n" else found.end()
        self._keep(buffer[start:end])
        self._fences.advance(end - start)
        self._slots[-1].append(buffer[start : end if self._depth else end - 1])
        if sign == "\n":
            self._give_up()  # the line break itself stands outside
        elif self._depth == 0:
            self._outside.append([])
        return found is not None

    def _give_up(self) -> None:
        """The line ends in an open bracket."""
        self._unclosed, self._depth = self._opened, 0
        self._outside.append([])

    def _written(self) -> Written:
        outside = ["".join(pieces).removesuffix("\r") for pieces in self._outside]
        line = line_of(outside, ["".join(pieces) for pieces in self._slots])
        column = self._unclosed or marker_length(outside[0]) + 1
        quoted = self._quoted or self._reasoning
        if line.skeleton == "[]" and (mark := line.slots[0].casefold()) in ("think", "/think"):
            # Magistral's marks look like slots, so that `Fences` does not find them here.
            self._reasoning, quoted = mark == "think", True
        raw = "".join(self._raw)
        return Written(line, raw, self._number, column, bool(self._unclosed), quoted, self._disowned)
