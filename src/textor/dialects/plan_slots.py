"""What the slots of a line hold, by the JSON Schema of the capability.

A string is verbatim. Everything else is written as in JSON, on one line, and converted by the one
table of `textor.arguments`. An empty slot leaves an optional property out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from textor.actions import Action
from textor.arguments import ArgumentError, convert
from textor.dialects.plan_lines import Phrase
from textor.errors import UseError
from textor.values import Json

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def arguments_of(phrase: Phrase, slots: Sequence[str]) -> dict[str, Json]:
    """The arguments that these texts stand for, defaults filled in. Raises `ArgumentError`."""
    parameters = phrase.capability.parameters
    required = parameters.get("required") or ()
    given = {
        name: slot
        for name, slot in zip(phrase.properties, slots, strict=True)
        if name in required or slot.strip()
    }
    return convert(given, parameters)


def filled(phrase: Phrase, action: Action) -> str:
    """The action as a line of this phrase. Raises `UseError` where the line would not be read as
    the same action again."""
    missing = [f"`{name}`" for name in action.arguments if name not in phrase.properties]
    if missing:
        raise UseError(f"`{phrase.shown}` has no slot for {', '.join(missing)}.")
    try:
        wanted = convert(action.arguments, phrase.capability.parameters)
        slots = [encode(wanted[name]) if name in wanted else "" for name in phrase.properties]
        for name, slot in zip(phrase.properties, slots, strict=True):
            if not carries(slot):
                raise UseError(f"A slot cannot hold the line break or the single bracket in `{name}`.")
        read = arguments_of(phrase, slots)
    except ArgumentError as error:
        raise UseError(str(error)) from error
    if not _same(wanted, read):
        raise UseError(f"In `{phrase.shown}` an argument would come back as another value.")
    return phrase.filled(slots)


def carries(text: str) -> bool:
    """Whether a slot can hold `text` verbatim: one line, every bracket in it closed.

    There is no escape sign: any that we chose would occur in somebody's payload, and what a model
    writes must arrive byte for byte.
    """
    depth = 0
    for match in re.finditer(r"[\[\]\n]", text):
        if match[0] == "\n":
            return False
        depth += 1 if match[0] == "[" else -1
        if depth < 0:
            return False
    return depth == 0


def encode(value: Json) -> str:
    """How a value is written in a slot. Brackets inside the strings of a list or an object are
    written as JSON escapes, so that they cannot close the slot."""
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _JSON_STRING.sub(lambda m: m[0].replace("[", "\\u005b").replace("]", "\\u005d"), text)


def _same(one: Json, other: Json) -> bool:
    """Equal as JSON: 1, 1.0 and true are three values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
