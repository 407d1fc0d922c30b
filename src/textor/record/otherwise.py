"""What another model would have done in an iteration: asked on the one road, and nothing of it done.

The question is a fork of the session in which all is held: its request is journalled, counts against
the limits, and its reply waits for a person's review. Who likes it goes on there.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textor import events as e
from textor.actions import Action
from textor.errors import TextorError, UseError
from textor.kernel.services import Services
from textor.kernel.state import State, fold
from textor.messages import Message, Text, Usage
from textor.record.forks import fork
from textor.record.iterations import Iteration, message_text
from textor.record.replay import deed, read_again


@dataclass(frozen=True)
class Otherwise:
    """What another model says to the context of an iteration; nothing of it is done."""

    session: str  #: where it was asked, and waits for a review
    message: Message
    actions: tuple[Action, ...]
    usage: Usage
    diff: str  #: unified, from the record to this; "" where they are equal


async def otherwise(
    services: Services, session: str, iteration: Iteration, model: str, new: str
) -> Otherwise:
    """Ask `model` in the fork `new`, which the host of this journal runs.

    Raises `TextorError` with what the model's server said, `UseError` where a limit does not allow to ask.
    """
    said = iteration.raw or Message("assistant", ())
    before = _told(said, await _read(services, session, iteration, said))
    services.model(model)  # a name that is none makes no session
    fault = asyncio.create_task(_fault(services, new))
    try:
        await fork(services, session, iteration.seq, new, model=model, held=True)
        reply = asyncio.create_task(_reply(services, new, iteration))
        done, _ = await asyncio.wait({reply, fault}, return_when=asyncio.FIRST_COMPLETED)
        reply.cancel()
        found = (reply if reply in done else fault).result()
    finally:
        fault.cancel()
    after = _told(found.message, found.actions)
    lines = difflib.unified_diff(before, after, iteration.model, model, lineterm="")
    return Otherwise(new, found.message, found.actions, found.usage, "\n".join(lines))


async def _reply(services: Services, new: str, iteration: Iteration) -> e.GenerationFinished:
    """The reply of the agent to its first request in the fork."""
    async for event in services.journal.follow(new, iteration.seq - 1):  # the events before are the same
        body = event.body
        if getattr(body, "agent", "") != iteration.agent:
            continue
        if isinstance(body, e.GenerationFailed):
            raise TextorError(body.message)
        if isinstance(body, e.GenerationFinished):
            return body
        if isinstance(body, e.TurnEnded):
            raise UseError(f"The model was not asked: {body.reason} ({body.detail}).")
    raise AssertionError("a journal is followed for ever")


async def _fault(services: Services, new: str) -> e.GenerationFinished:
    """Ends only when the session had to be given up, and says why."""
    async for delta in services.hub.watch(new):
        if delta.kind == "fault":
            raise TextorError(delta.text)
    raise AssertionError("a session is watched for ever")


async def _read(services: Services, session: str, iteration: Iteration, said: Message) -> tuple[Action, ...]:
    """The actions of the recorded reply, as the agent's dialect reads them."""
    state = State()
    async for event in services.journal.read(session):
        if event.seq > iteration.seq:
            break
        state = fold(state, event)
    agent = state.agents[iteration.agent]
    return read_again(services, agent, said, iteration.finish or "stop").actions


def _told(message: Message, actions: Sequence[Action]) -> list[str]:
    return [*_lines(message), *(deed(action) for action in actions)]


def _lines(message: Message) -> Iterator[str]:
    texts = Message(message.role, tuple(p for p in message.parts if isinstance(p, Text)))
    yield from message_text(texts).splitlines()
