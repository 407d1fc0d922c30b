"""A session replayed from its journal: no model, no effects; do fold and decide take the same way?

Each event of the record must be an input, or follow from the state before it: a consequence that
the kernel computes again and that must come out equal, or the result of a step that was under way.
Replies are read again by the dialect, rulings made again by the gate. What differs is what this
version would do otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from msgspec.structs import replace as changed

from textor import events as e
from textor.actions import Action, Capability
from textor.dialects.reader import Reader, Reading
from textor.errors import TextorError
from textor.kernel.context import Layout
from textor.kernel.decide import decide
from textor.kernel.services import Services
from textor.kernel.state import AgentState, State, fold
from textor.kernel.steps import Now
from textor.messages import CallChunk, Message, Reasoning, ReasoningChunk, Text, TextChunk, ToolCall, Usage
from textor.values import content_of

#: What faces, providers and timers append; nothing in the state leads to it.
INPUTS = (
    e.SessionCreated, e.PolicySet, e.LimitsRaised, e.AgentCreated, e.ModelChanged, e.MessagePosted,
    e.ReplyReviewed, e.ActionAnswered, e.ActionProgress, e.NoteSet, e.TurnExpired, e.Asked, e.Answered,
    e.Controlled, e.Stored, e.GenerationWaiting, e.Unknown,
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """What the record holds at event `seq`, and what this version does there."""

    seq: int
    kind: str
    recorded: str
    now: str


@dataclass(frozen=True)
class Replayed:
    events: int
    steps: int  #: consequences computed again, and replies read again
    differences: tuple[Difference, ...]


async def replay(services: Services, session: str) -> Replayed:
    """Replay a session of the journal of `services`. Writes nothing, asks no model."""
    work = _Replay(services)
    count = 0
    async for event in services.journal.read(session):
        work.take(event)
        count += 1
    return Replayed(count, work.steps, tuple(work.differences))


class _Replay:
    """The state so far, and what the step under way is still to append."""

    def __init__(self, services: Services) -> None:
        self._event: e.Event | None = None
        self._services = replace(services, layout=self._layout, clock=self._time, found=_Found(services))
        self._layouts = services.layout
        self._state = State()
        self._pending: list[e.Body] = []
        self.steps = 0
        self.differences: list[Difference] = []

    def take(self, event: e.Event) -> None:
        self._event = event
        body = event.body
        if not self._pending:
            self._pending = self._consequence(body)
        if self._pending and _same_place(self._pending[0], body):
            self._compare(self._pending.pop(0), body)
        elif isinstance(body, INPUTS):
            pass
        else:
            if self._pending:
                self._differ("something else", _words(self._pending[0]))
                self._pending = []
            self._result(body)
        self._state = fold(self._state, event)

    # -- consequences ----------------------------------------------------------------------

    def _consequence(self, body: e.Body) -> list[e.Body]:
        """What a step that is due appends, if it begins like this event."""
        first: list[e.Body] = []
        for step in decide(self._state):
            if not step.now:
                continue
            try:
                bodies = Now(self._state, self._services, self._partial).take(step)
            except TextorError:
                continue
            # a stopped action may have told its own end before the kernel settles it
            own = isinstance(body, e.ActionFinished) and step.what == "settle" and bodies[:1] != [body]
            if bodies and _same_place(bodies[0], body) and not own:
                self.steps += 1
                return bodies
            first = first or bodies
        return first if first and not isinstance(body, (*INPUTS, *_RESULTS)) else []

    def _compare(self, now: e.Body, recorded: e.Body) -> None:
        now, recorded = _essence(now), _essence(recorded)
        if isinstance(now, e.MessagesDelivered) and isinstance(recorded, e.MessagesDelivered):
            same = now.ids == recorded.ids and recorded.message.text.startswith(now.message.text)
        else:
            same = now == recorded
        if not same:
            self._differ(_words(recorded), _words(now))

    # -- results of steps that took time -----------------------------------------------------

    def _result(self, body: e.Body) -> None:
        agent = self._state.agents.get(getattr(body, "agent", ""))
        if agent is None:
            self._differ(_words(body), "no such agent")
        elif isinstance(body, e.ActionFinished):
            started = any(w.action.id == body.action and w.outcome is None for w in agent.work)
            if not started:
                self._differ(_words(body), "this action is not under way")
        elif isinstance(body, e.GenerationFinished):
            self._reply(agent, body)
        elif isinstance(body, e.VariableSet | e.GenerationFailed):
            if agent.generation is None:
                self._differ(_words(body), "no generation is under way")
        elif not self._due(agent, body):
            self._differ(_words(body), "nothing led to it")

    def _due(self, agent: AgentState, body: e.Body) -> bool:
        steps = {step.what for step in decide(self._state) if step.agent == agent.id}
        wanted = {e.PlanCompiled: "compile", e.Summarised: "summarise", e.SummaryFailed: "summarise"}
        return wanted.get(type(body), "") in steps

    def _reply(self, agent: AgentState, body: e.GenerationFinished) -> None:
        if agent.generation is None:
            self._differ(_words(body), "no generation is under way")
            return
        if body.finish == "cut":
            return
        self.steps += 1
        prefix = f"{agent.id}.{agent.generation.iteration}"
        message = as_written(body.message, body.actions)
        reading = read_again(self._services, agent, message, body.finish, prefix)
        recorded, now = [deed(a) for a in body.actions], [deed(a) for a in reading.actions]
        if recorded != now:
            self._differ("; ".join(recorded) or "no action", "; ".join(now) or "no action")
        elif not recorded and body.reply != reading.reply:
            self._differ(body.reply, reading.reply)

    # -- what steps look at -------------------------------------------------------------------

    def _time(self) -> float:
        return self._event.time if self._event else 0.0

    def _partial(self, agent: str) -> tuple[Message, Usage]:
        """What a cut reply had said is only in the record."""
        body = self._event.body if self._event else None
        if isinstance(body, e.GenerationFinished):
            return body.message, body.usage
        return Message("assistant", ()), Usage()

    def _layout(self, name: str) -> Layout:
        """The layout with the status of the record: it tells of the machine as it was."""
        body = self._event.body if self._event else None
        status = body.status if isinstance(body, e.GenerationStarted) else ""
        return _Told(self._layouts(name), status)

    def _differ(self, recorded: str, now: str) -> None:
        assert self._event is not None
        self.differences.append(Difference(self._event.seq, self._event.kind, recorded, now))


_RESULTS = (
    e.GenerationFinished, e.GenerationFailed, e.ActionFinished, e.VariableSet, e.PlanCompiled, e.Summarised,
    e.SummaryFailed,
)  # fmt: skip


class _Told:
    """A layout whose status is given."""

    def __init__(self, layout: Layout, status: str) -> None:
        self._layout = layout
        self._status = status
        self.prefix, self.posted, self.messages = layout.prefix, layout.posted, layout.messages
        self.size = layout.size

    def status(self, state: State, agent: AgentState, now: float) -> str:
        return self._status


class _Found:
    """Finds nothing for a message: what was found then stands in the record."""

    def __init__(self, services: Services) -> None:
        self._findable: Callable[[str], Capability | None] = services.found.findable

    def __call__(self, state: State, agent: AgentState, text: str) -> str:
        return ""

    def findable(self, name: str) -> Capability | None:
        return self._findable(name)


def _same_place(now: e.Body, recorded: e.Body) -> bool:
    """Whether two bodies are of one kind, about one agent and one action."""
    if type(now) is not type(recorded):
        return False
    return all(getattr(now, k, "") == getattr(recorded, k, "") for k in ("agent", "action", "name", "hands"))


def _essence(body: e.Body) -> e.Body:
    """A body without what belongs to its moment alone."""
    if isinstance(body, e.GenerationStarted):
        return changed(body, version="")
    return body


def _words(body: e.Body) -> str:
    text = msgspec.json.encode(body).decode()
    return f"{body.KIND or 'unknown'} {text if len(text) <= 400 else text[:399] + '…'}"


def deed(action: Action) -> str:
    """An action in one line."""
    told = msgspec.json.encode(action.arguments, order="sorted").decode()
    return f"{action.capability or action.text}({action.fault or told})"


def as_written(message: Message, actions: Sequence[Action]) -> Message:
    """A reply with the arguments of its calls as the model wrote them; a history must hold JSON."""
    texts = {action.call_id: action.text for action in actions if action.call_id}
    parts = [
        changed(p, arguments=texts.get(p.call_id, p.arguments)) if isinstance(p, ToolCall) else p
        for p in message.parts
    ]
    return Message(message.role, tuple(parts))


def read_again(
    services: Services, agent: AgentState, message: Message, finish: str, prefix: str = ""
) -> Reading:
    """A reply as this agent's dialect reads it now."""
    blobs = services.journal.blobs
    variables: dict[str, Any] = {
        name: content_of(v, blobs).decode("utf-8", "replace") if v.kind == "text" else v
        for name, v in agent.variables.items()
    }
    reader = Reader(services.dialect_of(agent), services.offered(agent.offered), prefix, variables)
    calls = 0
    for part in message.parts:
        if isinstance(part, Reasoning):
            reader.feed(ReasoningChunk(part.text, part.signature))
        elif isinstance(part, Text):
            reader.feed(TextChunk(part.text))
        elif isinstance(part, ToolCall):
            reader.feed(CallChunk(calls, part.call_id, part.name, part.arguments))
            calls += 1
    return reader.close(finish)
