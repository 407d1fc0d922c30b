"""Reads a docstring: the purpose, and what it says of each parameter.

Understands the three common forms, as they are written and not as they are specified:
Google (`Args:` and `name (type): text`), numpy (`Parameters`, dashes, `name : type`, indented
text) and Sphinx (`:param type name: text`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ARGS = re.compile(r"(args|arguments|parameters|params|keyword args|keyword arguments)\s*:?", re.IGNORECASE)
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?!:)\s*(.*)")
_NUMPY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SECTION = re.compile(
    r"(returns?|yields?|raises|examples?|notes?|see also|references|warnings?|attributes|todo)\s*:?",
    re.IGNORECASE,
)


@dataclass
class Docstring:
    purpose: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str) -> Docstring:
    """`text` without its common indent, as `inspect.getdoc` gives it."""
    lines = text.split("\n")
    doc = Docstring(_purpose(lines))
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        sphinx = _SPHINX.fullmatch(line)
        if sphinx:
            number, more = _indented(lines, number + 1, _indent(lines[number]))
            doc.parameters[sphinx[1]] = _joined([sphinx[2], *more])
        elif _ARGS.fullmatch(line) and number + 1 < len(lines):
            if re.fullmatch(r"-{3,}|={3,}", lines[number + 1].strip()):
                number = _numpy(lines, number + 2, doc.parameters)
            elif line.endswith(":"):
                number = _google(lines, number + 1, _indent(lines[number]), doc.parameters)
            else:
                number += 1
        else:
            number += 1
    return doc


def _purpose(lines: list[str]) -> str:
    """The first paragraph, up to the first section."""
    found: list[str] = []
    for number, line in enumerate(lines):
        text = line.strip()
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        heading = text.endswith(":") or bool(re.fullmatch(r"-{3,}", following))
        is_section = heading and (_ARGS.fullmatch(text) or _SECTION.fullmatch(text))
        if (not text and found) or is_section or re.match(r":\w+[^:]*:", text):
            break
        found.append(text)
    return _joined(found)


def _google(lines: list[str], number: int, outer: int, parameters: dict[str, str]) -> int:
    """Read entries that stand deeper than `outer`; the line after them."""
    inner: int | None = None
    while number < len(lines):
        line = lines[number]
        if not line.strip():
            number += 1
            continue
        inner = _indent(line) if inner is None else inner
        if _indent(line) <= outer or _indent(line) < inner:
            break
        entry = _GOOGLE.fullmatch(line.strip())
        number, more = _indented(lines, number + 1, inner)
        if entry:
            parameters[entry[1]] = _joined([entry[2], *more])
    return number


def _numpy(lines: list[str], number: int, parameters: dict[str, str]) -> int:
    while number < len(lines):
        line = lines[number]
        if not line.strip():
            number += 1
            continue
        underlined = number + 1 < len(lines) and re.fullmatch(r"-{3,}|={3,}", lines[number + 1].strip())
        entry = _NUMPY.fullmatch(line.strip())
        if underlined or not entry:
            break
        number, more = _indented(lines, number + 1, _indent(line))
        for name in re.split(r"\s*,\s*", entry[1]):
            parameters[name] = _joined(more)
    return number


def _indented(lines: list[str], number: int, outer: int) -> tuple[int, list[str]]:
    """The lines that stand deeper than `outer`, up to one that does not; blank lines end them."""
    found: list[str] = []
    while number < len(lines) and lines[number].strip() and _indent(lines[number]) > outer:
        found.append(lines[number])
        number += 1
    return number, found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
