"""The `step` dialect: one structured object per iteration, after micro-agi-js.

    {"thought": …, "description": …, "criticism": …, "command": {"name": …, "arguments": {…}}}
    {"thought": …, "response": "the answer to the caller"}
    {"thought": …}                                                       think on

The object comes as the native function call `iterate`, by structured output, or as JSON text,
bare where a line begins or in a ```json fence; the parser takes whichever comes. When an object
has both, the command counts and the response is prose. One object is one iteration: the first one
counts, and further ones are dropped.

It carries every JSON value and one action; lone surrogates and NUL arrive as U+FFFD.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.dialects.names import tool_names
from textor.dialects.near import signature
from textor.dialects.port import Variables
from textor.dialects.step_parser import ITERATE, StepParser
from textor.dialects.tools import call_schema, rendered, wire_name
from textor.errors import UseError
from textor.messages import Grammar, Message, ToolSpec

_HOW = {
    True: "Each of your replies is one call of `iterate`",
    False: "Each of your replies is one JSON object and nothing else",
}
_TEACH = """{how}: thought, description (of the step), criticism (what may be wrong), and
either command {"name", "arguments"}, whose result you are then shown, or response, your final answer,
or neither, to think on. For example:
{"thought": "…", "description": "…", "criticism": "…", "command": {example}}
{"thought": "…", "response": "Done."}
"""
_BRACES = re.compile(r"\{(how|example)\}")


class Step:
    """The dialect. `native` False: the object is written as text."""

    def __init__(self, *, native: bool = True) -> None:
        self._native = native

    @property
    def name(self) -> str:
        return "step"

    @property
    def order(self) -> Literal["parallel", "serial"]:
        return "serial"

    @property
    def final(self) -> bool:
        return False

    def teach(self, capabilities: Sequence[Capability]) -> str:
        names = tool_names(c.name for c in capabilities)
        told = [f"{signature(names.wire(c.name), c.parameters)}: {c.purpose}" for c in capabilities]
        name = names.wire(capabilities[0].name) if capabilities else "…"
        example = f'{{"name": "{name}", "arguments": {{…}}}}'
        parts = {"how": _HOW[self._native], "example": example}
        text = _BRACES.sub(lambda found: parts[found.group(1)], _TEACH)
        return text + ("The commands:\n" + "\n".join(told) if told else "There are no commands.")

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        if not self._native:
            return ()
        return (
            ToolSpec(ITERATE, "One step: think, then give a command or a response.", _schema(capabilities)),
        )

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> StepParser:
        return StepParser(capabilities)

    def names(self, message: str) -> dict[str, str]:
        return {}

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        """The object as a JSON Schema; None for native calls, which the server holds to it."""
        return None if self._native else Grammar(json_schema=_schema(capabilities))

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        """The object with the one action as its command. Raises `UseError` for more than one."""
        if len(actions) != 1:
            raise UseError(f"A step holds one command, not {len(actions)}.", "Write one step for each.")
        command = {"name": wire_name(actions[0], capabilities), "arguments": actions[0].arguments}
        return json.dumps({"thought": "", "command": command}, ensure_ascii=False)

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        return rendered(outcomes)


def _schema(capabilities: Sequence[Capability]) -> dict[str, Any]:
    """The object: `thought` first, so that a model thinks before it decides."""
    names = tool_names(c.name for c in capabilities)
    text = {"type": "string"}
    properties: dict[str, Any] = {"thought": text, "description": text, "criticism": text}
    if capabilities:
        properties["command"] = {"anyOf": [call_schema(names.wire(c.name), c) for c in capabilities]}
    properties["response"] = text
    return {
        "type": "object",
        "properties": properties,
        "required": ["thought"],
        "additionalProperties": False,
    }
