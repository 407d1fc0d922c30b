"""Where in a reply text may act, and where it is only quoted (law 5).

A `Fences` cuts a streaming text into pieces, each in one zone:

* `prose`: may act; a `mark` is one of the dialect's own opening marks, found in prose;
* `fence`: a block between ``` or ~~~ of any length, also one that is never closed;
* `code`: between backticks on one line, or between `<code>` or `<pre>` and its end;
* `quote`: a line that begins with ">", or between `<blockquote>` or `<quote>` and its end;
* `reasoning`: between `<think>` and `</think>` and the like, also when it is never closed.

The pieces joined are the text. The scanner decides by the text alone, never by the size of the
chunks, and holds back at most a few hundred characters, so its work is linear. Block rules follow
CommonMark 0.31 (sections 4.5, 5.1, 6.1) with two differences that make it decide at once: an
inline code ends with its line, and a fence may be indented by up to twelve blanks, as in lists.

When a mark has been found, the dialect may read the text itself from `buffer[pos:]` and say
with `advance` how far it came; `next` goes on from there in prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Zone = Literal["prose", "mark", "fence", "code", "quote", "reasoning"]
Edge = Literal["", "open", "close", "cut", "orphan"]

#: An info string is at most this long; a longer "fence" is inline code.
INFO = 200
#: Runs of backticks are counted up to here.
RUN = 64

#: Opening mark -> (zone, closing mark). The known ways in which models write reasoning and quote.
QUOTED: dict[str, tuple[Zone, str]] = {
    **{
        f"<{name}>": ("reasoning", f"</{name}>")
        for name in (
            "think",
            "thinking",
            "reasoning",
            "thought",
            "thoughts",
            "reflection",
            "scratchpad",
            "seed:think",
        )
    },
    "[think]": ("reasoning", "[/think]"),  # Magistral
    "<|begin_of_thought|>": ("reasoning", "<|end_of_thought|>"),
    "<|channel|>analysis<|message|>": ("reasoning", "<|end|>"),  # harmony (gpt-oss)
    "<code>": ("code", "</code>"),
    "<pre>": ("code", "</pre>"),
    "<blockquote>": ("quote", "</blockquote>"),
    "<quote>": ("quote", "</quote>"),
    "<example>": ("quote", "</example>"),
}
_ORPHANS = tuple(close for zone, close in QUOTED.values() if zone == "reasoning" and close != "<|end|>")

_LINE = r"(?<![^\n])[ \t]{0,12}"


class Piece(NamedTuple):
    """A stretch of text in one zone.

    `offset` counts characters from the start of the reply. `edge` is "open" or "close" for the
    marks themselves (but not for backticks in a line); "cut" (with empty text) where a zone ended
    without its closing mark; and "orphan" for the closing mark of reasoning whose opening the
    server had swallowed: all prose before it was reasoning. `info` is what follows the ticks that
    open a fence.
    """

    zone: Zone
    text: str
    offset: int
    edge: Edge = ""
    info: str = ""


class Fences:
    """The scanner. `feed`, then `next` until it gives None; `end`, then `next` until None.

    `marks` are the dialect's opening marks, found only in prose, each given as a piece of its own;
    `line_marks` those that count only where a line begins (their piece holds the blanks before
    them).
    """

    def __init__(self, marks: Sequence[str] = (), line_marks: Sequence[str] = ()) -> None:
        self.buffer = ""  #: what was fed; at most one character before `pos` is kept
        self.pos = 0  #: where in `buffer` the unread text begins
        self._base = 0  # offset of buffer[0] in the reply
        self._ended = False
        self._zone: Zone = "prose"
        self._close = ""  # the closing mark of a quoted zone, or the run of a fence or inline code
        self._reasoned = False
        self._special, self._partial, self._hold = _patterns(tuple(marks), tuple(line_marks))

    @property
    def zone(self) -> Zone:
        return self._zone

    @property
    def offset(self) -> int:
        """Where in the reply the unread text begins."""
        return self._base + self.pos

    def feed(self, text: str) -> None:
        keep = max(0, self.pos - 1)  # one character, so that a line's start is seen
        self._base += keep
        self.buffer = self.buffer[keep:] + text
        self.pos -= keep

    def end(self) -> None:
        """No more text comes: nothing is held back any longer."""
        self._ended = True

    def advance(self, count: int) -> None:
        """The dialect has read `count` characters of `buffer[pos:]` itself."""
        self.pos += count

    def skip(self, text: str) -> None:
        """The dialect has read all that was fed, and now this as well, which is not fed."""
        self._base += len(self.buffer) + len(text) - 1
        self.buffer, self.pos = text[-1], 1

    def next(self) -> Piece | None:
        """The next piece; None when more text is needed or all has been given."""
        if self.pos >= len(self.buffer):
            if self._ended and self._zone != "prose":
                return self._cut()
            return None
        if self._zone == "prose":
            return self._prose()
        if self._zone == "fence":
            return self._fence()
        if self._close.startswith("`"):
            return self._inline()
        return self._quoted()

    # -- one method for each zone ----------------------------------------------------------

    def _prose(self) -> Piece | None:
        found = self._special.search(self.buffer, self.pos)
        if found is None:
            return self._upto(self._held(self._partial, self._hold))
        kind, mark = found.lastgroup, found.group()
        if kind == "run" and found.end() == len(self.buffer) and len(mark) < RUN and not self._ended:
            # More ticks may follow, and with the blanks before them they may open a fence.
            return self._upto(min(found.start(), self._held(self._partial, self._hold)))
        if found.start() > self.pos:
            return self._upto(found.start())
        if kind == "line":
            return self._line(mark)
        if kind == "run":
            return self._code(mark, mark)
        if kind in ("mark", "begin"):
            return self._piece(len(mark), "mark")
        if kind == "orphan":
            orphan, self._reasoned = not self._reasoned, True
            return (
                self._piece(len(mark), "reasoning", "orphan") if orphan else self._piece(len(mark), "prose")
            )
        zone, close = QUOTED[mark.lower()]
        self._reasoned = self._reasoned or zone == "reasoning"
        return self._open(zone, mark, close)

    def _line(self, mark: str) -> Piece | None:
        """A line that begins with ">", ``` or ~~~."""
        if mark[-1] == ">":
            return self._open("quote", mark, "\n")
        run = mark.lstrip()
        start = self.pos + len(mark)
        newline = self.buffer.find("\n", start, start + INFO + 1)
        if newline < 0:
            if not self._ended and len(self.buffer) - start <= INFO:
                return None
            newline = len(self.buffer) if len(self.buffer) - start <= INFO else -1
        info = self.buffer[start:newline]
        if newline < 0 or (run[0] == "`" and "`" in info):
            return self._piece(len(mark), "prose") if run[0] == "~" else self._code(mark, run)
        return self._open("fence", self.buffer[self.pos : newline], run, info.strip())

    def _fence(self) -> Piece | None:
        close, partial = _closing(self._close[0], len(self._close))
        found = close.search(self.buffer, self.pos)
        while found is not None and found.end() == len(self.buffer) and not self._ended:
            found = None  # the line may go on: `partial` holds it back
        if found is None:
            line = self.buffer.rfind("\n") + 1
            held = partial.match(self.buffer, line) if not self._ended and line >= self.pos else None
            return self._upto(len(self.buffer) if held is None else line)
        if found.start() > self.pos:
            return self._upto(found.start())
        return self._shut(found.end() - self.pos)

    def _inline(self) -> Piece | None:
        for found in _RUN_OR_NEWLINE.finditer(self.buffer, self.pos):
            run = found.group()
            if run == "\n":
                return self._upto(found.start()) if found.start() > self.pos else self._cut()
            if found.end() == len(self.buffer) and len(run) < RUN and not self._ended:
                return self._upto(found.start())
            if run == self._close:
                self._zone = "prose"
                return self._piece(found.end() - self.pos, "code")
        return self._upto(len(self.buffer))

    def _quoted(self) -> Piece | None:
        close, partial = _ending(self._close)
        found = close.search(self.buffer, self.pos)
        if found is None:
            return self._upto(self._held(partial, len(self._close)))
        if found.start() > self.pos:
            return self._upto(found.start())
        if self._close == "\n":  # a quoted line; its newline is prose again
            self._zone = "prose"
            return self._piece(0, "quote", "close")
        return self._shut(len(self._close))

    # -- making pieces ---------------------------------------------------------------------

    def _held(self, partial: re.Pattern[str], longest: int) -> int:
        """Up to where the buffer is certain: before what may be the start of a mark."""
        end = len(self.buffer)
        if self._ended:
            return end
        found = partial.search(self.buffer, max(self.pos, end - longest))
        return end if found is None else found.start()

    def _piece(self, count: int, zone: Zone, edge: Edge = "", info: str = "") -> Piece:
        start = self.pos
        self.pos += count
        return Piece(zone, self.buffer[start : self.pos], self._base + start, edge, info)

    def _upto(self, end: int) -> Piece | None:
        return self._piece(end - self.pos, self._zone) if end > self.pos else None

    def _open(self, zone: Zone, mark: str, close: str, info: str = "") -> Piece:
        self._zone, self._close = zone, close
        return self._piece(len(mark), zone, "open", info)

    def _code(self, mark: str, run: str) -> Piece:
        """Inline code has no edges, for there may be very much of it."""
        self._zone, self._close = "code", run
        return self._piece(len(mark), "code")

    def _shut(self, count: int) -> Piece:
        zone, self._zone = self._zone, "prose"
        return self._piece(count, zone, "close")

    def _cut(self) -> Piece:
        zone, self._zone = self._zone, "prose"
        return self._piece(0, zone, "close" if self._close == "\n" else "cut")


_RUN_OR_NEWLINE = re.compile(rf"`{{1,{RUN}}}|\n")


@lru_cache(maxsize=64)
def _patterns(
    marks: tuple[str, ...], line_marks: tuple[str, ...]
) -> tuple[re.Pattern[str], re.Pattern[str], int]:
    """What is special in prose, what may become special at the end, and how long that can be."""
    opens, longest = tuple(QUOTED), max(map(len, (*QUOTED, *_ORPHANS, *marks)))
    parts = [
        rf"(?P<line>{_LINE}(?:`{{3,{RUN}}}|~{{3,{RUN}}}|>))",
        rf"(?P<run>`{{1,{RUN}}})",
        rf"(?P<open>(?i:{_tree(opens)}))",
        rf"(?P<orphan>(?i:{_tree(_ORPHANS)}))",
    ]
    if line_marks:
        parts.insert(0, rf"(?P<begin>{_LINE}(?:{_tree(line_marks)}))")
        longest = max(longest, 12 + max(map(len, line_marks)))
    if marks:
        # The dialect's marks come first, the longest before its own beginnings.
        parts.insert(0, rf"(?P<mark>{_tree(marks)})")
    known = [mark.lower() for mark in (*opens, *_ORPHANS)]
    beginnings = [f"(?i:{_tree(known, beginning=True)})"]
    if marks:
        beginnings.append(_tree(marks, beginning=True))
    if line_marks:
        beginnings.append(rf"{_LINE}(?:{_tree(line_marks, beginning=True)})")
    partial = re.compile(rf"(?:{'|'.join(beginnings)}|{_LINE}(?:`{{0,2}}|~{{0,2}})|`{{1,{RUN}}})\Z")
    return re.compile("|".join(parts)), partial, max(longest, RUN + 12)


@lru_cache(maxsize=256)
def _closing(tick: str, count: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The line that closes a fence of `count` ticks, and what may become one."""
    close = re.compile(rf"{_LINE}{tick}{{{count},{INFO}}}[ \t\r]{{0,{RUN}}}(?=\n|\Z)")
    return close, re.compile(rf"[ \t]{{0,12}}{tick}{{0,{INFO}}}[ \t\r]{{0,{RUN}}}\Z")


@lru_cache(maxsize=64)
def _ending(mark: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(re.escape(mark), re.IGNORECASE), re.compile(rf"(?i:{_beginning(mark)})\Z")


def _tree(marks: Sequence[str], beginning: bool = False) -> str:
    """A pattern for the marks, the longest first, that looks at no character twice; or for each
    proper `beginning` of one."""
    branches: dict[str, list[str]] = {}
    for mark in marks:
        if mark:
            branches.setdefault(mark[0], []).append(mark[1:])
    parts: list[str] = []
    for first, rests in branches.items():
        inner = _tree(rests, beginning)
        ends = beginning or "" in rests
        parts.append(re.escape(first) + (f"(?:{inner}){'?' if ends else ''}" if inner else ""))
    return "|".join(parts)


def _beginning(mark: str) -> str:
    """A pattern for each proper beginning of `mark`."""
    return _tree([mark[:-1]], beginning=True) or "(?!)"
