"""A session that begins as another one did, up to one iteration, and goes on otherwise.

The fork's journal is the prefix of the other's events with one change: an edited reply, another
model, or nothing (the model is simply asked again). What was under way at that moment counts as
after a crash: repeatable actions are done again, others have the outcome unknown. Files and
containers are as they are now; a journal does not hold the world.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from textor import events as e
from textor.errors import UseError
from textor.kernel.services import Services
from textor.kernel.state import State, fold_all
from textor.layouts import room_of
from textor.review import Draft, edited


async def fork(
    services: Services, session: str, at: int, new: str, *, model: str = "", draft: Draft | None = None
) -> str:
    """Make the session `new` from `session` up to the iteration that began with event `at`, and
    return its id. The host runs it as any other.

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
    prefix = [replace(created, body=body), *prefix[1:]]
    state = fold_all(State(), prefix)
    agent = state.agents[begun.agent]
    changes: list[e.Body] = []
    if model:
        window = services.model(model).window
        room = room_of(agent.definition.layout, window, services.context_ratio)
        changes.append(e.ModelChanged(agent.id, model, room))
    if draft is not None:
        changes.append(edited(services, agent, draft))
    await services.journal.create(new, [*prefix, *(services.event(change) for change in changes)])
    return new


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
