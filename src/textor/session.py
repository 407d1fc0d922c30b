"""A session as faces see it: the same few methods for every one of them (law 4).

All that a face does is an input event; all that it shows comes from `follow`. Whether this process
or another one hosts the session makes no difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from textor import events as e
from textor.actions import Action
from textor.errors import UseError
from textor.events import Body, Event, Level, Limits
from textor.kernel.services import Services
from textor.kernel.state import State, fold
from textor.live import Delta
from textor.messages import Message
from textor.values import BIG, Json, Labels, Value, shown, text_value

#: A message of more characters is kept as a value.
LONG = 4 * BIG


class Session:
    """One conversation with its tree of agents."""

    def __init__(self, id: str, services: Services) -> None:
        self.id = id
        self._services = services
        self._state = State()

    async def _input(self, body: Body, id: str | None) -> str:
        event = self._services.event(body)
        if id:
            event = Event(body, id, event.time)
        await self._services.journal.append(self.id, [event], epoch=None)
        return event.id

    async def post(
        self,
        text: str,
        agent: str = "main",
        *,
        values: Sequence[Value] = (),
        labels: Labels = (),
        id: str | None = None,
    ) -> str:
        """Send a message to an agent; returns the event's id. The same `id` twice counts once."""
        await self._known(agent)
        if len(text) > LONG:  # kept whole, shown to the model by head, tail and handle
            whole = text_value(text, self._services.journal.blobs, name="message", labels=labels)
            values, text = (*values, whole), shown(text, whole.handle)
        return await self._input(e.MessagePosted(agent, text, values=tuple(values), labels=labels), id)

    async def answer(
        self,
        action: str,
        allow: bool,
        *,
        reason: str = "",
        scope: Literal["once", "session", "always"] = "once",
        arguments: dict[str, Json] | None = None,
        digest: str = "",
        id: str | None = None,
    ) -> str:
        """Answer the gate's question about an action. The first answer counts."""
        return await self._input(e.ActionAnswered(action, allow, reason, scope, arguments, digest), id)

    async def reply(self, key: str, text: str, *, id: str | None = None) -> str:
        """Answer an agent's question (`events.Asked.key`)."""
        return await self._input(e.Answered(key, text), id)

    async def review(
        self,
        agent: str,
        verdict: Literal["accept", "edit", "again"],
        *,
        message: Message | None = None,
        actions: Sequence[Action] = (),
        reply: str = "",
        remark: str = "",
        id: str | None = None,
    ) -> str:
        """Accept or edit a reply that waits at the gate, or ask for another."""
        if verdict == "edit" and message is None:
            raise UseError("An edited reply needs its message.")
        body = e.ReplyReviewed(agent, verdict, message, tuple(actions), reply, remark)
        return await self._input(body, id)

    async def control(self, level: Level, agent: str = "main", *, id: str | None = None) -> str:
        """Run, pause, stop or kill an agent and all below it. Twice is harmless."""
        await self._known(agent)
        return await self._input(e.Controlled(agent, level), id)

    async def change_model(self, model: str, agent: str = "main", *, id: str | None = None) -> str:
        """Go on with another model. Raises `TextorError` when there is none of this name."""
        await self._known(agent)
        room = int(self._services.model(model).window * self._services.context_ratio)
        return await self._input(e.ModelChanged(agent, model, room), id)

    async def change_policy(self, policy: str, attended: bool = True, *, id: str | None = None) -> str:
        return await self._input(e.PolicySet(policy, attended), id)

    async def raise_limits(self, limits: Limits, agent: str = "", *, id: str | None = None) -> str:
        """Set new limits for the session (agent "") or for one agent."""
        return await self._input(e.LimitsRaised(limits, agent), id)

    async def state(self) -> State:
        """The fold of the journal up to now."""
        async for event in self._services.journal.read(self.id, self._state.seq):
            self._state = fold(self._state, event)
        return self._state

    async def ask(self, text: str, agent: str = "main") -> e.TurnEnded:
        """Post a message and wait for the end of the turn that takes it up."""
        after = (await self.state()).seq
        message = await self.post(text, agent)
        return await self.ended(agent, message, after)

    async def ended(self, agent: str, message: str, after: int = 0) -> e.TurnEnded:
        """The end of the turn that took up the message with this event id."""
        taken = False
        async for event in self.follow(after):
            body = event.body
            if isinstance(body, e.MessagesDelivered) and message in body.ids:
                taken = True
            elif isinstance(body, e.TurnEnded) and body.agent == agent and taken:
                return body
        raise AssertionError("a journal is followed for ever")

    def follow(self, after: int = 0) -> AsyncIterator[Event]:
        """The events numbered above `after` and all to come, for ever."""
        return self._services.journal.follow(self.id, after)

    def live(self) -> AsyncIterator[Delta]:
        """What is shown and not kept: pieces of text, progress. Only in the hosting process."""
        return self._services.hub.watch(self.id)

    async def _known(self, agent: str) -> None:
        state = await self.state()
        if agent not in state.agents:
            names = ", ".join(state.agents) or "none"
            raise UseError(f"Session {self.id} has no agent {agent!r}.", f"Its agents: {names}.")
