"""The state of a session: a fold over its events (law 1). Pure: no clock, no input or output.

`fold(state, event)` gives the next state; what an event does not change is shared with the state
before. A second outcome, answer or end is ignored: the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

import msgspec
from msgspec.structs import replace

from textor import events as e
from textor.actions import Action, Outcome
from textor.addresses import addresses_in
from textor.loops import REMEMBERED, trail_of
from textor.messages import NO_USAGE, Message, ToolSpec, Usage, message_size, said
from textor.values import Labels, Value, merge_labels


class Work(msgspec.Struct, frozen=True):
    """One action on its way from the reply to its outcome."""

    action: Action
    verdict: str = ""  #: "", "allow", "ask", "deny"
    reason: str = ""
    digest: str = ""
    started: bool = False
    cancellable: bool = True
    given_up: bool = False  #: a person does not want it any more
    own: bool = False  #: its arguments are a person's
    outcome: Outcome | None = None


class Turn(msgspec.Struct, frozen=True):
    """From a message to the reply. `partial` is what was achieved so far; `keys` are the calls
    that the reply is owed to, `owes` whether it is owed to the caller at all."""

    number: int
    began: float
    iterations: int = 0
    nudges: int = 0  #: iterations in a row without an action or an answer
    partial: str = ""
    labels: Labels = ()
    usage: Usage = NO_USAGE
    trail: tuple[str, ...] = ()  #: a digest of each iteration's actions and outcomes
    keys: tuple[str, ...] = ()
    owes: bool = False
    warned: str = ""  #: the digest of the loop that the model was told of
    expired: bool = False
    unsummarised: int = 0  #: summaries that failed in a row


class AgentState(msgspec.Struct, frozen=True):
    """One node of the tree. `dialogue` follows `prefix` in every prompt; `size` counts its
    characters, `ratio` is the tokens per character that the server last reported."""

    id: str
    definition: e.Definition
    model: str
    caller: str = ""
    prefix: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    offered: tuple[str, ...] = ()
    inbox: tuple[tuple[str, e.MessagePosted], ...] = ()
    dialogue: tuple[Message, ...] = ()
    size: int = 0
    room: int = 0
    ratio: float = 0.25
    level: e.Level = "run"
    turn: Turn | None = None
    turns: int = 0
    iterations: int = 0
    generation: e.GenerationStarted | None = None
    reply: e.GenerationFinished | None = None
    reviewed: bool = False
    work: tuple[Work, ...] = ()
    failure: str = ""
    usage: Usage = NO_USAGE
    limits: e.Limits = e.Limits()
    notes: dict[str, str] = {}
    variables: dict[str, Value] = {}
    ended: e.TurnEnded | None = None
    labels: Labels = ()  #: of all that its dialogue ever held


class Owed(msgspec.Struct, frozen=True):
    """A reply or a question on its way to the caller of the agent it comes from."""

    agent: str
    caller: str
    text: str
    reason: str  #: "question", or why the turn ended
    detail: str = ""
    values: tuple[Value, ...] = ()
    labels: Labels = ()


class State(msgspec.Struct, frozen=True):
    """A session. `questions` are the open ones by key; `owed` what is on its way to a caller, by
    key of the call or question; `rules` the digests allowed for it; `values` all, by handle; `given`
    the addresses that a person named, `read` those in pages."""

    seq: int = 0
    created: e.SessionCreated | None = None
    policy: str = "ask"
    attended: bool = True
    limits: e.Limits = e.Limits()
    usage: Usage = NO_USAGE
    agents: dict[str, AgentState] = {}
    questions: dict[str, e.Asked] = {}
    answers: dict[str, e.Answered] = {}
    owed: dict[str, Owed] = {}
    rules: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    values: dict[str, Value] = {}
    stored: dict[tuple[str, str], Any] = {}

    def below(self, agent: str) -> Iterable[str]:
        """The agent and all below it in the tree."""
        return [a for a in self.agents if a == agent or a.startswith(agent + "/")]


def fold(state: State, event: e.Event) -> State:
    """The state after `event`. Kinds that do not concern the state are passed over."""
    handler = _HANDLERS.get(type(event.body))
    if handler is not None:
        state = handler(state, event.body, event)
    return replace(state, seq=event.seq) if event.seq else state


def fold_all(state: State, events: Iterable[e.Event]) -> State:
    for event in events:
        state = fold(state, event)
    return state


# -- helpers -------------------------------------------------------------------------------


def _put(state: State, agent: AgentState, **changes: Any) -> State:
    changed = replace(agent, **changes) if changes else agent
    return replace(state, agents={**state.agents, agent.id: changed})


def _add(agent: AgentState, messages: tuple[Message, ...]) -> dict[str, Any]:
    return {
        "dialogue": agent.dialogue + messages,
        "size": agent.size + sum(message_size(m) for m in messages),
    }


def _keep(state: State, values: tuple[Value, ...]) -> State:
    if not values:
        return state
    kept = dict(state.values)
    for value in values:  # the same content that comes again without labels keeps them
        old = kept.get(value.handle, value)
        kept[value.handle] = replace(value, labels=merge_labels(value.labels, old.labels))
    return replace(state, values=kept)


def _hand(state: State, key: str) -> State:
    """What was owed under this key has been brought to the caller."""
    if key not in state.owed:
        return state
    return replace(state, owed={k: o for k, o in state.owed.items() if k != key})


def _owe(state: State, keys: Iterable[str], owed: Owed) -> State:
    return replace(state, owed=state.owed | dict.fromkeys(keys, owed))


def open_work(agent: AgentState | None) -> set[str]:
    """The ids of an agent's actions that have no outcome yet."""
    return {w.action.id for w in agent.work if w.outcome is None} if agent else set()


def _spend(state: State, agent: AgentState, usage: Usage) -> tuple[State, AgentState]:
    turn = agent.turn and replace(agent.turn, usage=agent.turn.usage + usage)
    return replace(state, usage=state.usage + usage), replace(agent, usage=agent.usage + usage, turn=turn)


def _rework(state: State, action: str, change: Callable[[Work], Work]) -> State:
    for agent in state.agents.values():
        for i, work in enumerate(agent.work):
            if work.action.id == action:
                changed = (*agent.work[:i], change(work), *agent.work[i + 1 :])
                return _put(state, agent, work=changed)
    return state


class _Handlers:
    """One for each kind of event, found by the type of its second parameter."""

    def created(self, state: State, body: e.SessionCreated, _: e.Event) -> State:
        return replace(state, created=body, policy=body.policy, attended=body.attended, limits=body.limits)

    def policy(self, state: State, body: e.PolicySet, _: e.Event) -> State:
        return replace(state, policy=body.policy, attended=body.attended)

    def limits(self, state: State, body: e.LimitsRaised, _: e.Event) -> State:
        if body.agent in state.agents:
            return _put(state, state.agents[body.agent], limits=body.limits)
        return replace(state, limits=body.limits)

    def agent(self, state: State, body: e.AgentCreated, _: e.Event) -> State:
        agent = AgentState(
            body.agent,
            body.definition,
            body.model,
            body.caller,
            body.prefix,
            body.tools,
            body.offered,
            size=sum(message_size(m) for m in body.prefix),
            room=body.room,
            limits=body.definition.limits,
        )
        return _put(state, agent)

    def model(self, state: State, body: e.ModelChanged, _: e.Event) -> State:
        agent = state.agents.get(body.agent)
        return _put(state, agent, model=body.model, room=body.room, failure="") if agent else state

    def posted(self, state: State, body: e.MessagePosted, event: e.Event) -> State:
        agent = state.agents.get(body.agent)
        state = _hand(_keep(state, body.values), body.hands)
        if not body.sender and not body.labels:
            state = replace(state, given=state.given | addresses_in(body.text, bare=True))
        return _put(state, agent, inbox=(*agent.inbox, (event.id, body))) if agent else state

    def delivered(self, state: State, body: e.MessagesDelivered, event: e.Event) -> State:
        agent = state.agents[body.agent]
        taken = [m for m in agent.inbox if m[0] in body.ids]
        labels = merge_labels(*(m.labels for _, m in taken), *(v.labels for _, m in taken for v in m.values))
        turn = agent.turn or Turn(agent.turns + 1, event.time, labels=agent.labels)
        turn = replace(
            turn,
            labels=merge_labels(turn.labels, labels),
            nudges=0,
            keys=(*turn.keys, *(m.key for _, m in taken if m.key)),
            owes=turn.owes or any(m.sender for _, m in taken),
        )
        inbox = tuple(m for m in agent.inbox if m[0] not in body.ids)
        return _put(
            state,
            agent,
            inbox=inbox,
            turn=turn,
            turns=turn.number,
            ended=None,
            **_add(agent, (body.message,)),
        )

    def generating(self, state: State, body: e.GenerationStarted, _: e.Event) -> State:
        agent = state.agents[body.agent]
        assert agent.turn is not None
        turn = replace(agent.turn, iterations=agent.turn.iterations + 1)
        return _put(state, agent, generation=body, turn=turn, iterations=agent.iterations + 1)

    def generated(self, state: State, body: e.GenerationFinished, _: e.Event) -> State:
        agent = state.agents[body.agent]
        started = agent.generation
        if started is None:
            return state
        state, agent = _spend(state, agent, body.usage)
        ratio, expected = agent.ratio, started.reserved.input
        if body.usage.input and not body.usage.estimated and expected:
            ratio *= body.usage.input / expected
        changes: dict[str, Any] = {"generation": None, "ratio": min(max(ratio, 0.05), 2.0)}
        if body.message.parts:
            changes |= _add(agent, (body.message,))
        turn = agent.turn
        if turn is not None and (prose := body.reply or body.message.text.strip()):
            changes["turn"] = replace(turn, partial=prose)
        if body.finish != "cut":
            changes |= {"reply": body, "reviewed": False, "work": tuple(Work(a) for a in body.actions)}
        return _put(state, agent, **changes)

    def generation_failed(self, state: State, body: e.GenerationFailed, _: e.Event) -> State:
        agent = state.agents[body.agent]
        state, agent = _spend(state, agent, body.usage)
        return _put(state, agent, generation=None, failure=body.message)

    def compiled(self, state: State, body: e.PlanCompiled, _: e.Event) -> State:
        return _put(state, state.agents[body.agent], work=tuple(Work(a) for a in body.actions))

    def reviewed(self, state: State, body: e.ReplyReviewed, _: e.Event) -> State:
        agent = state.agents[body.agent]
        if agent.reply is None or agent.reviewed or any(w.started or w.outcome for w in agent.work):
            return state
        if body.verdict == "accept":
            return _put(state, agent, reviewed=True)
        shorter = replace(agent, dialogue=agent.dialogue[:-1])
        if body.verdict == "again":
            remark = said("user", body.remark or "Please try again.")
            return _put(state, shorter, reply=None, work=(), **_add(shorter, (remark,)))
        assert body.message is not None
        mended = {"message": body.message, "actions": body.actions, "reply": body.reply}
        reply = replace(agent.reply, faults=(), think=False, **mended)
        work = tuple(Work(a) for a in body.actions)
        return _put(state, shorter, reply=reply, reviewed=True, work=work, **_add(shorter, (body.message,)))

    def judged(self, state: State, body: e.ActionJudged, _: e.Event) -> State:
        return _rework(
            state,
            body.action,
            lambda w: replace(w, verdict=body.verdict, reason=body.reason, digest=body.digest),
        )

    def answered_gate(self, state: State, body: e.ActionAnswered, _: e.Event) -> State:
        rules: list[str] = []

        def change(work: Work) -> Work:
            if work.verdict != "ask" or (body.digest and body.digest != work.digest):
                return work
            if not body.allow:
                return replace(work, verdict="deny", reason=body.reason or "the person said no")
            action = work.action
            if body.arguments is not None:  # judged anew, as the person's own
                action = replace(action, arguments=body.arguments, labels=())
                return replace(work, verdict="", action=action, own=True)
            if body.scope != "once":
                rules.append(work.digest)
            return replace(work, verdict="allow")

        state = _rework(state, body.action, change)
        return replace(state, rules=state.rules | set(rules)) if rules else state

    def started(self, state: State, body: e.ActionStarted, _: e.Event) -> State:
        return _rework(state, body.action, lambda w: replace(w, started=True, cancellable=body.cancellable))

    def given_up(self, state: State, body: e.ActionGivenUp, _: e.Event) -> State:
        return _rework(state, body.action, lambda w: replace(w, given_up=True))

    def finished(self, state: State, body: e.ActionFinished, _: e.Event) -> State:
        state = _rework(state, body.action, lambda w: w if w.outcome else replace(w, outcome=body.outcome))
        state = _hand(_keep(state, body.outcome.values), body.outcome.hands)
        agent = state.agents[body.agent]
        if agent.turn is None or not body.outcome.labels:
            return state
        labels = merge_labels(agent.turn.labels, body.outcome.labels)
        if any(label.startswith("web:") for label in body.outcome.labels):
            state = replace(state, read=state.read | addresses_in(body.outcome.text))
        return _put(state, agent, turn=replace(agent.turn, labels=labels))

    def observed(self, state: State, body: e.Observed, _: e.Event) -> State:
        agent = state.agents[body.agent]
        turn = agent.turn
        if turn is not None:
            trail = trail_of((w.action, w.outcome) for w in agent.work)
            turn = replace(
                turn,
                nudges=0 if agent.work else turn.nudges + 1,
                trail=(*turn.trail[1 - REMEMBERED :], trail),
                warned=trail if body.notices and trail else turn.warned,
            )
        return _put(state, agent, reply=None, work=(), turn=turn, **_add(agent, body.messages))

    def summarised(self, state: State, body: e.Summarised, _: e.Event) -> State:
        agent = state.agents[body.agent]
        state, agent = _spend(state, agent, body.usage)
        dialogue = (body.message, *agent.dialogue[body.count :])
        size = sum(message_size(m) for m in (*agent.prefix, *dialogue))
        turn = agent.turn and replace(agent.turn, unsummarised=0)
        return _put(state, agent, dialogue=dialogue, size=size, turn=turn)

    def unsummarised(self, state: State, body: e.SummaryFailed, _: e.Event) -> State:
        state, agent = _spend(state, state.agents[body.agent], body.usage)
        turn = agent.turn and replace(agent.turn, unsummarised=agent.turn.unsummarised + 1)
        return _put(state, agent, turn=turn)

    def noted(self, state: State, body: e.NoteSet, _: e.Event) -> State:
        agent = state.agents[body.agent]
        notes = {k: v for k, v in {**agent.notes, body.key: body.text}.items() if v}
        return _put(state, agent, notes=notes)

    def variable(self, state: State, body: e.VariableSet, _: e.Event) -> State:
        agent = state.agents[body.agent]
        return _put(_keep(state, (body.value,)), agent, variables={**agent.variables, body.name: body.value})

    def expired(self, state: State, body: e.TurnExpired, _: e.Event) -> State:
        agent = state.agents[body.agent]
        if agent.turn is None or agent.turn.number != body.turn:
            return state
        return _put(state, agent, turn=replace(agent.turn, expired=True))

    def ended(self, state: State, body: e.TurnEnded, _: e.Event) -> State:
        agent = state.agents[body.agent]
        turn, caller = agent.turn, state.agents.get(agent.caller)
        # a stop that went down the tree owes nothing to those whom it stopped as well
        stopped = body.reason == "stopped" and (caller is None or caller.level in ("stop", "kill"))
        labels = merge_labels(body.labels, turn.labels if turn else agent.labels)
        if turn is not None and turn.owes and caller is not None and not stopped:
            told = (body.text, body.reason, body.detail, body.values, labels)
            keys = turn.keys or (f"{agent.id}#{turn.number}",)
            state = _owe(state, keys, Owed(agent.id, agent.caller, *told))
        gone = {k for k, q in state.questions.items() if q.agent == agent.id}
        questions = {k: q for k, q in state.questions.items() if k not in gone}
        state = replace(
            state, questions=questions, owed={k: o for k, o in state.owed.items() if k not in gone}
        )
        level = "run" if agent.level in ("stop", "kill") else agent.level
        over = {"turn": None, "reply": None, "work": (), "failure": "", "generation": None}
        return _put(state, agent, level=level, ended=body, labels=labels, **over)

    def asked(self, state: State, body: e.Asked, _: e.Event) -> State:
        caller, turn = state.agents[body.agent].caller, state.agents[body.agent].turn
        state = replace(state, questions={**state.questions, body.key: body})
        if not caller:
            return state
        owed = Owed(
            body.agent, caller, body.question, "question", "", body.values, turn.labels if turn else ()
        )
        return _owe(state, [body.key], owed)

    def answered(self, state: State, body: e.Answered, _: e.Event) -> State:
        if not body.sender:
            state = replace(state, given=state.given | addresses_in(body.text, bare=True))
        question = state.questions.get(body.key)
        if question is None:
            return state
        questions = {k: q for k, q in state.questions.items() if k != body.key}
        state = replace(
            _hand(state, body.key), questions=questions, answers={**state.answers, body.key: body}
        )
        agent = state.agents[question.agent]
        if not body.by or agent.turn is None:
            return state
        waiting = open_work(state.agents.get(agent.caller))
        keys = (*(k for k in agent.turn.keys if k in waiting), body.by)
        return _put(state, agent, turn=replace(agent.turn, keys=keys, owes=True))

    def controlled(self, state: State, body: e.Controlled, _: e.Event) -> State:
        for name in state.below(body.agent):
            agent = state.agents[name]
            if body.level in ("stop", "kill") and agent.turn is None:
                level: e.Level = "run"  # nothing to stop; it stays callable
            elif agent.level == "kill" or (agent.level == "stop" and body.level != "kill"):
                continue
            else:
                level = body.level
            state = _put(state, agent, level=level)
        return state

    def stored(self, state: State, body: e.Stored, _: e.Event) -> State:
        stored = {k: v for k, v in state.stored.items() if k != (body.area, body.key)}
        if body.value is not None:
            stored[body.area, body.key] = body.value
        return replace(state, stored=stored)


_HANDLERS: dict[type[e.Body], Callable[[State, Any, e.Event], State]] = {
    get_type_hints(function)["body"]: getattr(_Handlers(), name)
    for name, function in vars(_Handlers).items()
    if callable(function)
}
