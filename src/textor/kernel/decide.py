"""What comes next: `decide(state)` names the steps that are due. Pure, like the fold.

Each step has a stable id. The runner starts those that are not running and cancels those that are
running and no longer named, so an interruption, a pause or a stop is nothing but another state.
`now` steps are consequences that only append events; the others take time.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from textor.kernel import summary
from textor.kernel.state import AgentState, State, Work, open_work


class Step(msgspec.Struct, frozen=True):
    """One thing to do for an agent."""

    agent: str
    what: str  #: deliver, begin, generate, cut, judge, start, perform, settle, observe,
    #: conclude, end, report, leave, summarise, compile
    key: str = ""  #: tells steps of one kind apart: an iteration, an action

    @property
    def id(self) -> str:
        return f"{self.what}:{self.agent}:{self.key}"

    @property
    def now(self) -> bool:
        return self.what not in ("generate", "perform", "summarise", "compile")


def decide(state: State) -> list[Step]:
    """The steps that are due, in the order of the tree's making."""
    steps = [step for agent in state.agents.values() for step in _agent_steps(agent)]
    if state.owed or state.questions:
        steps += _between(state)
    return steps


def _between(state: State) -> Iterator[Step]:
    """Replies and questions whose caller is not waiting for them go to it as messages; a question
    that its caller left open is answered so."""
    for key, owed in state.owed.items():
        waiting = open_work(state.agents.get(owed.caller))
        calls: tuple[str, ...] = (key,)
        if owed.reason == "question" and (turn := state.agents[owed.agent].turn):
            calls = turn.keys
        if not waiting.intersection(calls):
            yield Step(owed.caller, "report", key)
    for key, question in state.questions.items():
        caller = state.agents.get(state.agents[question.agent].caller)
        if caller and key not in state.owed and caller.turn is None and not caller.inbox:
            yield Step(question.agent, "leave", key)


def _agent_steps(agent: AgentState) -> Iterator[Step]:
    if agent.turn is None:
        if agent.inbox and agent.level == "run":
            yield Step(agent.id, "deliver")
    elif agent.level in ("stop", "kill") or agent.turn.expired:
        yield from _stopping(agent, hard=agent.level == "kill")
    elif agent.failure:
        yield Step(agent.id, "end", "failed")
    elif agent.generation is not None:
        yield _generating(agent)
    elif agent.reply is not None:
        yield from _working(agent)
    elif agent.level == "run":
        yield Step(agent.id, _next(agent), str(agent.iterations))


def _next(agent: AgentState) -> str:
    """Between two iterations: messages first, then room for more, then the next request."""
    if agent.inbox:
        return "deliver"
    failed = agent.turn.unsummarised if agent.turn else 0
    return "summarise" if summary.due(agent) and failed < summary.MOST_FAILURES else "begin"


def _generating(agent: AgentState) -> Step:
    interrupted = any(not message.sender for _, message in agent.inbox)
    return Step(agent.id, "cut" if interrupted else "generate", str(agent.iterations))


def _working(agent: AgentState) -> Iterator[Step]:
    """A reply is there: judge its actions, perform them, show their outcomes."""
    assert agent.reply is not None
    if agent.definition.review and not agent.reviewed:
        return  # a person looks at it first
    paused = agent.level == "pause"
    if not agent.work:
        if not paused:
            yield Step(agent.id, "conclude", str(agent.iterations))
        return
    if any(not w.action.capability and not w.action.fault for w in agent.work):
        yield Step(agent.id, "compile", str(agent.iterations))
        return
    if any(not w.verdict and w.outcome is None for w in agent.work):
        yield Step(agent.id, "judge", str(agent.iterations))
        return
    for work in agent.work:
        if work.outcome is not None:
            continue
        if work.given_up and (work.cancellable or not work.started):
            yield Step(agent.id, "settle", work.action.id)
        elif work.started:
            yield Step(agent.id, "perform", work.action.id)
        elif work.verdict != "ask" and not paused:
            yield Step(agent.id, "start", work.action.id)
        if agent.reply.serial:
            break
    if all(w.outcome for w in agent.work) and not paused:
        yield Step(agent.id, "observe", str(agent.iterations))


def _stopping(agent: AgentState, hard: bool) -> Iterator[Step]:
    """Stop at the next boundary, or kill now: cut, settle, show what came of it, end."""
    if agent.generation is not None:
        yield Step(agent.id, "cut", str(agent.iterations))
        return
    held = [w for w in agent.work if _held(w, hard)]
    for work in held:
        yield Step(agent.id, "perform", work.action.id)
    if held:
        return
    if any(w.outcome is None for w in agent.work):
        yield Step(agent.id, "settle", str(agent.iterations))
    elif agent.work:
        yield Step(agent.id, "observe", str(agent.iterations))
    else:
        yield Step(agent.id, "end", "seconds" if agent.turn and agent.turn.expired else "stopped")


def _held(work: Work, hard: bool) -> bool:
    """A started action that cannot be ended for certain is waited for, unless killed."""
    return work.outcome is None and work.started and not work.cancellable and not hard
