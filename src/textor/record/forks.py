"""A session that begins as another one did, up to one iteration, and goes on otherwise.

The fork's journal is the prefix of the other's events with one change: an edited reply, another
model, or nothing (the model is simply asked again). What was under way at that moment counts as
after a crash: repeatable actions are done again, others have the outcome unknown. Files and
containers are as they are now; a journal does not hold the world.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from textor import events as e
from textor.actions import Outcome
from textor.errors import UseError
from textor.kernel.services import Services
from textor.kernel.state import AgentState, State, fold_all
from textor.layouts import room_of
from textor.messages import Message
from textor.record.review import Draft, edited

#: The provider of calls and questions between agents.
TREE = "tree"


async def fork(
    services: Services,
    session: str,
    at: int,
    new: str,
    *,
    model: str = "",
    draft: Draft | None = None,
    held: bool = False,
    resting: bool = False,
) -> str:
    """Make the session `new` from `session` up to the iteration that began with event `at`, and
    return its id. The host runs it as any other; a `resting` one, all of whose agents are paused,
    only when somebody lets it run.

    `held`: nothing is done in it before a person says so. The agent's replies wait for a review, what
    was under way counts as given up, and the other agents are paused.

    Raises `UseError` when no iteration began there, or the draft is not understood.
    """
    events = [event async for event in services.journal.read(session)]
    begun = next(
        (ev.body for ev in events if ev.seq == at and isinstance(ev.body, e.GenerationStarted)), None
    )
    if begun is None:
        raise UseError(
            f"No iteration of {session} began with event {at}.",
            f"`textor iterations list {session}` shows them.",
        )
    prefix = _prefix(events, at, begun.agent, replied=draft is not None)
    created = prefix[0]
    assert isinstance(created.body, e.SessionCreated)
    body = replace(created.body, session=new, forked=f"{session}@{at}")
    if held:
        body = replace(body, title=f"[{model or 'again'}, at {at}] {body.title}".rstrip())
    prefix = [replace(created, body=body), *prefix[1:]]
    if held:
        prefix = [_reviewed(event, begun.agent) for event in prefix]
    state = fold_all(State(), prefix)
    agent = state.agents[begun.agent]
    changes: list[e.Body] = list(_quiet(services, state, agent)) if held else []
    if model:
        window = services.model(model).window
        room = room_of(agent.definition.layout, window, services.context_ratio)
        changes.append(e.ModelChanged(agent.id, model, room))
    if draft is not None:
        changes.append(edited(services, agent, draft))
    if resting:
        changes.append(e.Controlled("main", "pause"))
    await services.journal.create(new, [*prefix, *(services.event(change) for change in changes)])
    return new


def _reviewed(event: e.Event, agent: str) -> e.Event:
    """The making of an agent, now with its replies under review."""
    body = event.body
    if not isinstance(body, e.AgentCreated) or body.agent != agent:
        return event
    return replace(event, body=replace(body, definition=replace(body.definition, review=True)))


def _quiet(services: Services, state: State, agent: AgentState) -> Iterator[e.Body]:
    """What leaves nothing to do but the next request of one agent."""
    given_up = Outcome("unknown", "It was under way in the session that this one was forked from.")
    above: list[str] = []
    below: list[str] = []
    for other in state.agents.values():
        seconds = other.limits.seconds
        if seconds is not None:  # the time of the record is over long since
            yield e.LimitsRaised(replace(other.limits, seconds=None), other.id)
        if other.id == agent.id:
            continue
        if other.generation is not None:
            yield e.GenerationFinished(other.id, Message("assistant", ()), finish="cut")
        for work in other.work:
            capability = services.registry.get(work.action.capability)
            waits = capability is not None and capability.provider == TREE  # for an agent, and does nothing
            if work.started and work.outcome is None and not waits:
                yield e.ActionFinished(other.id, work.action.id, given_up)
        if other.turn is not None or other.inbox:
            (below if other.id.startswith(f"{agent.id}/") else above).append(other.id)
    if state.limits.seconds is not None:
        yield e.LimitsRaised(replace(state.limits, seconds=None))
    yield from (e.Controlled(id, "pause") for id in above)
    if above:
        yield e.Controlled(agent.id, "run")
    yield from (e.Controlled(id, "pause") for id in below)


def _prefix(events: Sequence[e.Event], at: int, agent: str, *, replied: bool) -> list[e.Event]:
    """The events before an iteration; with `replied` up to its reply."""
    if not replied:
        return [event for event in events if event.seq < at]
    for event in events:
        body = event.body
        if event.seq <= at or getattr(body, "agent", "") != agent:
            continue
        if isinstance(body, e.GenerationFinished) and body.finish != "cut":
            return [known for known in events if known.seq <= event.seq]
        if isinstance(body, e.GenerationFinished | e.GenerationFailed | e.TurnEnded):
            break
    raise UseError(f"The iteration that began with event {at} has no reply that could be edited.")
