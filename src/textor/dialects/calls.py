"""Native function calls put together from the pieces in which servers send them.

Servers differ: some leave the index out or give every call the index 0, some repeat the name in
each piece, some send it after the arguments, some give no id or the same one twice. `Calls` makes
of all that a list of calls in which each has a name that a server takes back and an id of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from textor.actions import Action, Catalogue
from textor.arguments import ArgumentError, parse_arguments
from textor.arguments.json_text import Extent
from textor.dialects.names import TOOL_LIMIT, Names, tool_name
from textor.dialects.near import unknown_name, wrong_arguments
from textor.messages import CallChunk, ToolCall
from textor.values import Json


@dataclass
class OpenCall:
    """One call as it arrives. `name` is the model's; `complete` that its JSON has ended."""

    name: str = ""
    call_id: str = ""
    pieces: list[str] = field(default_factory=list)
    extent: Extent = field(default_factory=Extent)
    begun: bool = False  #: a face has been told
    told: int = 0  #: how many pieces a face has been told

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def complete(self) -> bool:
        return self.extent.done


class Calls:
    """The calls of one reply. `feed` each chunk; `finished` gives them as history keeps them."""

    def __init__(self) -> None:
        self.open: list[OpenCall] = []  #: in the order of their first pieces
        self._by_index: dict[int, OpenCall] = {}

    def feed(self, chunk: CallChunk) -> int:
        """Take a piece; returns the place of its call in `open`. A negative index is a missing
        one."""
        call = self._find(chunk)
        if call is None:
            call = OpenCall()
            self.open.append(call)
        if chunk.index >= 0:
            self._by_index[chunk.index] = call
        call.call_id = call.call_id or chunk.call_id
        if chunk.name and chunk.name != call.name:
            # pieces of a name, or the whole name again and longer
            call.name = chunk.name if chunk.name.startswith(call.name) else call.name + chunk.name
        if chunk.arguments:
            call.pieces.append(chunk.arguments)
            call.extent.take(chunk.arguments)
        return self._place(call)

    def finished(self) -> tuple[ToolCall, ...]:
        """The calls for the history: names as a wire allows them, each id once.

        A missing id is made from the call's content and place, so that it is the same each time
        and seldom the same as that of another iteration.
        """
        seen: set[str] = set()
        calls: list[ToolCall] = []
        for place, call in enumerate(self.open):
            call_id = call.call_id if call.call_id and call.call_id not in seen else _id(place, call)
            seen.add(call_id)
            calls.append(ToolCall(call_id, tool_name(call.name)[:TOOL_LIMIT], call.arguments))
        return tuple(calls)

    def _place(self, call: OpenCall) -> int:
        if call is self.open[-1]:
            return len(self.open) - 1
        return next(place for place, other in enumerate(self.open) if other is call)

    def _find(self, chunk: CallChunk) -> OpenCall | None:
        """The call that a piece goes on with; None when it begins a new one."""
        if chunk.index >= 0:
            known = self._by_index.get(chunk.index)
        elif chunk.call_id:
            known = next((call for call in self.open if call.call_id == chunk.call_id), None)
        else:
            known = self.open[-1] if self.open else None
        if known is None or (chunk.call_id and known.call_id and chunk.call_id != known.call_id):
            return None
        begins_anew = bool(chunk.name) and bool(known.pieces) and bool(known.name)
        if begins_anew and (known.complete or chunk.name != known.name):
            return known if chunk.call_id and chunk.call_id == known.call_id else None
        return known


def _id(place: int, call: OpenCall) -> str:
    content = f"{place}\0{call.name}\0{call.arguments}".encode("utf-8", "surrogatepass")
    return f"call_{hashlib.sha256(content).hexdigest()[:16]}"


def native_action(
    call: OpenCall, known: ToolCall, names: Names, catalogue: Catalogue, cut: bool
) -> tuple[Action, str]:
    """The action of a native call, and the prose behind its arguments. Whatever is wrong becomes
    its fault, so that the call has an outcome. `cut`: the reply ended early, with this call."""
    name = names.name(call.name)
    arguments: dict[str, Json] = {}
    rest = fault = ""
    if name is None:
        fault = unknown_name(call.name, names.wires)
    elif cut and not call.complete:
        fault = f"{call.name} was not run: the reply was cut short in the middle of it. Write it again."
    else:
        capability = catalogue.get(name)
        assert capability is not None
        try:
            parsed = parse_arguments(call.arguments, capability.parameters)
            arguments, rest = parsed.arguments, parsed.rest
        except ArgumentError as error:
            fault = wrong_arguments(call.name, error)
            fault += f"\nThe arguments were: {error.text[-200:]}" if error.cut else ""
    action = Action("", name or call.name, arguments, known.call_id, known.name, fault, call.arguments)
    return action, rest
