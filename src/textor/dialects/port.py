"""The port of dialects: how a model writes actions, and how outcomes are shown back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.messages import CallChunk, Grammar, Message, ToolSpec
from textor.values import Json, Value

Variables = Mapping[str, Json | Value]  #: an agent's variables: texts as they are, media as values


class Prose(msgspec.Struct, frozen=True):
    """Text that acts on nothing."""

    text: str


class ActionBegun(msgspec.Struct, frozen=True):
    """An action's name has been read; more of it is to come. `position` counts actions from 0."""

    position: int
    capability: str


class ArgumentText(msgspec.Struct, frozen=True):
    """A piece of an argument as it arrives, for faces that show it."""

    position: int
    text: str


class ActionRead(msgspec.Struct, frozen=True):
    """A complete action. `capability`, `arguments` and `fault` as in `Action`; the runner gives
    it its id."""

    action: Action
    line: int = 0
    column: int = 0


class NearMiss(msgspec.Struct, frozen=True):
    """What looks like an action and is none, explained for the model: what, where, what to
    write instead. It never ends a turn as if it were the answer."""

    message: str
    line: int
    column: int
    text: str = ""


class FreeLine(msgspec.Struct, frozen=True):
    """A line that is meant as an action and is written like none: to be compiled by its meaning
    (`plan`)."""

    text: str
    line: int
    column: int


class Retracted(msgspec.Struct, frozen=True):
    """All actions read so far do not count: the model started over (`xml`)."""


class Defined(msgspec.Struct, frozen=True):
    """A variable of the agent was set in the text (`script`); it counts at once."""

    name: str
    text: str


class Reply(msgspec.Struct, frozen=True):
    """Text that is the answer to the caller (`step`). In dialects that never say so, the prose of
    a reply without actions is the answer. `written` is the native call it stood in, verbatim."""

    text: str
    written: str = ""


class ThinkOn(msgspec.Struct, frozen=True):
    """The reply is a thought only (`step`): no action and no answer; the model is to go on.
    `written` is the native call it stood in, verbatim."""

    text: str
    written: str = ""


ParseEvent = (
    Prose
    | ActionBegun
    | ArgumentText
    | ActionRead
    | NearMiss
    | FreeLine
    | Retracted
    | Defined
    | Reply
    | ThinkOn
)


class Parser(Protocol):
    """Reads one reply as it streams. Linear in its length; the same for any chunking."""

    @property
    def done(self) -> bool:
        """Nothing further of this reply can matter: the generation may be stopped."""
        ...

    def feed(self, text: str) -> Sequence[ParseEvent]: ...

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        """A piece of a native function call. Dialects without them treat it as a near miss."""
        ...

    def close(self, finish: str) -> Sequence[ParseEvent]:
        """The reply ended. `finish` "length" or "cut" means that an open action was cut short
        and must not run."""
        ...


class Dialect(Protocol):
    """One way of writing actions. Stateless; one module each under `dialects/`."""

    @property
    def name(self) -> str: ...

    @property
    def order(self) -> Literal["parallel", "serial"]:
        """Whether the actions of one reply run at the same time or one after the other."""
        ...

    @property
    def final(self) -> bool:
        """Whether a reply's actions are the whole turn: their outcomes go to the caller and the
        model is not asked again (`plan`)."""
        ...

    def teach(self, capabilities: Sequence[Capability]) -> str:
        """What the system prompt says of the dialect and of the capabilities."""
        ...

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        """The functions declared natively; empty for dialects of text."""
        ...

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> Parser:
        """A parser for one reply. `variables` are the agent's, for dialects that name them."""
        ...

    def names(self, message: str) -> dict[str, str]:
        """The variables that an incoming message makes (`script`: its code blocks)."""
        ...

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        """What a local model is held to; `request` is the message, for copy slots."""
        ...

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        """The inverse of the parser, with the dialect's escapes. `capabilities` are those offered,
        for the names and schemas of the actions. Raises `UseError` for what it cannot carry."""
        ...

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        """How outcomes are shown back to the model."""
        ...
