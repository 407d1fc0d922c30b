"""Numbers and series as they are written in a line.

A number: `-5`, `1e3`, `4,600` (a comma before exactly three digits parts thousands), `2,5` (else it is
a decimal comma), `1.234,56`, `1 234`, `12 %`, `$4,600`. When one number of a series has a decimal
comma, all of its commas are such.

A series: `Asia=4,600:Africa=1,300`. `;`, `|` and a comma part the pairs as well. A label may hold
`:` and `=`, since a pair ends only behind a number: `12:30=5:13:00=6` are two pairs. Where that is not
enough, `\\:`, `\\=` and `\\\\` stand for the signs themselves, and a label may be quoted: `"a=1"=2`.
JSON is read as well: `{"Asia": 4600}`, `[["Asia", 4600]]`, `[{"label": "Asia", "value": 4600}]`, `[1, 2]`.
"""

from __future__ import annotations

import json
import re

from textor.apps.store import Refused

WAY = "Write Asia=4,600:Africa=1,300, and labels with = and : in quotes."

Pairs = list[tuple[str, float]]

_SPACES = "    ’'_"  # what else parts thousands
_CORE = rf"[-+−]?(?:\d(?:[\d.,]|[{_SPACES}](?=\d{{3}}))*|\.\d+)(?:[eE][-+]?\d+)?"
_MONEY = r"[$€£¥]"
_GAP = r"[ \t\u00a0]*"
_HEAD, _TAIL = rf"(?P<lead>[-+−]?){_GAP}{_MONEY}?{_GAP}", rf"{_GAP}(?:%|{_MONEY})?{_GAP}"
NUMBER = re.compile(rf"{_GAP}{_HEAD}(?P<core>{_CORE}){_TAIL}")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_POINTS = re.compile(r"[-+]?\d{1,3}(\.\d{3}){2,}|[-+]?\d{1,3}(\.\d{3})+,\d+")
BIGGEST = 1e300  #: so that sums and scales stay finite
LONGEST = 60  #: characters of a number, with its signs and spaces
_SEPARATORS = ":;,|\n"


def parse_number(text: str, decimal_comma: bool = False) -> float:
    """One number. Raises `Refused` when it is none."""
    found = NUMBER.fullmatch(text)
    plain = _plain(found["lead"] + found["core"], decimal_comma) if found else ""
    try:
        value = float(plain)
    except ValueError:
        raise Refused(f"{text.strip()[:60]!r} is no number.", "Write one such as 4,600 or -1.5.") from None
    if not abs(value) <= BIGGEST:
        raise Refused(f"{text.strip()[:60]!r} is too big for a chart.")
    return value


def _plain(text: str, decimal_comma: bool) -> str:
    """A number as Python writes it: the thousands gone, a point before the fraction."""
    text = text.replace("−", "-")
    for space in _SPACES:
        text = text.replace(space, "")
    if "," not in text:
        return text.replace(".", "") if _POINTS.fullmatch(text) else text
    if _POINTS.fullmatch(text) or (decimal_comma and text.count(",") == 1):
        return text.replace(".", "").replace(",", ".")
    if _THOUSANDS.fullmatch(text):
        return text.replace(",", "")
    mantissa, e, exponent = text.partition("e") if "e" in text else text.partition("E")
    if mantissa.count(",") == 1 and "." not in mantissa:
        return mantissa.replace(",", ".") + e + exponent
    return ""


def has_decimal_comma(text: str) -> bool:
    """Whether the comma of a number can only be a decimal one."""
    found = NUMBER.fullmatch(text)
    core = found["core"].replace("−", "-") if found else ""
    return core.count(",") == 1 and not _THOUSANDS.fullmatch(core)


def parse_series(text: str) -> Pairs:
    """Labels with their values, in their order. Raises `Refused` with the part that is wrong."""
    stripped = text.strip()
    if not stripped:
        raise Refused("The series is empty.", "Write it such as Asia=4,600:Africa=1,300.")
    if stripped[0] in "[{":
        try:
            return from_json(json.loads(stripped))
        except ValueError:
            pass  # no JSON after all: a label may begin so
    found = _scan(stripped)
    decimal = any(has_decimal_comma(value) for _, value in found)
    return [(label, parse_number(value, decimal)) for label, value in found]


def from_json(tree: object) -> Pairs:
    """Pairs from the JSON forms. Raises `Refused`."""
    if isinstance(tree, dict):
        items: list[object] = [[key, value] for key, value in tree.items()]
    else:
        items = list(tree) if isinstance(tree, list) else []
    if not items:
        raise Refused("The series is empty.", 'Write it such as {"Asia": 4600}.')
    return [_item(item, number) for number, item in enumerate(items, 1)]


def _item(item: object, number: int) -> tuple[str, float]:
    match item:
        case [label, value]:
            pass
        case {"label": label, "value": value} | {"name": label, "value": value} | {"x": label, "y": value}:
            pass
        case _:
            label, value = str(number), item
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Refused(f"{str(value)[:60]!r} is no number.")
    return str(label), parse_number(value if isinstance(value, str) else repr(value))


def _scan(text: str) -> list[tuple[str, str]]:
    """Labels and the texts of their numbers. From each place, the first `=` with a number and a
    separator (or the end) behind it closes the pair."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        label, behind = _label(text, at)
        if behind is None:
            told = text[at : at + 60].strip(" :;,|\n")
            raise Refused(f"{told!r} has no number behind a =.", WAY)
        end = _number_end(text, behind)
        found.append((label, text[behind:end]))
        at = end + 1
        while at < len(text) and text[at] in _SEPARATORS + " ":
            at += 1
    return found


def _label(text: str, at: int) -> tuple[str, int | None]:
    """The label that begins at `at`, and the offset of its number; None when there is none."""
    while at < len(text) and text[at] == " ":
        at += 1
    if text[at : at + 1] == '"' and (
        quoted := re.compile(r'"((?:[^"\\]|\\.)*)"\s*=', re.DOTALL).match(text, at)
    ):
        return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL), quoted.end()
    label: list[str] = []
    suspect, has_equals = "", False
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] in tuple('\\:=;,|"'):
            label.append(text[at + 1])
            at += 2
            continue
        if text[at] == "=" and _number_end(text, at + 1) > at + 1:
            plain = "".join(label).strip()
            if not plain or suspect:
                raise Refused(f"{(suspect or text[at:])[:60]!r} is no pair.", WAY)
            return plain, at + 1
        if text[at] in _SEPARATORS and has_equals:
            suspect = "".join(label).strip()  # what looks like a pair, and has no number
        label.append(text[at])
        has_equals = has_equals or text[at] == "="
        at += 1
    return "", None


def _number_end(text: str, at: int) -> int:
    """Where the number at `at` ends: before a separator or at the end; `at` when there is none.

    A comma may belong to the number or part it from the next pair, so shorter readings are tried.
    """
    found = NUMBER.match(text, at, at + LONGEST)
    end = found.end() if found else at
    while end > at:
        closed = end == len(text) or text[end] in _SEPARATORS
        if closed and NUMBER.fullmatch(text, at, end) and not text[at:end].endswith(","):
            return end
        end = text.rfind(",", at, end)
    return at
