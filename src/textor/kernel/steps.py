"""The steps that only append events: what follows from a state, given the services."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from textor import events as e
from textor.actions import Outcome
from textor.errors import TextorError
from textor.kernel import budget, summary
from textor.kernel.decide import Step
from textor.kernel.services import Services
from textor.kernel.state import AgentState, Owed, State, Work
from textor.loops import repeated, trail_of
from textor.messages import Message, Text, ToolResult, Usage, said
from textor.values import MEDIA, Value, head, merge_labels, named, references, text_value

#: Replies in a row that neither act nor answer, before the turn ends.
MOST_NUDGES = 1
EMPTY = "Your reply was empty. Answer the message, or use a capability."
MOST_THOUGHTS = 5


class Now:
    """One state, looked at by one step. Each method returns the bodies to append."""

    def __init__(self, state: State, services: Services, partial: Callable[[str], tuple[Message, Usage]]):
        self.state = state
        self.services = services
        self.partial = partial  #: what a cut generation had said so far, and used

    def take(self, step: Step) -> list[e.Body]:
        agent = self.state.agents[step.agent]
        if step.what == "end":
            return [self._end(agent, step.key)]
        if step.what == "start":
            return self._start(agent, next(w for w in agent.work if w.action.id == step.key))
        if step.what == "report":
            return [self._report(self.state.owed[step.key], step.key)]
        if step.what == "leave":
            left = "Your caller ended its turn without an answer. Go on with your best judgement."
            return [e.Answered(step.key, left, sender=agent.caller)]
        method: Callable[[AgentState], list[e.Body]] = getattr(self, f"_{step.what}")
        return method(agent)

    def _deliver(self, agent: AgentState) -> list[e.Body]:
        ids = tuple(id for id, _ in agent.inbox)
        values = [v for _, posted in agent.inbox for v in posted.values]
        known = named(values, agent.variables)
        kept_values = [*known, *self._code(agent)]
        layout = self.services.layout(agent.definition.layout)
        message = layout.posted((posted for _, posted in agent.inbox), agent, kept_values)
        found = self.services.found(self.state, agent, message.text)
        if found:
            message = replace(message, parts=(*message.parts, Text(found)))
        kept = [e.VariableSet(agent.id, value.name, value) for value in kept_values]
        return [*kept, e.MessagesDelivered(agent.id, ids, message)]

    def _begin(self, agent: AgentState) -> list[e.Body]:
        now = self.services.clock()
        if limit := budget.reached(self.state, agent, now):
            return [self._limit(agent, limit)]
        layout = self.services.layout(agent.definition.layout)
        status = layout.status(self.state, agent, now)
        size = layout.size(agent) + len(status)
        if isinstance(reserved := budget.reserve(self.state, agent, size, self._price(agent)), str):
            return [self._limit(agent, reserved)]
        if agent.turn and agent.turn.unsummarised >= summary.MOST_FAILURES:
            return [self._limit(agent, "context")]
        return [e.GenerationStarted(agent.id, agent.iterations + 1, agent.model, status, reserved)]

    def _price(self, agent: AgentState) -> budget.Price:
        try:
            return self.services.model(agent.model).price
        except TextorError:  # told when it is asked
            return lambda input, output: None

    def _code(self, agent: AgentState) -> list[Value]:
        """The variables that the messages make in this agent's dialect."""
        blobs = self.services.journal.blobs
        dialect = self.services.dialect_of(agent)
        found = [(dialect.names(p.text).items(), p.labels) for _, p in agent.inbox]
        return [text_value(t, blobs, name=name, labels=ls) for texts, ls in found for name, t in texts]

    def _report(self, owed: Owed, key: str) -> e.Body:
        """Bring a reply or a question to a caller who was not waiting for it."""
        text = told(owed, key)
        return e.MessagePosted(
            owed.caller, text, sender=owed.agent, values=owed.values, labels=owed.labels, hands=key
        )

    def _cut(self, agent: AgentState) -> list[e.Body]:
        message, usage = self.partial(agent.id)
        return [e.GenerationFinished(agent.id, message, usage=usage, finish="cut")]

    def _judge(self, agent: AgentState) -> list[e.Body]:
        new = [work for work in agent.work if not work.verdict and work.outcome is None]
        return [body for work in new for body in self._judged(agent, work)]

    def _judged(self, agent: AgentState, work: Work) -> list[e.Body]:
        action = work.action
        if action.fault:
            return [self._finished(agent, work, Outcome.failed(action.fault))]
        offered = self.services.offered(agent.offered).get(action.capability)
        capability = offered or self.services.found.findable(action.capability)
        if capability is None:
            return [self._finished(agent, work, Outcome.failed(f"There is no {action.capability!r} here."))]
        ruling = self.services.policy(action, capability, self.state, agent)
        judged = e.ActionJudged(agent.id, action.id, ruling.verdict, ruling.reason, ruling.digest)
        if ruling.verdict == "deny":
            return [judged, self._finished(agent, work, Outcome("denied", f"Not done: {ruling.reason}."))]
        return [judged]

    def _start(self, agent: AgentState, work: Work) -> list[e.Body]:
        if work.verdict == "deny":
            return [self._finished(agent, work, Outcome("denied", f"Not done: {work.reason}"))]
        capability = self.services.registry.get(work.action.capability)
        cancellable = capability is None or capability.cancellable
        return [e.ActionStarted(agent.id, work.action.id, cancellable)]

    def _settle(self, agent: AgentState) -> list[e.Body]:
        stopped = agent.level in ("stop", "kill") or (agent.turn is not None and agent.turn.expired)
        return [
            self._finished(agent, work, self.unfinished(work))
            for work in agent.work
            if work.outcome is None and (stopped or work.given_up)
        ]

    def unfinished(self, work: Work) -> Outcome:
        """The outcome of an action that was given up (law 2)."""
        if not work.started:
            return Outcome("cancelled", "Stopped before it started.")
        capability = self.services.registry.get(work.action.capability)
        if capability is not None and (capability.repeat == "idempotent" or capability.effects == ("read",)):
            return Outcome("cancelled", "Stopped.")
        return Outcome("unknown", "It was started and given up; whether it took effect is not known.")

    def _observe(self, agent: AgentState) -> list[e.Body]:
        assert agent.reply is not None
        assert agent.turn is not None
        pairs = [(w.action, w.outcome) for w in agent.work if w.outcome is not None]
        dialect = self.services.dialect_of(agent)
        messages = list(dialect.render(pairs))
        ending = self._ending(agent)
        lasting = [v for _, outcome in pairs for v in outcome.values if v.name or v.kind in MEDIA]
        known = named(lasting, agent.variables)
        kept: list[e.Body] = [e.VariableSet(agent.id, value.name, value) for value in known]
        if "script" in agent.definition.dialects and pairs:
            final = pairs[-1][1]
            last = text_value(final.text, self.services.journal.blobs, name="last", labels=final.labels)
            kept.append(e.VariableSet(agent.id, "last", last))
        lines = [f"[kept as ${value.name}: {head(value)}]" for value in known]
        notices = list(agent.reply.faults)
        if ending is None and (loop := repeated((*agent.turn.trail, trail_of(pairs)))):
            if agent.turn.warned:
                ending = self._limit(agent, "loop")
            else:
                notices.append(loop)
        if lines or notices:
            messages.append(said("user", "\n".join((*lines, *notices))))
        observed = e.Observed(agent.id, tuple(messages), tuple(notices))
        return [*kept, observed] if ending is None else [*kept, observed, ending]

    def _ending(self, agent: AgentState) -> e.Body | None:
        """The end of the turn where this iteration's outcomes are it."""
        if agent.level in ("stop", "kill") or (agent.turn and agent.turn.expired):
            return None
        assert agent.reply is not None
        if not agent.reply.final:
            for work in agent.work:
                capability = self.services.registry.get(work.action.capability)
                if capability and capability.ends_turn and work.outcome and work.outcome.state == "done":
                    return self._replied(agent, work.outcome.text, [work])
            return None
        if all(w.action.fault for w in agent.work) and agent.turn and agent.turn.iterations == 1:
            return None  # nothing of it was understood: it is told, and asked once more
        text = "\n".join(t for w in agent.work if w.outcome and (t := w.outcome.text))
        if any(w.outcome and w.outcome.state == "done" for w in agent.work):
            return self._replied(agent, text, agent.work)
        return e.TurnEnded(agent.id, "failed", text, detail="none of the actions was done")

    def _replied(self, agent: AgentState, text: str, works: Iterable[Work]) -> e.TurnEnded:
        values = tuple(v for w in works if w.outcome for v in w.outcome.values)
        labels = merge_labels(agent.turn.labels if agent.turn else (), *(v.labels for v in values))
        return e.TurnEnded(agent.id, "replied", text, values=values, labels=labels)

    def _conclude(self, agent: AgentState) -> list[e.Body]:
        reply, turn = agent.reply, agent.turn
        assert reply is not None
        assert turn is not None
        if reply.faults:
            return self._nudge(agent, "\n".join(reply.faults), turn.nudges < MOST_THOUGHTS)
        if reply.think:
            return self._nudge(agent, "Go on.", turn.nudges < MOST_THOUGHTS)
        if reply.reply.strip():
            detail = "cut at the length that the server allows" if reply.finish == "length" else ""
            values = references(reply.reply, agent.variables)
            return [e.TurnEnded(agent.id, "replied", reply.reply, detail, values, turn.labels)]
        return self._nudge(agent, EMPTY, turn.nudges < MOST_NUDGES)

    def _nudge(self, agent: AgentState, text: str, again: bool) -> list[e.Body]:
        if again:
            return [e.Observed(agent.id, (said("user", text),), (text,))]
        return [
            e.TurnEnded(agent.id, "failed", achieved(agent), "the model did not answer, and was asked again")
        ]

    def _end(self, agent: AgentState, why: str) -> e.Body:
        if why == "seconds":
            return self._limit(agent, "seconds")
        if why == "failed":
            return e.TurnEnded(agent.id, "failed", achieved(agent), agent.failure)
        return e.TurnEnded(agent.id, "stopped", achieved(agent), "a person stopped it")

    def _limit(self, agent: AgentState, limit: str) -> e.TurnEnded:
        labels = agent.turn.labels if agent.turn else ()
        return e.TurnEnded(agent.id, "limit", achieved(agent), limit, labels=labels)

    def _finished(self, agent: AgentState, work: Work, outcome: Outcome) -> e.Body:
        return e.ActionFinished(agent.id, work.action.id, outcome)


def achieved(agent: AgentState) -> str:
    """What a turn had come to: the last prose, else the last results."""
    if agent.turn is not None and agent.turn.partial:
        return agent.turn.partial
    for message in reversed(agent.dialogue):
        results = [p.text for p in message.parts if isinstance(p, ToolResult)]
        if results:
            return "\n".join(r[:500] for r in results)
    return ""


def told(owed: Owed, key: str) -> str:
    """A reply or question as its caller reads it, with the typed reason where it is not a reply."""
    if owed.reason == "question":
        return f"{owed.text}\n[a question with the id {key}: use answer with this id]"
    if owed.reason == "replied":
        return owed.text
    return f"[{owed.reason}: {owed.detail}] {owed.text}".rstrip()
