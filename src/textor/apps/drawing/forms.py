"""Places and sizes as they are written in a line.

`X1=100, Y1=100, X2=100, Y2=300` and `X=90, Y=200, Text=a`, in any order and case, parted by commas,
semicolons or blanks; JSON objects as well. The text may hold anything: it goes on to the end, or to a
further `Name=` of the form that has not come yet, or it stands in quotes. Without names the numbers count in
order: `100, 100 to 100, 300`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from textor.apps.store import Refused

LIMIT = 100_000  #: no coordinate is further from 0

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_BARE = re.compile(_NUMBER)
_ONLY_NUMBERS = re.compile(rf"[\s,;()]*{_NUMBER}(?:(?:[\s,;()]|to|->|and)+{_NUMBER})*[\s,;()]*")


def parse_form(
    text: str, numbers: Sequence[str], words: Sequence[str] = (), also: Mapping[str, str] | None = None
) -> dict[str, float | str]:
    """The parts of a form: `numbers` in the order of a form without names, and `words`, which are texts.

    `also` gives further names ("width" for "w"). What is missing is left out. Raises `Refused` for
    what does not belong, comes twice or is no number.
    """
    text = text.strip()
    if text.startswith("{"):
        return _from_json(text, numbers, words, also or {})
    names = {name: name for name in (*numbers, *words)} | dict(also or {})
    pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    # A part begins at the start or behind a separator, so that "a, X=1" inside a text ends it.
    mark = re.compile(rf"(?:^|[\s,;]+)({pattern})\s*[=:]\s*", re.IGNORECASE)
    found = _marks(text, mark, words)
    if not found and _ONLY_NUMBERS.fullmatch(text) and not words:
        bare = _BARE.findall(text)
        if len(bare) <= len(numbers):
            return {name: number(name, value) for name, value in zip(numbers, bare, strict=False)}
    if not found or found[0][1] > 0:
        way = ", ".join(
            f"{name.upper() if len(name) < 3 else name.capitalize()}=…" for name in (*numbers[:4], *words[:1])
        )
        raise Refused(f"{text[:80]!r} is not written as it should be.", f"Write {way}.")
    parts: dict[str, float | str] = {}
    for (given, _, begins), following in zip(found, [*found[1:], ("", len(text), 0)], strict=True):
        name = names[given.lower()]
        value = text[begins : following[1]].strip()
        if name in parts:
            raise Refused(f"{given} comes twice.")
        parts[name] = _unquoted(value) if name in words else number(given, value.rstrip(",; "))
    return parts


def _marks(text: str, mark: re.Pattern[str], words: Sequence[str]) -> list[tuple[str, int, int]]:
    """Name, beginning and beginning of the value of each part, none of them inside quotes."""
    found: list[tuple[str, int, int]] = []
    at = 0
    while match := mark.search(text, at):
        at = match.end()
        if found and found[-1][0].lower() in words and match[1].lower() in {one[0].lower() for one in found}:
            continue  # "y = 3" in a text, whose Y is known
        found.append((match[1], match.start(), at))
        if text[at : at + 1] == '"' and (close := re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at)):
            at = close.end()
    return found


def _from_json(
    text: str, numbers: Sequence[str], words: Sequence[str], also: Mapping[str, str]
) -> dict[str, float | str]:
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise Refused(f"{text[:80]!r} is not JSON: {error}.") from None
    parts: dict[str, float | str] = {}
    for given, value in tree.items():
        name = also.get(given.lower(), given.lower())
        if name in words:
            parts[name] = str(value)
        elif name in numbers:
            parts[name] = number(given, str(value))
        else:
            raise Refused(
                f"{given[:40]!r} does not belong here.", f"There are {', '.join((*numbers, *words))}."
            )
    return parts


def number(name: str, text: str) -> float:
    """A coordinate. Raises `Refused`."""
    try:
        value = float(text)
    except ValueError:
        raise Refused(f"{name} is {text[:40]!r}, which is no number.") from None
    if not -LIMIT <= value <= LIMIT:
        raise Refused(f"{name} is {text[:40]}; it must be from -{LIMIT:,} to {LIMIT:,}.")
    return value


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    return text
