"""The `tools` dialect: the provider's own function calls, several at the same time.

Calls arrive natively, or, where a server left them in the text, in one of the forms of
`text_calls`. In the text a call acts where a line begins with it; beside native calls text never
acts. A whole reply that is nothing but a JSON call, bare or in a ```json fence, acts as well; a
```json fence beside other text is an example, and the model is told so. What was read from text
has no `call_id`, and its outcome goes back as text.

It carries every JSON value. Lone surrogates and NUL arrive as U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.dialects.names import tool_names
from textor.dialects.near import signature
from textor.dialects.outcomes import media_message, outcome_text
from textor.dialects.port import Variables
from textor.dialects.schemas import declared, inlined
from textor.dialects.tools_parser import ToolsParser
from textor.messages import Grammar, Message, ToolResult, ToolSpec, said

_NATIVE = (
    "Act by calling functions; calls in one reply run at the same time. "
    "A reply without a call is your answer and ends your turn."
)
_TEXT = """To act, begin a line with a call; calls in one reply run at the same time:
<tool_call>
{example}
</tool_call>
A reply without a call is your answer and ends your turn. The functions:
"""


class Tools:
    """The dialect. `native` False is for servers without function calls: the functions are told
    in the prompt and called in the text."""

    def __init__(self, *, native: bool = True) -> None:
        self._native = native

    @property
    def name(self) -> str:
        return "tools"

    @property
    def order(self) -> Literal["parallel", "serial"]:
        return "parallel"

    @property
    def final(self) -> bool:
        return False

    def teach(self, capabilities: Sequence[Capability]) -> str:
        if self._native or not capabilities:
            return _NATIVE if capabilities else ""
        names = tool_names(c.name for c in capabilities)
        first = capabilities[0]
        example = _call(names.wire(first.name), _example(first))
        told = [f"{signature(names.wire(c.name), c.parameters)}: {c.purpose}" for c in capabilities]
        return _TEXT.replace("{example}", example) + "\n".join(told)

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        if not self._native:
            return ()
        names = tool_names(c.name for c in capabilities)
        return tuple(ToolSpec(names.wire(c.name), c.purpose, declared(c.parameters)) for c in capabilities)

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> ToolsParser:
        return ToolsParser(capabilities)

    def names(self, message: str) -> dict[str, str]:
        return {}

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        """One call as a JSON object. None for native calls, which the server holds to their
        schemas itself, and where no capability is an answer: the model could then never end."""
        if self._native or not any(c.ends_turn for c in capabilities):
            return None
        names = tool_names(c.name for c in capabilities)
        return Grammar(json_schema={"anyOf": [call_schema(names.wire(c.name), c) for c in capabilities]})

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        """The calls as text, each between `<tool_call>` and `</tool_call>`."""
        calls = (_call(wire_name(action, capabilities), action.arguments) for action in actions)
        return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        return rendered(outcomes)


def rendered(outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
    """Outcomes of native calls as one `tool` message, those of calls in the text as text of the
    user, and their media after them."""
    names = tool_names(action.capability for action, _ in outcomes)
    native: list[ToolResult] = []
    texts: list[str] = []
    for action, outcome in outcomes:
        name, text = names.wire(action.capability), outcome_text(outcome)
        if action.call_id:
            native.append(ToolResult(action.call_id, action.wire or name, text))
        else:
            texts.append(f'<tool_response name="{name}">\n{text}\n</tool_response>')
    messages = [Message("tool", tuple(native))] if native else []
    if texts:
        messages.append(said("user", "\n".join(texts)))
    return (*messages, *media_message(outcome for _, outcome in outcomes))


def wire_name(action: Action, capabilities: Sequence[Capability]) -> str:
    """The name to write; the capability's own where it is not known what else is offered, which
    the parser reads as well."""
    names = tool_names(c.name for c in capabilities)
    return names.wire(action.capability) if action.capability in names else action.capability


def call_schema(name: str, capability: Capability) -> dict[str, object]:
    """The JSON Schema of one call of a capability."""
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": inlined(capability.parameters)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _call(name: str, arguments: dict[str, object]) -> str:
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def _example(capability: Capability) -> dict[str, object]:
    """Arguments for an example: the required ones, by their names."""
    properties = capability.parameters.get("properties") or {}
    wanted = [key for key in capability.parameters.get("required") or () if key in properties]
    samples: dict[str, object] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    found: dict[str, object] = {}
    for key in wanted:
        schema = properties[key] if isinstance(properties[key], dict) else {}
        found[key] = (schema.get("enum") or [samples.get(str(schema.get("type")), "…")])[0]
    return found
