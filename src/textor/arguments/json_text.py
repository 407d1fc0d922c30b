"""JSON as models write it, read strictly: what is certain is taken, what is not is told.

Stricter than `json`: no NaN, no infinity, no name twice in an object, bounded depth; and more
patient: control characters in strings are read, and a text behind the value is left to the caller.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from textor.errors import TextorError
from textor.near import did_you_mean, excerpt, position
from textor.values import Json, clean_text

#: Nesting beyond this is refused.
MAX_DEPTH = 64
#: At most so many problems are told at once.
MAX_PROBLEMS = 8


class Problem(msgspec.Struct, frozen=True):
    """One thing that does not fit. `path` is "a.b[2]", "" for the arguments as a whole."""

    path: str
    what: str
    mend: str = ""
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = f"{self.path}: {self.what}" if self.path else self.what
        hints = [hint for hint in (self.mend, did_you_mean(self.near)) if hint]
        return " ".join([said if said.endswith((".", "?")) else f"{said}.", *hints])


class ArgumentError(TextorError):
    """The arguments do not fit. `text` is what was written, where it was text; `line` and
    `column` (from 1; 0 = not known) say where in it. `cut` means that the text ended too early."""

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        text: str = "",
        line: int = 0,
        column: int = 0,
        cut: bool = False,
    ) -> None:
        told = [str(problem) for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            told.append(f"({len(problems) - MAX_PROBLEMS} more.)")
        super().__init__(" ".join(told))
        self.problems = tuple(problems)
        self.text = text
        self.line = line
        self.column = column
        self.cut = cut


def parse_json(text: str, place: tuple[int, int] = (1, 1)) -> tuple[Json, int]:
    """The first JSON value of `text` and the offset behind it; `place` is the line and column of
    the text within a longer one.

    Raises `ArgumentError` with line and column; its `cut` tells a text that ended too early.
    """
    start = len(text) - len(text.lstrip())
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        _refuse(text, error, place)
    except RecursionError:
        raise _too_deep() from None
    except _Refused as error:
        raise ArgumentError([Problem("", str(error))], text=text) from None
    check_depth(value)
    return clean(value), end


class _Refused(Exception):
    """JSON that Python would read and we do not."""


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _Refused(f"the name {excerpt(twice)} stands twice in one object; which is meant is not certain")
    return found


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Refused(f"the number {excerpt(text)} is too big")
    return number


def _int(text: str) -> int:
    if len(text) > 4_000:
        raise _Refused(f"the number {excerpt(text)} has {len(text)} digits, which is too many")
    return int(text)


def _constant(text: str) -> NoReturn:
    raise _Refused(f"{text} is no JSON value; leave it out or write null or a string")


_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_pairs, parse_float=_float, parse_int=_int, parse_constant=_constant
)


#: A word or number that the end of the text may have cut: `tru`, `-`, `1.`
_HALF = re.compile(
    r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|N(?:aN?)?|-?(?:\d+(?:\.\d*)?)?(?:[eE][+-]?\d*)?|\.)\Z"
)


def _refuse(text: str, error: json.JSONDecodeError, place: tuple[int, int]) -> NoReturn:
    """Say what is wrong with a text that is no JSON; above all, whether it was cut short."""
    at, tail = error.pos, text[error.pos :]
    string = error.msg.startswith(("Unterminated string", "Invalid \\uXXXX")) and '"' not in tail[1:]
    escape = error.msg.startswith("Invalid \\") and len(tail) < 6 and '"' not in tail
    cut = not tail.strip() or string or escape or error.msg.startswith("Unterminated string")
    cut = cut or (len(tail) < 40 and _HALF.match(tail.rstrip()) is not None)
    if cut:
        at = len(text)
        what = f"the JSON was cut short: it ends in the middle, after {excerpt(text[-40:], 80)}"
        mend = "Nothing was run. Write the whole object again."
    else:
        what = f"this is no JSON: {_reason(error.msg)} at {excerpt(text[at : at + 40])}"
        mend = 'Write one JSON object, with double quotes, and with \\n and \\" for what stands inside them.'
    line, column = position(text, at)
    line, column = line + place[0] - 1, column + (place[1] - 1 if line == 1 else 0)
    problem = Problem("", f"line {line}, column {column}: {what}", mend)
    raise ArgumentError([problem], text=text, line=line, column=column, cut=cut)


_REASONS = {
    "Expecting property name enclosed in double quotes": "a name in double quotes should stand",
    "Expecting ',' delimiter": "a comma or a closing bracket should stand",
    "Expecting ':' delimiter": "a colon should stand",
    "Expecting value": "a value should stand",
    "Illegal trailing comma before end of object": "there is a comma too many",
    "Illegal trailing comma before end of array": "there is a comma too many",
}


def _reason(message: str) -> str:
    for start, words in _REASONS.items():
        if message.startswith(start):
            return words
    return "there is a backslash that escapes nothing" if "escape" in message else message.lower()


def _too_deep() -> ArgumentError:
    return ArgumentError([Problem("", f"the arguments are nested more than {MAX_DEPTH} deep")])


def check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = [v for v in level if isinstance(v, (dict, list, tuple))]
        if not level:
            return
        level = [inner for v in level for inner in (v.values() if isinstance(v, dict) else v)]
    if any(isinstance(v, (dict, list, tuple)) for v in level):
        raise _too_deep()


def clean(value: Json) -> Json:
    """The value with text that can be stored and sent (no lone surrogate, no NUL)."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(inner) for inner in value]
    return value


class Extent:
    """Finds where a JSON object or list ends, as its text comes in pieces; no piece is read twice.

    Brackets are only counted: what stands between them is for `parse_json` to judge.
    """

    __slots__ = ("_depth", "_escaped", "_string", "done")

    def __init__(self) -> None:
        self._depth = 0
        self._string = False
        self._escaped = False
        self.done = False  #: the closing bracket has been read

    def within(self, text: str) -> bool:
        """Whether `text` goes on in an open string and does not end it; it is then read."""
        return self._string and not self._escaped and _IN_STRING.search(text) is None

    def take(self, text: str, at: int = 0) -> int:
        """Read `text[at:]`; returns the offset behind the end, or `len(text)` when it goes on."""
        if self._escaped and at < len(text):
            at, self._escaped = at + 1, False
        while not self.done:
            found = (_IN_STRING if self._string else _BRACKET).search(text, at)
            if found is None:
                return len(text)
            at = found.end()
            character = found.group()
            if character == '"':
                self._string = not self._string
            elif character == "\\":
                self._escaped = at == len(text)
                at += not self._escaped
            else:
                self._depth += 1 if character in "{[" else -1
                self.done = self._depth <= 0
        return at


_IN_STRING = re.compile(r'["\\]')
_BRACKET = re.compile(r'["{}\[\]]')
