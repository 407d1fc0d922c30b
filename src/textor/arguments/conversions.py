"""The one table of conversions from what a model wrote to a JSON type (see `arguments`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from textor.arguments.json_text import ArgumentError, parse_json
from textor.near import excerpt
from textor.values import Json

FAILED = object()  #: no conversion

_NUMBER = re.compile(r"[+-]?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")


def _number(value: Json) -> Json:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        return FAILED
    text = value.strip()
    number = int(text) if text.lstrip("+-").isdigit() else float(text)
    return number if math.isfinite(number) else FAILED


def _integer(value: Json) -> Json:
    number = value if isinstance(value, float) else _number(value)
    return int(number) if isinstance(number, (int, float)) and number % 1 == 0 else FAILED


def _boolean(value: Json) -> Json:
    return (
        {"true": True, "false": False}.get(value.strip().lower(), FAILED)
        if isinstance(value, str)
        else FAILED
    )


def _null(value: Json) -> Json:
    return None if isinstance(value, str) and value.strip().lower() == "null" else FAILED


def _from_json(kind: type) -> Callable[[Json], Json]:
    def read(value: Json) -> Json:
        if not isinstance(value, str):
            return FAILED
        try:
            found, end = parse_json(value)
        except ArgumentError:
            return FAILED
        return found if isinstance(found, kind) and not value[end:].strip() else FAILED

    return read


#: What each type accepts besides itself.
CONVERSIONS: dict[str, Callable[[Json], Json]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "array": _from_json(list),
    "object": _from_json(dict),
}

WORDS = {
    "string": ("a", "string"),
    "integer": ("an", "integer"),
    "number": ("a", "number"),
    "boolean": ("a", "boolean"),
    "null": ("", "null"),
    "array": ("a", "list"),
    "object": ("an", "object"),
}


def is_type(value: Json, type_: str) -> bool:
    if type_ == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if type_ == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    return isinstance(value, kinds.get(type_, object))


def kind_of(value: Json) -> str:
    for type_ in ("null", "boolean", "integer", "number", "string", "array", "object"):
        if is_type(value, type_):
            article, word = WORDS[type_]
            return f"{article} {word}".strip()
    return f"a {type(value).__name__}"


def mend(value: Json, types: frozenset[str]) -> str:
    """How to write what was probably meant."""
    if "string" in types and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'Write it in quotes: "{value}".'
    if types == {"array"} and not isinstance(value, (dict, list)):
        return f"Write it as a list: [{excerpt(value, 30)}]."
    if types <= {"integer", "number"} and isinstance(value, str):
        return "Write the bare number."
    return ""


def json_type(value: Json) -> str:
    return next(
        (t for t in ("null", "boolean", "integer", "number", "string", "array") if is_type(value, t)),
        "object",
    )


def same(left: Json, right: Json) -> bool:
    """Equal and of the same type: 3 is not "3" and True is not 1."""
    return type(left) is type(right) and bool(left == right)
