"""Finding what was meant: the nearest names, and the place of a character in a text."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable

from textor.values import Json

#: Names longer than this are not compared; nobody misspells 200 characters.
LONGEST_NAME = 200


def nearest(name: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """At most `count` of `names` that look like `name`, the best first.

    Case and the separators ". _ - /" and blanks count for nothing, so `FILES-LIST` is next to
    `files.list`. A name of which `name` is one whole word counts as near too.
    """
    wanted = _plain(name[:LONGEST_NAME])
    if not wanted:
        return ()
    scored: list[tuple[float, int, str]] = []
    for order, candidate in enumerate(names):
        plain = _plain(candidate[:LONGEST_NAME])
        matcher = difflib.SequenceMatcher(None, wanted, plain, autojunk=False)
        score = matcher.ratio() if matcher.real_quick_ratio() > 0.5 else 0.0
        if score < 0.6 and wanted in _words(candidate):
            score = 0.6
        if score >= 0.6:
            scored.append((-score, order, candidate))
    return tuple(candidate for _, _, candidate in sorted(scored)[:count])


def did_you_mean(names: Iterable[str]) -> str:
    """ "Did you mean a or b?", or "" when there is no name."""
    found = list(names)
    if not found:
        return ""
    head = ", ".join(found[:-1])
    return f"Did you mean {head} or {found[-1]}?" if head else f"Did you mean {found[0]}?"


def excerpt(value: Json, limit: int = 60) -> str:
    """A value on one line, cut to `limit` characters, for a sentence."""
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def position(text: str, offset: int) -> tuple[int, int]:
    """(line, column) of `text[offset]`, both from 1, columns in code points."""
    offset = max(0, min(offset, len(text)))
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class Lines:
    """Line and column of any offset in a text that comes in pieces; `feed` costs its length."""

    def __init__(self) -> None:
        self._starts = [0]
        self._length = 0

    def feed(self, text: str) -> None:
        at = text.find("\n")
        while at >= 0:
            self._starts.append(self._length + at + 1)
            at = text.find("\n", at + 1)
        self._length += len(text)

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c not in "._-/ ")


def _words(name: str) -> list[str]:
    for separator in "_-/":
        name = name.replace(separator, ".")
    return name.casefold().split(".")
