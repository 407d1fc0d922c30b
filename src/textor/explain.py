"""What is wrong with data that a person wrote: one sentence instead of a decoder's complaint.

`find_fault` walks plain data (from TOML or YAML) along a type and returns the first thing that
does not fit, with its place and what would be allowed. Used by the configuration and by agent
types; it stands on the ground floor because both do.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from textor import near

Path = tuple[str | int, ...]

#: What the patterns of text types mean, in words.
PATTERNS: dict[str, str] = {}


class Fault(NamedTuple):
    """`path` leads to what is wrong; `problem` is the rest of a sentence that began with it;
    `shown` is the piece of the data that `problem` quotes, for those who must hide it."""

    path: Path
    problem: str
    shown: str = ""


def find_fault(data: Any, expected: Any, path: Path = ()) -> Fault | None:
    """The first fault of `data` as an `expected`, depth first in the order it was written."""
    expected = _inner(expected, data)
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        return _in_struct(data, expected, path)
    if origin is dict and isinstance(data, dict):
        for key, item in data.items():
            if not isinstance(key, str):
                return Fault((*path, str(key)), f"is {_shown(key)} where a name as text is expected")
            if fault := find_fault(item, arguments[1], (*path, key)):
                return fault
        return None
    if origin in (list, tuple) and isinstance(data, list):
        for position, item in enumerate(data):
            if fault := find_fault(item, arguments[0], (*path, position)):
                return fault
        return None
    return _in_leaf(data, expected, path)


def _in_struct(data: Any, expected: type[msgspec.Struct], path: Path) -> Fault | None:
    if not isinstance(data, dict):
        shown = _shown(data)
        return Fault(path, f"is {shown} where a table of keys is expected: {_keys(expected)}.", shown)
    hints = typing.get_type_hints(expected, include_extras=True)
    fields = {f.encode_name: f for f in msgspec.structs.fields(expected)}
    for key, item in data.items():
        if key not in fields:
            return Fault((*path, str(key)), f"is not known{known(str(key), fields)}.")
        if fault := find_fault(item, hints[fields[key].name], (*path, key)):
            return fault
    for key, field in fields.items():
        if field.required and key not in data:
            return Fault((*path, key), "is missing.")
    return None


def _in_leaf(data: Any, expected: Any, path: Path) -> Fault | None:
    if isinstance(data, float) and not math.isfinite(data):
        return Fault(path, "is not a finite number.")
    try:
        msgspec.convert(data, expected)
    except msgspec.ValidationError:
        shown = _shown(data)
        return Fault(path, f"is {shown}; it must be {describe(expected)}.", shown)
    return None


def _inner(expected: Any, data: Any) -> Any:
    """Of a type that may be None, the type that data is to be measured against."""
    if typing.get_origin(expected) in (typing.Union, types.UnionType) and data is not None:
        rest = [a for a in typing.get_args(expected) if a is not types.NoneType]
        if len(rest) == 1:
            return rest[0]
    return expected


def _shown(data: Any) -> str:
    """A value in a sentence, short. Callers see to it that no secret gets here."""
    if isinstance(data, dict):
        return "a table"
    if isinstance(data, list):
        return "a list"
    if isinstance(data, bool):
        return "true" if data else "false"
    if data is None:
        return "empty"
    if isinstance(data, str):
        text = data if len(data) <= 40 else data[:39] + "…"
        return f'"{text}"'.replace("\n", " ")
    return str(data)[:40]


def _keys(expected: type[msgspec.Struct]) -> str:
    return listed(f.encode_name for f in msgspec.structs.fields(expected))


def listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def known(name: str, allowed: Iterable[str], *, all_of: str = "allowed") -> str:
    """`; did you mean X? (allowed: …)` for the end of a sentence about an unknown name."""
    names = list(allowed)
    close = near.nearest(name, names, count=1)
    guess = f"; did you mean {close[0]}?" if close else ""
    return f"{guess} ({all_of}: {listed(names)})" if names else guess


def describe(expected: Any) -> str:
    """A type in words: "a whole number from 1 to 65535"."""
    from msgspec import inspect

    return _described(inspect.type_info(expected), inspect)


def _described(info: Any, inspect: Any) -> str:
    match info:
        case inspect.IntType():
            return "a whole number" + _range(info)
        case inspect.FloatType():
            return "a number" + _range(info)
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return "one of " + listed(str(v) for v in info.values)
        case inspect.StrType():
            return (info.pattern and PATTERNS.get(info.pattern)) or "text in quotes"
        case inspect.ListType() | inspect.VarTupleType() | inspect.TupleType():
            return "a list"
        case inspect.DictType() | inspect.StructType():
            return "a table"
        case inspect.UnionType():
            parts = [_described(t, inspect) for t in info.types if not isinstance(t, inspect.NoneType)]
            return " or ".join(parts)
    return "another kind of value"


def _range(info: Any) -> str:
    low = info.ge if info.ge is not None else info.gt
    high = info.le if info.le is not None else info.lt
    above = " above" if info.gt is not None else ""
    if low is not None and high is not None:
        return f"{above} from {low} to {high}" if not above else f" above {low} and up to {high}"
    if low is not None:
        return f" above {low}" if above else f" of at least {low}"
    return f" of at most {high}" if high is not None else ""


def dotted(path: Path) -> str:
    """A place in the way it is written in TOML: `providers.oai.models."gpt-4.1".temperature`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            plain = step.replace("-", "").replace("_", "").isalnum() and step.isascii()
            text += ("." if text else "") + (step if plain else f'"{step}"')
    return text
