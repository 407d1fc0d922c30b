"""A provider as a table: each capability next to the coroutine that performs it.

The capabilities in the box are written out by hand, schema and all, so that a session that only
uses them never imports pydantic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from textor.actions import Action, Capability, Outcome
from textor.capabilities.port import Scope
from textor.errors import CapabilityError
from textor.values import BIG, Json, shown, text_value

Handler = Callable[[dict[str, Json], Scope], Awaitable[Outcome]]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True)
class Entry:
    capability: Capability
    perform: Handler


class TableProvider:
    """Serves a fixed list of entries under one provider name."""

    def __init__(self, name: str, entries: Iterable[Entry]) -> None:
        self.name = name
        self._entries = {
            e.capability.name: Entry(msgspec.structs.replace(e.capability, provider=name), e.perform)
            for e in entries
        }

    async def capabilities(self) -> Sequence[Capability]:
        return [entry.capability for entry in self._entries.values()]

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        entry = self._entries.get(action.capability)
        if entry is None:
            return Outcome.failed(f"{self.name} has no capability {action.capability!r}.")
        try:
            arguments = checked(action.arguments, entry.capability)
            return await entry.perform(arguments, scope)
        except CapabilityError as error:
            return Outcome.failed(str(error))

    async def close(self) -> None:
        """Nothing is held between two actions."""


def parameters(required: Sequence[str] = (), /, **properties: Json) -> dict[str, Json]:
    """A JSON Schema of type object; the order of the properties is that of positions."""
    schema: dict[str, Json] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


def checked(arguments: dict[str, Json], capability: Capability) -> dict[str, Json]:
    """The arguments with defaults filled in; `CapabilityError` when one is missing, unknown or wrong.

    Only what the schemas of this package use: flat properties with type, default and bounds.
    """
    properties: dict[str, dict[str, Any]] = capability.parameters["properties"]
    for name in arguments:
        if name not in properties:
            raise CapabilityError(
                f"{capability.name} has no parameter {name!r}.", f"It has: {', '.join(properties) or 'none'}."
            )
    for name in capability.parameters.get("required", ()):
        if name not in arguments:
            raise CapabilityError(f"{capability.name} needs the parameter {name!r}.")
    full: dict[str, Json] = {}
    for name, schema in properties.items():
        full[name] = arguments.get(name, schema.get("default"))
        if name in arguments:
            _check(capability.name, name, full[name], schema)
    return full


def _check(capability: str, name: str, value: Json, schema: dict[str, Any]) -> None:
    kind = schema["type"]
    fits = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not fits:
        raise CapabilityError(f"{capability}: {name} must be of type {kind}, not {value!r:.80}.")
    low, high = schema.get("minimum"), schema.get("maximum")
    # written so that NaN, which compares with nothing, is refused as well
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        raise CapabilityError(f"{capability}: {name} must be from {low} to {high}, not {value!r:.80}.")


def text_outcome(text: str, scope: Scope, *, data: Json = None, exit_status: int | None = None) -> Outcome:
    """A done outcome that shows a text whole when it is small, else head, tail and handle of a value."""
    value = text_value(text, scope.blobs)
    if value.size <= BIG:
        return Outcome("done", value.text or "", data=data, exit_status=exit_status)
    return Outcome("done", shown(text, value.handle), values=(value,), data=data, exit_status=exit_status)
