"""Reads one streamed reply with a dialect's parser: chunks in, message and actions out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from textor.actions import Action, Capability, Catalogue
from textor.arguments import ArgumentError, convert
from textor.dialects.foreign import watched
from textor.dialects.port import (
    ActionBegun,
    ActionRead,
    ArgumentText,
    Defined,
    Dialect,
    FreeLine,
    NearMiss,
    ParseEvent,
    Prose,
    Reply,
    Retracted,
    ThinkOn,
    Variables,
)
from textor.messages import (
    CallChunk,
    Chunk,
    FinishChunk,
    Message,
    Part,
    Reasoning,
    ReasoningChunk,
    Text,
    TextChunk,
    ToolCall,
    Usage,
    UsageChunk,
)
from textor.values import clean_text

#: The fixed capability through which found ones are used.
USE = "use"


class Reading(msgspec.Struct, frozen=True):
    """What a reply said: verbatim message, actions in order, the answer, near misses."""

    message: Message
    actions: tuple[Action, ...]
    reply: str
    faults: tuple[str, ...]
    think: bool
    finish: str
    usage: Usage | None
    defined: dict[str, str] = {}


class Reader:
    """One reply as it arrives. `prefix` starts the ids of its actions."""

    def __init__(
        self,
        dialect: Dialect,
        capabilities: Catalogue,
        prefix: str,
        variables: Variables | None = None,
        findable: Callable[[str], Capability | None] = lambda name: None,
    ) -> None:
        self._findable = findable
        self._parser = watched(dialect.name, dialect.parser(capabilities, variables), capabilities)
        self._prefix = prefix
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._signature = ""
        self._prose: list[str] = []
        self._answer: list[str] = []
        self._written = ""  # a native call of `step` that only thought or answered
        self._actions: list[Action] = []
        self._faults: list[str] = []
        self._given: set[str] = set()
        self._defined: dict[str, str] = {}
        self._think = False
        self._usage: Usage | None = None
        self._finish = ""
        self._half = ""
        self.written = 0  #: characters received, for an estimate of tokens

    @property
    def done(self) -> bool:
        return self._parser.done

    def feed(self, chunk: Chunk) -> list[tuple[str, str]]:
        """Take a chunk; returns what a face may show of it as (kind, text)."""
        if isinstance(chunk, TextChunk):
            text = self._whole(chunk.text)
            self._text.append(text)
            self.written += len(text)
            return self._take(self._parser.feed(text))
        if isinstance(chunk, ReasoningChunk):
            self._reasoning.append(clean_text(chunk.text))
            self._signature = chunk.signature or self._signature
            self.written += len(chunk.text)
            return [("reasoning", chunk.text)]
        if isinstance(chunk, CallChunk):
            self._given.add(chunk.call_id)
            self.written += len(chunk.arguments) + len(chunk.name)
            return self._take(self._parser.feed_call(chunk))
        if isinstance(chunk, UsageChunk):
            self._usage = chunk.usage
        elif isinstance(chunk, FinishChunk):
            self._finish = chunk.reason
        return []

    def close(self, finish: str = "") -> Reading:
        """The reply ended, by itself or (with `finish`) by us."""
        reason = finish or self._finish or "stop"
        self._take(self._parser.close(reason))
        actions = tuple(self._identified(n, action) for n, action in enumerate(self._actions, 1))
        answer = "".join(self._answer) if self._answer else "".join(self._prose)
        return Reading(
            self._message(actions, answer),
            actions,
            answer.strip(),
            tuple(self._faults),
            self._think and not self._answer,
            reason,
            self._usage,
            self._defined,
        )

    def partial(self) -> Message:
        """What was said before a cut: prose only, the half-written action is dropped."""
        prose = "".join(self._prose).rstrip()
        return Message("assistant", (Text(prose),) if prose else ())

    def _whole(self, text: str) -> str:
        """The text so far, cleaned; half a surrogate pair at its end waits for the other half."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return clean_text(text)

    def _take(self, events: Iterable[ParseEvent]) -> list[tuple[str, str]]:
        return [shown for event in events for shown in self._event(event)]

    def _event(self, event: ParseEvent) -> list[tuple[str, str]]:
        if isinstance(event, Prose):
            self._prose.append(event.text)
            return [("text", event.text)]
        if isinstance(event, Reply):
            self._answer.append(event.text)
            self._written = event.written or self._written
            return [("text", event.text)]
        if isinstance(event, ActionBegun):
            return [("action", event.capability)]
        if isinstance(event, ArgumentText):
            return [("argument", event.text)]
        if isinstance(event, ActionRead):
            self._actions.append(event.action)
        elif isinstance(event, FreeLine):
            self._actions.append(Action("", "", text=event.text))
        elif isinstance(event, NearMiss):
            self._faults.append(event.message)
        elif isinstance(event, Retracted):
            self._actions.clear()
            self._prose.clear()  # it belonged to what was taken back (reasoning without its mark)
        elif isinstance(event, Defined):
            self._defined[event.name] = event.text
        elif isinstance(event, ThinkOn):
            self._think = True
            self._written = event.written or self._written
            self._prose.append(event.text)
            return [("text", event.text)]
        return []

    def _identified(self, number: int, action: Action) -> Action:
        """The action with its id; a call without an id on the wire gets one that is never met again."""
        id = f"{self._prefix}.{number}"
        if action.capability == USE and not action.fault:
            action = self._used(action)
        if not action.call_id or action.call_id in self._given:
            return replace(action, id=id)
        return replace(action, id=id, call_id="call_" + "".join(c if c.isalnum() else "_" for c in id))

    def _used(self, action: Action) -> Action:
        """`use(name, arguments)` is the found capability itself, so that the gate judges what really
        runs; its arguments are held to the found schema."""
        found = self._findable(str(action.arguments.get("name")))
        if found is None:
            return action
        try:
            arguments = convert(action.arguments.get("arguments") or {}, found.parameters)
        except ArgumentError as error:
            return replace(action, capability=found.name, arguments={}, fault=str(error))
        return replace(action, capability=found.name, arguments=arguments)

    def _message(self, actions: Sequence[Action], answer: str) -> Message:
        parts: list[Part] = []
        if self._reasoning:
            parts.append(Reasoning("".join(self._reasoning), self._signature))
        # from the parser's reading, so that every call in the history has an action and an outcome
        calls = [ToolCall(a.call_id, a.wire, _sendable(a.text)) for a in actions if a.call_id]
        text = "".join(self._text)
        if not text.strip() and not calls:
            text = self._written or answer  # the step as it was written, its thoughts with it
        if text:
            parts.append(Text(text))
        return Message("assistant", (*parts, *calls))


def _sendable(arguments: str) -> str:
    """The text of a call's arguments as the model wrote it, where it is an object; what was cut
    short or is none stands in an object, since servers refuse a history with anything else."""
    try:
        whole = isinstance(msgspec.json.decode(arguments or "{}"), dict)
    except msgspec.MsgspecError:
        whole = False
    return arguments if whole else msgspec.json.encode({"not_json": arguments}).decode()
