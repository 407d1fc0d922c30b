"""The events of a session: versioned data, the only truth (law 1).

An `Event` is an envelope (id, time, sequence number) around one body. Bodies are frozen structs;
`encode` and `decode` turn them into (kind, version, JSON) and back. When a body changes its form,
its VERSION is raised and an upcaster in `UPCASTERS` mends what older journals hold. A kind that
this version does not know is kept as `Unknown`, byte for byte.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

from textor import __version__
from textor.actions import Action, Outcome
from textor.messages import NO_USAGE, Message, ToolSpec, Usage
from textor.values import Json, Labels, Value

Level = Literal["run", "pause", "stop", "kill"]
EndReason = Literal["replied", "asked", "limit", "stopped", "failed"]


def running_version() -> str:
    """The version of this program: the tag that the supervisor started, else that of the package."""
    return os.environ.get("TEXTOR_VERSION") or __version__


class Body(msgspec.Struct, frozen=True):
    """Base of all event bodies."""

    KIND: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session or an agent may use; None is no limit. Exact (law 9)."""

    iterations: int | None = None  #: per turn
    tokens: int | None = None  #: input and output, per session or agent
    money: float | None = None  #: US dollars
    seconds: float | None = None  #: wall time of a turn
    agents: int | None = None  #: in the whole tree, per session


class PatternRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A pattern (RE2, named groups) of lines or sections that calls a capability (`script`)."""

    pattern: str
    capability: str
    priority: int = 0
    scope: Literal["line", "section"] = "line"


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent type as a session uses it: what its Markdown file said when the agent was made."""

    type: str
    purpose: str = ""
    dialects: tuple[str, ...] = ("tools",)
    model: str = ""  #: "" = the configured one for this type
    capabilities: tuple[str, ...] = ()  #: names or patterns such as "files.*"
    layout: str = "stable"
    limits: Limits = Limits()
    examples: tuple[Message, ...] = ()
    prompt: str = ""
    titles: dict[str, str] = {}  #: `script`: title of a section -> capability called with its text
    patterns: tuple[PatternRule, ...] = ()  #: `script`: further forms of calls
    agents: tuple[str, ...] = ()  #: agent types that its prompt names as callable; "*" is all
    review: bool = False  #: every reply waits at the gate for accept, edit or ask again
    temperature: float | None = None  #: None = that of the model's configuration


# -- the session ---------------------------------------------------------------------------


class SessionCreated(Body, frozen=True):
    """The first event. `policy` names how the gate decides: "ask", "yes", "edits", "deny"."""

    KIND: ClassVar[str] = "session.created"
    workspace: str
    policy: str = "ask"
    limits: Limits = Limits()
    title: str = ""
    attended: bool = True  #: False: nobody can be asked, so what would ask is denied
    session: str = ""  #: its id
    forked: str = ""  #: "SESSION@SEQ" where its first events are those of another session


class PolicySet(Body, frozen=True):
    KIND: ClassVar[str] = "session.policy"
    policy: str
    attended: bool = True


class LimitsRaised(Body, frozen=True):
    """A person raised a limit; agent "" is the session."""

    KIND: ClassVar[str] = "session.limits"
    limits: Limits
    agent: str = ""


# -- agents and messages -------------------------------------------------------------------


class AgentCreated(Body, frozen=True):
    """`agent` is its path in the tree: "main", "main/spider". `prefix` is the start of every
    prompt of it, exactly as sent; `tools` the functions declared (wire names), `model` the id."""

    KIND: ClassVar[str] = "agent.created"
    agent: str
    definition: Definition
    model: str
    caller: str = ""  #: "" = a person
    prefix: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    offered: tuple[str, ...] = ()  #: names of the capabilities offered, in order
    room: int = 0  #: tokens that its prompts may have before the oldest part is summarised; 0: all


class ModelChanged(Body, frozen=True):
    """An input: from now on the agent uses another model; `room` as in `AgentCreated`."""

    KIND: ClassVar[str] = "agent.model"
    agent: str
    model: str
    room: int = 0


class MessagePosted(Body, frozen=True):
    """An input: a message to an agent, from a person (sender "") or from an agent.

    `key` is the action id of the `call` that sent it, where one did; `hands` the key of the reply
    or question that it brings to a caller who was not waiting for it.
    """

    KIND: ClassVar[str] = "message.posted"
    agent: str
    text: str
    sender: str = ""
    values: tuple[Value, ...] = ()
    labels: Labels = ()
    key: str = ""
    hands: str = ""


class MessagesDelivered(Body, frozen=True):
    """Posted messages (by event id) became part of the dialogue as `message`; starts a turn
    where none is open."""

    KIND: ClassVar[str] = "message.delivered"
    agent: str
    ids: tuple[str, ...]
    message: Message


# -- one iteration -------------------------------------------------------------------------


class GenerationStarted(Body, frozen=True):
    """A request is about to be sent. `status` is the text of the status part (the last block of
    the last message), `reserved` what was set aside for it."""

    KIND: ClassVar[str] = "generation.started"
    VERSION: ClassVar[int] = 2
    agent: str
    iteration: int
    model: str
    status: str = ""
    reserved: Usage = NO_USAGE
    attempt: int = 1
    version: str = msgspec.field(default_factory=running_version)  #: of Textor; "" where not kept


class GenerationWaiting(Body, frozen=True):
    """The server asked for patience: tried again in `seconds`."""

    KIND: ClassVar[str] = "generation.waiting"
    agent: str
    reason: str
    seconds: float


class GenerationFinished(Body, frozen=True):
    """The model's reply, verbatim, with the actions read from it.

    `finish` is "stop", "length", "tool_calls", "stopped" (by us, when nothing further mattered)
    or "cut" (a person spoke or stopped it; then there are no actions).
    """

    KIND: ClassVar[str] = "generation.finished"
    agent: str
    message: Message
    actions: tuple[Action, ...] = ()
    reply: str = ""  #: the prose that is the answer when there are no actions
    usage: Usage = NO_USAGE
    finish: str = "stop"
    faults: tuple[str, ...] = ()  #: near misses that belong to no action
    think: bool = False  #: the reply only thinks: the model goes on
    serial: bool = False  #: its actions run one after the other
    final: bool = False  #: the outcomes of its actions are the reply (`plan`)
    labels: Labels = ()


class GenerationFailed(Body, frozen=True):
    KIND: ClassVar[str] = "generation.failed"
    agent: str
    fault: str
    message: str
    usage: Usage = NO_USAGE


class PlanCompiled(Body, frozen=True):
    """The free lines of a plan were compiled by meaning. `actions` are all those of the reply, in
    order; `lines` say for each free one its state and its ranked candidates with scores."""

    KIND: ClassVar[str] = "plan.compiled"
    agent: str
    actions: tuple[Action, ...]
    lines: tuple[Json, ...] = ()


class ReplyReviewed(Body, frozen=True):
    """A person looked at a reply before its actions ran: accepted, edited (then `message` and
    `actions` replace the original, which stays in the journal), or asked again with a remark."""

    KIND: ClassVar[str] = "reply.reviewed"
    agent: str
    verdict: Literal["accept", "edit", "again"]
    message: Message | None = None
    actions: tuple[Action, ...] = ()
    reply: str = ""
    remark: str = ""


# -- actions -------------------------------------------------------------------------------


class ActionJudged(Body, frozen=True):
    """The gate's verdict before a person is asked. `digest` binds an approval to capability,
    arguments and place."""

    KIND: ClassVar[str] = "action.judged"
    agent: str
    action: str
    verdict: Literal["allow", "ask", "deny"]
    reason: str = ""
    digest: str = ""


class ActionAnswered(Body, frozen=True):
    """An input: a person's answer at the gate. The first answer counts.

    `scope` "session" or "always" keeps the answer as a rule; `arguments` are the edited ones.
    """

    KIND: ClassVar[str] = "action.answered"
    action: str
    allow: bool
    reason: str = ""
    scope: Literal["once", "session", "always"] = "once"
    arguments: dict[str, Json] | None = None
    digest: str = ""


class ActionStarted(Body, frozen=True):
    """Durable before the effect (law 2). `cancellable`: its provider can end it for certain, so
    a stop need not wait for it."""

    KIND: ClassVar[str] = "action.started"
    agent: str
    action: str
    cancellable: bool = True


class ActionProgress(Body, frozen=True):
    """Progress worth keeping (a long call). Small and rare; streams of output are ephemeral."""

    KIND: ClassVar[str] = "action.progress"
    agent: str
    action: str
    text: str


class ActionGivenUp(Body, frozen=True):
    """An input: a person does not want this action any more: it is cancelled where it can be."""

    KIND: ClassVar[str] = "action.given_up"
    action: str


class ActionFinished(Body, frozen=True):
    """The one outcome of an action (law 3)."""

    KIND: ClassVar[str] = "action.finished"
    agent: str
    action: str
    outcome: Outcome


class Observed(Body, frozen=True):
    """The outcomes of an iteration as they were shown to the model."""

    KIND: ClassVar[str] = "iteration.observed"
    agent: str
    messages: tuple[Message, ...]
    notices: tuple[str, ...] = ()  #: what the machine told the model besides


class Summarised(Body, frozen=True):
    """The first `count` messages of the dialogue were replaced by `message`."""

    KIND: ClassVar[str] = "dialogue.summarised"
    agent: str
    count: int
    message: Message
    usage: Usage = NO_USAGE


class SummaryFailed(Body, frozen=True):
    """A summary was not shorter than what it should replace, or could not be had."""

    KIND: ClassVar[str] = "dialogue.unsummarised"
    agent: str
    reason: str
    usage: Usage = NO_USAGE


class NoteSet(Body, frozen=True):
    """State of an agent that stands in its status part."""

    KIND: ClassVar[str] = "note.set"
    agent: str
    key: str
    text: str


class VariableSet(Body, frozen=True):
    KIND: ClassVar[str] = "variable.set"
    agent: str
    name: str
    value: Value


class TurnExpired(Body, frozen=True):
    """The wall time of a turn is used up."""

    KIND: ClassVar[str] = "turn.expired"
    agent: str
    turn: int


class TurnEnded(Body, frozen=True):
    """The end of a turn: the reply to the caller with a typed reason.

    `detail` says which limit or what failed; `text` is the reply or what was achieved so far.
    """

    KIND: ClassVar[str] = "turn.ended"
    agent: str
    reason: EndReason
    text: str = ""
    detail: str = ""
    values: tuple[Value, ...] = ()
    labels: Labels = ()


# -- between agents, and from a person -----------------------------------------------------


class Asked(Body, frozen=True):
    """A question in the middle of a turn, from `agent` to its caller. `key` is the ask's action.

    What answers a `secret` one is never in the journal (`Session.reply`).
    """

    KIND: ClassVar[str] = "question.asked"
    agent: str
    question: str
    key: str
    values: tuple[Value, ...] = ()
    secret: bool = False


class Answered(Body, frozen=True):
    """An input: the answer to the question with this `key`. `by` is the action that answered; it
    waits for what the asker says next."""

    KIND: ClassVar[str] = "question.answered"
    key: str
    text: str
    sender: str = ""
    by: str = ""
    values: tuple[Value, ...] = ()
    labels: Labels = ()


class Controlled(Body, frozen=True):
    """An input: a person runs, pauses, stops (at the next boundary) or kills an agent and all
    below it."""

    KIND: ClassVar[str] = "agent.controlled"
    agent: str
    level: Level


class Stored(Body, frozen=True):
    """State of no session (apps, modules, rules, versions), in the journal of `machine`."""

    KIND: ClassVar[str] = "machine.stored"
    area: str
    key: str
    value: Json = None  #: None removes


class Unknown(Body, frozen=True):
    """An event of a kind or version that this program does not know: kept as it is."""

    kind: str
    version: int
    raw: msgspec.Raw


class Event(msgspec.Struct, frozen=True):
    """A body with its envelope. `time` in seconds since 1970 UTC; `seq` is set by the journal."""

    body: Body
    id: str
    time: float
    seq: int = 0

    @property
    def kind(self) -> str:
        return self.body.kind if isinstance(self.body, Unknown) else self.body.KIND


def new_id() -> str:
    """A fresh id: sortable by time, unique without coordination."""
    return f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(6)}"


def _kinds(base: type[Body]) -> dict[str, type[Body]]:
    return {c.KIND: c for c in base.__subclasses__() if c.KIND}


KINDS: dict[str, type[Body]] = _kinds(Body)

#: (kind, version) -> a function from that version's data to the next version's.
UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("generation.started", 1): lambda data: {**data, "version": ""},
}

_encoder = msgspec.json.Encoder()
_decoders: dict[str, msgspec.json.Decoder[Any]] = {k: msgspec.json.Decoder(c) for k, c in KINDS.items()}


def encode(body: Body) -> tuple[str, int, bytes]:
    """(kind, version, JSON) of a body, as a journal stores it."""
    if isinstance(body, Unknown):
        return body.kind, body.version, bytes(body.raw)
    return body.KIND, body.VERSION, _encoder.encode(body)


def decode(kind: str, version: int, data: bytes) -> Body:
    """The body that was stored; `Unknown` when this program cannot read it."""
    known = KINDS.get(kind)
    if known is None or version > known.VERSION:
        return Unknown(kind, version, msgspec.Raw(data))
    if version == known.VERSION:
        body: Body = _decoders[kind].decode(data)
        return body
    content = msgspec.json.decode(data)
    while version < known.VERSION:
        content = UPCASTERS[kind, version](content)
        version += 1
    return msgspec.convert(content, known)


def to_json(event: Event) -> dict[str, Any]:
    """An event as plain JSON data, for faces: kind, id, time, seq and the body's fields."""
    kind, version, data = encode(event.body)
    return {
        "kind": kind,
        "version": version,
        "id": event.id,
        "time": event.time,
        "seq": event.seq,
        "data": msgspec.json.decode(data),
    }
