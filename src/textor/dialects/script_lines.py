"""Sections and lines of a reply that act by their title or form, without a call.

Only whole lines of prose count: a line with code, a quotation or a call in it is never a title
and matches no pattern. A **section** goes from its title to the next heading of the same or a
higher level, the next bound title, or the end; what stands in it, code fences and calls too, is its
text. For patterns it goes from any heading to the next, and a call in it acts and makes it prose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from textor.dialects.script_patterns import Compiled

#: A longer line is neither title nor matched.
LONGEST = 65_536
_TITLE = re.compile(
    r"\s{0,3}(?P<level>#{0,6})\s{0,4}(?P<open>\*\*|__|)(?P<title>[^\s#*_].{0,198}?)(?P=open)\s{0,4}"
)
_CALL = re.compile(r"\s{0,8}![\w.-]{1,64}", re.ASCII)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_PLAIN = 7  # the level of a title without #


@dataclass
class Section:
    """A complete section, or a line that matched. `fault` is set when it must be explained."""

    capability: str
    title: str
    offset: int
    source: str = ""
    text: str = ""
    pattern: Compiled | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""


@dataclass
class _Open:
    """A section while it is read; without `capability` one that patterns may match."""

    capability: str
    title: str
    level: int
    offset: int
    head: str
    lines: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)


class LineReader:
    """Takes prose and quoted text; gives back what is prose, and the sections that are complete."""

    def __init__(self, titles: Mapping[str, str], entries: Sequence[Compiled]) -> None:
        self._titles = titles
        self._by_line = [entry for entry in entries if entry.pattern.scope == "line"]
        self._by_section = [entry for entry in entries if entry.pattern.scope == "section"]
        self._idle = not titles and not entries
        self._open: _Open | None = None
        self._parts: list[str] = []  # of the line so far
        self._length = 0
        self._start = 0
        self._pure = True
        self._found: list[Section] = []
        self._shown: list[str] = []

    @property
    def inside(self) -> bool:
        """Whether a titled section is open, whose text acts on nothing else."""
        return self._open is not None and bool(self._open.capability)

    def feed(self, text: str, zone: str, offset: int) -> tuple[str, list[Section]]:
        """`text` lies in one zone of `fences` and begins at `offset` of the reply."""
        if self._idle:
            return ("" if zone == "reasoning" else text), []
        self._found, self._shown = [], []
        if zone == "reasoning":
            self._pure = self._pure and not text
            return "", []
        for piece in _LINES.findall(text):
            self._take(piece, zone, offset)
            offset += len(piece)
        return "".join(self._shown), self._found

    def broken(self) -> str:
        """The line holds a call: it is prose, and so is the section that patterns might match."""
        self._found, self._shown = [], []
        self._end_open()
        self._pure = False
        self._flush()
        return "".join(self._shown)

    def close(self) -> tuple[str, list[Section]]:
        """The reply ended."""
        self._found, self._shown = [], []
        if self._parts:
            self._end_line()
        self._end_open()
        return "".join(self._shown), self._found

    # -- lines -----------------------------------------------------------------------------

    def _take(self, piece: str, zone: str, offset: int) -> None:
        if not self._parts:
            self._start = offset
        if zone == "mark" and self._open is not None and _CALL.fullmatch("".join(self._parts[:80])):
            self._open.calls.append(self._start)
        self._parts.append(piece)
        self._length += len(piece)
        self._pure = self._pure and zone in ("prose", "mark")
        if piece.endswith("\n"):
            self._end_line()
        elif self._length > LONGEST and self._open is None:
            self._pure = False
            self._flush()

    def _flush(self) -> None:
        """What there is of the line is prose."""
        (self._open.lines if self._open else self._shown).append("".join(self._parts))
        self._parts, self._length = [], 0

    def _end_line(self) -> None:
        line, pure = "".join(self._parts), self._pure and self._length <= LONGEST
        self._pure = True
        title = self._title(line) if pure else None
        if title is None:
            if pure and self._open is None and (section := self._matched(self._by_line, line, "line")):
                self._found.append(section)
                self._parts, self._length = [], 0
            else:
                self._flush()
            return
        capability, name, level = title
        if self.inside and self._open is not None and not capability and level > self._open.level:
            self._flush()
            return
        self._end_open()
        if capability or self._by_section:
            self._open = _Open(capability, name, level, self._start, line)
            self._parts, self._length = [], 0
        else:
            self._flush()

    def _title(self, line: str) -> tuple[str, str, int] | None:
        """(capability or "", title, level) of a line that is a bound title or a heading."""
        found = _TITLE.fullmatch(line.rstrip("\r\n"))
        if found is None:
            return None
        name = " ".join(found["title"].rstrip(" :").split())
        capability = self._titles.get(name, "")
        if not capability and not found["level"]:
            return None
        return capability, name, len(found["level"]) or _PLAIN

    # -- sections --------------------------------------------------------------------------

    def _end_open(self) -> None:
        section, self._open = self._open, None
        if section is None:
            return
        text = "".join(section.lines)
        if section.capability:
            source = section.head + text
            self._found.append(
                Section(section.capability, section.title, section.offset, source, text.strip("\r\n"))
            )
            self._found += [self._swallowed(section, at) for at in section.calls]
        elif matched := self._matched(self._by_section, section.head + text, section.title):
            matched.offset = section.offset
            self._found.append(matched)
        else:
            self._shown.append(section.head + text)

    def _matched(self, entries: Sequence[Compiled], text: str, title: str) -> Section | None:
        for entry in entries:
            if (groups := entry.match(text.rstrip("\r\n"))) is not None:
                name = entry.pattern.capability
                return Section(name, title, self._start, text, pattern=entry, groups=groups)
        return None

    def _swallowed(self, section: _Open, offset: int) -> Section:
        fault = f"this call stands in the section {section.title} and is its text; it was not run."
        fault += " End the section with a heading before a call."
        return Section("", section.title, offset, fault=fault)
