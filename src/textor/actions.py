"""What an agent can do and what came of it: `Capability`, `Action`, `Outcome`.

All dialects produce the same `Action`; all providers answer with the same `Outcome` (law 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from textor.values import Json, Labels, Value

Effect = Literal["read", "write", "execute", "network", "outward", "spend"]
Repeat = Literal["idempotent", "keyed", "once"]
OutcomeState = Literal["done", "failed", "denied", "cancelled", "unknown"]

EFFECTS: tuple[Effect, ...] = ("read", "write", "execute", "network", "outward", "spend")


def no_parameters() -> dict[str, Json]:
    return {"type": "object", "properties": {}}


class Capability(msgspec.Struct, frozen=True):
    """Anything an agent can do.

    `name` is `area.verb`; `parameters` a JSON Schema of type object, whose property order is the
    order of positional parameters; `phrases` are action lines of the `plan` dialect with `[]`
    where a parameter stands, in that order; `examples` are further ways to say it.
    """

    name: str
    purpose: str
    parameters: dict[str, Json] = msgspec.field(default_factory=no_parameters)
    effects: tuple[Effect, ...] = ("read",)
    repeat: Repeat = "once"
    phrases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    provider: str = ""
    cancellable: bool = True  #: its provider ends it for certain when it is cancelled
    sandboxed: bool = False  #: what it executes runs in a sandbox without network, over the workspace
    outside: bool = False  #: it acts outside the workspace, whatever its arguments say
    returns: bool = True  #: False: its outcome is of no interest to the model (say, `speak`)
    ends_turn: bool = False  #: True: a done outcome is the agent's reply (`respond`)


class Action(msgspec.Struct, frozen=True):
    """One parsed request to use a capability.

    `id` is unique within the session and is handed to providers as idempotency key. A native
    function call has its `call_id` and `wire` (the function's name) as on the wire, and `text` is
    then the text of its arguments, verbatim. An action with a `fault` was not
    understood: it never runs, and the fault is its failed outcome; one with a `doubt` was understood
    by its meaning and is asked about. An action without a capability is a free line of a plan.
    """

    id: str
    capability: str
    arguments: dict[str, Json] = {}
    call_id: str = ""
    wire: str = ""
    fault: str = ""
    text: str = ""  #: how the model wrote it
    labels: Labels = ()
    doubt: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """What came of an action; every action has exactly one (law 3).

    `text` is what the model is shown; `values` are media and big texts that came with it;
    `data` is the structured result where there is one; `exit_status` that of a program; `hands`
    the key of the reply or question of another agent that it brings.
    """

    state: OutcomeState
    text: str = ""
    values: tuple[Value, ...] = ()
    data: Json = None
    exit_status: int | None = None
    hands: str = ""
    labels: Labels = ()

    @classmethod
    def failed(cls, text: str) -> Outcome:
        return cls("failed", text)


class Catalogue:
    """The capabilities that one agent is offered, by name, in a stable order."""

    def __init__(self, capabilities: Iterable[Capability]) -> None:
        self._by_name = {c.name: c for c in capabilities}

    def __iter__(self) -> Iterator[Capability]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Capability | None:
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)
