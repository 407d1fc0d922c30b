"""Messages as a model is shown them: roles and parts, neutral to any server's wire.

A dialogue is a tuple of `Message`; each is stored once, verbatim, and never rendered again.
They are `msgspec` structs, so that they go into the journal as tagged JSON.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from textor.values import Json, Value

Role = Literal["system", "user", "assistant", "tool"]


class Text(msgspec.Struct, frozen=True, tag="text"):
    text: str


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """What a provider marked as reasoning. Never parsed for actions."""

    text: str
    signature: str = ""  #: handed back to the providers that want it


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A native function call; `arguments` is the model's JSON text, verbatim."""

    call_id: str
    name: str
    arguments: str


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result"):
    call_id: str
    name: str
    text: str


class Media(msgspec.Struct, frozen=True, tag="media"):
    """An image, audio, video or file shown to a model that can take it."""

    value: Value
    caption: str = ""


Part = Text | Reasoning | ToolCall | ToolResult | Media


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt. A `tool` message holds one or more `ToolResult` parts."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(p.text for p in self.parts if isinstance(p, Text))

    def __str__(self) -> str:
        """The message for a reader: who, and the parts one below the other."""
        return "\n".join([f"{self.role}:", *(_told(part) for part in self.parts)])


def _told(part: Part) -> str:
    match part:
        case ToolCall(name=name, arguments=arguments):
            return f"{name}({arguments})"
        case ToolResult(name=name, text=text):
            return f"{name} -> {text}"
        case Reasoning(text=text):
            return f"[reasoning] {text}"
        case Media(value=value, caption=caption):
            return f"[{value.kind}] {caption or value.name}"
        case Text(text=text):
            return text


def said(role: Role, text: str) -> Message:
    """A message of one text part."""
    return Message(role, (Text(text=text),))


def message_size(message: Message) -> int:
    """Characters of a message, for the estimate of tokens."""
    size = 8
    for part in message.parts:
        if isinstance(part, (Text, ToolResult)):
            size += len(part.text)
        elif isinstance(part, ToolCall):
            size += len(part.arguments) + len(part.name)
        else:
            size += 40
    return size


class ToolSpec(msgspec.Struct, frozen=True):
    """A function declared to a model: name on the wire, description, JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Json]


class Context(msgspec.Struct, frozen=True):
    """What a model is shown in one iteration.

    `messages` without the status are a prefix of the next iteration's (law 6). `media` holds the
    bytes of the `Media` parts by blob hash. `max_tokens` bounds the reply.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    media: dict[str, bytes] = {}


class Grammar(msgspec.Struct, frozen=True):
    """What a reply may be, for servers that can hold a model to it. Either form may be absent."""

    gbnf: str = ""
    json_schema: dict[str, Json] | None = None


class Stop(msgspec.Struct, frozen=True):
    """Where a reply ends by itself. A stop string is part of the kept text."""

    sequences: tuple[str, ...] = ()


NO_STOP = Stop()


# -- the chunks in which a model answers ---------------------------------------------------


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a generation used. `cost` in US dollars, None where the price is unknown.

    `estimated` is True where the server did not report and tokens were counted by us.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = None
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.estimated or other.estimated,
        )


NO_USAGE = Usage(cost=0.0)


class TextChunk(msgspec.Struct, frozen=True):
    text: str


class ReasoningChunk(msgspec.Struct, frozen=True):
    text: str
    signature: str = ""


class CallChunk(msgspec.Struct, frozen=True):
    """A piece of a native function call. `index` tells parallel calls apart; `name` and `call_id`
    come at least once, `arguments` in pieces of JSON text."""

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class UsageChunk(msgspec.Struct, frozen=True):
    usage: Usage


class FinishChunk(msgspec.Struct, frozen=True):
    """The server's own end: "stop", "length", "tool_calls", "content_filter"."""

    reason: str


class WaitChunk(msgspec.Struct, frozen=True):
    """The server asks for patience; tried again in `seconds`. What came before is void."""

    reason: str
    seconds: float


class ProgressChunk(msgspec.Struct, frozen=True):
    """Something a person should see while waiting ("loading the model")."""

    text: str


Chunk = TextChunk | ReasoningChunk | CallChunk | UsageChunk | FinishChunk | WaitChunk | ProgressChunk
