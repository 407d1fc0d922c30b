"""What a model thought in a reply of the `step` dialect, for those who look on."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from textor.dialects.step_parser import ITERATE, KEYS
from textor.messages import Message, ToolCall

#: An object begins a line, as the parser of the dialect has it.
_OPENS = re.compile(rf'^\s*(\{{\s*"(?:{"|".join(KEYS)})")', re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)


class Thoughts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step without its command and response. The three fields are micro-agi-js's."""

    thought: str = ""
    description: str = ""
    criticism: str = ""

    def __str__(self) -> str:
        """One line for each field that says something: "thought: …"."""
        told = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return "\n".join(f"{name}: {text}" for name, text in told if text)


def thoughts_of(message: Message) -> Thoughts:
    """The thoughts in a reply; empty where it holds no step that can be read."""
    for part in message.parts:
        if isinstance(part, ToolCall) and part.name == ITERATE:
            return _thoughts(part.arguments, 0)
    opens = _OPENS.search(message.text)
    return _thoughts(message.text, opens.start(1)) if opens else Thoughts()


def _thoughts(text: str, start: int) -> Thoughts:
    try:
        step: Any = _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return Thoughts()
    if not isinstance(step, dict):
        return Thoughts()
    return Thoughts(*(_said(step.get(name)) for name in Thoughts.__struct_fields__))


def _said(value: Any) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
