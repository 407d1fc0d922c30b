"""A session as faces see it: the same few methods for every one of them (law 4).

All that a face does is an input event; all that it shows comes from `follow`. Whether this process
or another one hosts the session makes no difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Literal, TypeVar

import msgspec

from textor import events as e
from textor.actions import Action
from textor.errors import JournalError, UseError
from textor.events import Body, Event, Level, Limits
from textor.kernel.services import Services
from textor.kernel.state import AgentState, State, Work, fold
from textor.layouts import room_of
from textor.live import Delta
from textor.machine_state import store
from textor.messages import Message
from textor.policy.gate import guarded_by
from textor.policy.look import look
from textor.policy.rules import AREA, answered, key_of
from textor.record.review import Draft, edited
from textor.values import BIG, Json, Labels, Value, shown, text_value

T = TypeVar("T")

#: Who sends what the machine noticed.
MACHINE = "the machine"

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
        self._services.hub.well(self.id)  # an input has the host try again
        await self._services.journal.append(self.id, [event], epoch=None)
        return event.id

    async def post(
        self,
        text: str,
        agent: str = "main",
        *,
        values: Sequence[Value] = (),
        labels: Labels = (),
        cancel: bool = False,
        id: str | None = None,
    ) -> str:
        """Send a message to an agent; returns the event's id. The same `id` twice counts once.

        A generation is cut for it; actions under way are waited for, or with `cancel` given up.
        """
        await self._known(agent)
        if cancel:
            for work in (await self.state()).agents[agent].work:
                if work.outcome is None:
                    await self.give_up(work.action.id)
        if len(text) > LONG:  # kept whole, shown to the model by head, tail and handle
            whole = text_value(text, self._services.journal.blobs, name="message", labels=labels)
            values, text = (*values, whole), shown(text, whole.handle)
        return await self._input(e.MessagePosted(agent, text, values=tuple(values), labels=labels), id)

    async def tell(self, text: str, agent: str = "main") -> str:
        """A message of the machine's own to an agent: what it noticed. It is no person's word."""
        await self._known(agent)
        return await self._input(e.MessagePosted(agent, text, sender=MACHINE), None)

    async def answer(
        self,
        action: str,
        allow: bool,
        *,
        reason: str = "",
        scope: Literal["once", "session", "always"] = "once",
        arguments: dict[str, Json] | None = None,
        digest: str = "",
        command: str = "",
        id: str | None = None,
    ) -> str:
        """Answer the gate's question about an action. The first answer counts.

        It is bound to the `digest` of the question (by default the one that is open now), so that it
        is void for any other call. A yes for the `session` or for `always` holds for this call at
        this place; with `command`, a pattern such as "git status *", for all commands that it covers
        (see `textor.policy.commands`). Raises `UseError` for a pattern that does not cover the call
        that it answers.
        """
        question = await self._at_the_gate(action)
        if question is not None:
            digest = digest or question[1].digest
            kept = allow and arguments is None and digest == question[1].digest
            if kept and (scope == "always" or (command and scope == "session")):
                await self._keep(*question, scope, command)
        return await self._input(e.ActionAnswered(action, allow, reason, scope, arguments, digest), id)

    async def _at_the_gate(self, action: str) -> tuple[AgentState, Work] | None:
        """The action that waits under this id, and its agent."""
        for agent in (await self.state()).agents.values():
            for work in agent.work:
                if work.action.id == action and work.verdict == "ask":
                    return agent, work
        return None

    async def _keep(self, agent: AgentState, work: Work, scope: str, command: str) -> None:
        """Keep an answer as a rule: of this session, or of all of them."""
        capability = self._services.registry.get(work.action.capability)
        if capability is None:
            raise UseError(f"There is no capability {work.action.capability!r} now.")
        guarded = guarded_by(self._services.policy)
        call = await asyncio.to_thread(look, work.action, capability, self._state, agent, guarded)
        rule = answered(call, command)
        event = self._services.event(e.Stored(AREA, key_of(rule), msgspec.to_builtins(rule)))
        if scope == "always":
            await store(self._services.journal, event)
        else:
            await self._services.journal.append(self.id, [event], epoch=None)

    async def give_up(self, action: str, *, id: str | None = None) -> str:
        """Cancel one action: for certain where its provider can, else it is waited for."""
        return await self._input(e.ActionGivenUp(action), id)

    async def reply(self, key: str, text: str, *, secret: bool = False, id: str | None = None) -> str:
        """Answer an agent's question (`events.Asked.key`).

        A `secret` answer goes from hand to hand (`secrets.Handed`): the journal only says that there
        was one. Where it is lost, since the process that hosts the session ended, it is asked again.
        """
        if secret:
            self._services.hub.secrets.put(f"{self.id} {key}", text)
            text = "[given in secret]"
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

    async def edit_reply(self, agent: str, draft: Draft, *, id: str | None = None) -> str:
        """Go on with an edited reply in the place of the one that waits. Raises `UseError` when none
        waits or the agent's dialect does not understand it."""
        await self._known(agent)
        body = edited(self._services, (await self.state()).agents[agent], draft)
        return await self._input(body, id)

    async def control(self, level: Level, agent: str = "main", *, id: str | None = None) -> str:
        """Run, pause, stop or kill an agent and all below it. Twice is harmless."""
        await self._known(agent)
        return await self._input(e.Controlled(agent, level), id)

    async def change_model(self, model: str, agent: str = "main", *, id: str | None = None) -> str:
        """Go on with another model. Raises `TextorError` when there is none of this name."""
        await self._known(agent)
        layout = (await self.state()).agents[agent].definition.layout
        room = room_of(layout, self._services.model(model).window, self._services.context_ratio)
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
        """The end of the turn that took up the message with this event id. Raises `JournalError` when
        the host gives the session up."""
        return await self.unless_given_up(self._end_of(agent, message, after))

    async def unless_given_up(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to; `JournalError` with the reason as soon as the host gives this session
        up (the disk is full). Only in the hosting process; the next input has it try again."""
        reading, fault = asyncio.ensure_future(work), asyncio.ensure_future(self._fault())
        try:
            await asyncio.wait([reading, fault], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise JournalError(fault.result())
            return reading.result()
        finally:
            for task in (reading, fault):
                task.cancel()
            await asyncio.gather(reading, fault, return_exceptions=True)

    async def _fault(self) -> str:
        async with aclosing(self.live()) as deltas:
            async for delta in deltas:
                if delta.kind == "fault":
                    return delta.text
        raise AssertionError("a session is watched for ever")

    async def _end_of(self, agent: str, message: str, after: int) -> e.TurnEnded:
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

    def live(self) -> AsyncGenerator[Delta, None]:
        """What is shown and not kept: pieces of text, progress. Only in the hosting process."""
        return self._services.hub.watch(self.id)

    async def _known(self, agent: str) -> None:
        state = await self.state()
        if agent not in state.agents:
            names = ", ".join(state.agents) or "none"
            raise UseError(f"Session {self.id} has no agent {agent!r}.", f"Its agents: {names}.")
