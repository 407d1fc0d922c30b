"""Textor from Python: an agent with your own functions as capabilities, in a few lines.

```python
from textor import Agent, capability

@capability
def population(city: str) -> int:
    "Inhabitants of a city."
    return {"Ghent": 265_086}[city]

agent = Agent("You answer questions about cities.", model="oai:gpt-4o", capabilities=[population])
reply = await agent("How many people live in Ghent?")
```
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from textor import events as e
from textor.actions import Action
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.functions import FunctionProvider, capability
from textor.config import AGENTS, load
from textor.errors import UseError
from textor.events import Definition, Event, Limits
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import AgentState, State
from textor.messages import Message, Usage
from textor.models.port import Model
from textor.near import did_you_mean, nearest
from textor.processors import Models
from textor.session import Session
from textor.values import Value

__all__ = ["Agent", "Reply", "capability"]

Approve = Callable[[Action, str], bool | Awaitable[bool]]


class Reply(msgspec.Struct, frozen=True):
    """What came of one message.

    `reason` is "replied", "asked", "limit", "stopped" or "failed"; `detail` says which limit or
    what failed; `text` is the answer or what was achieved so far. `iterations`, `usage` and
    `actions` are those of this turn.
    """

    text: str
    reason: e.EndReason
    detail: str = ""
    iterations: int = 0
    usage: Usage = Usage()
    values: tuple[Value, ...] = ()
    actions: tuple[Action, ...] = ()

    @property
    def ok(self) -> bool:
        return self.reason in ("replied", "asked")

    def __str__(self) -> str:
        return self.text


class Agent:
    """An agent that keeps its context between messages.

    `capabilities` are typed functions, plain or decorated with `@capability`, or names of those
    in the box ("files.*", "shell.run"). `iterations` is an exact limit on generations per
    message. Without `approve`, an action beyond reading is denied; `approve(action, reason)`
    answers the gate, and `policy="yes"` allows all but sending and paying. `journal` is a file
    to keep everything in; without it nothing is kept.
    """

    def __init__(
        self,
        prompt: str = "",
        *,
        model: str | Model = "",
        capabilities: Sequence[Callable[..., Any] | str] = (),
        dialect: str = "",
        iterations: int | None = 20,
        tokens: int | None = None,
        money: float | None = None,
        seconds: float | None = None,
        policy: str = "ask",
        approve: Approve | None = None,
        workspace: str | Path = ".",
        journal: str | Path | None = None,
    ) -> None:
        self._model = model
        self._provider = FunctionProvider([c for c in capabilities if not isinstance(c, str)])
        self._names = tuple(c for c in capabilities if isinstance(c, str))
        self._prompt, self._dialect = prompt, dialect or "tools"
        self._policy, self._approve = policy, approve
        self._workspace = Path(workspace)
        self._limits = Limits(iterations, tokens, money, seconds, AGENTS)
        self._path = Path(journal) if journal is not None else None
        self._machine: Machine | None = None
        self._session: Session | None = None
        self._state = State()
        self._lock = asyncio.Lock()

    async def __call__(self, message: str) -> Reply:
        """Send a message and wait for the reply. Messages sent at the same time wait their turn.

        Raises `TextorError` when the model or the journal cannot be had; what goes wrong within
        the turn is told by the reply's `reason`.
        """
        async with self._lock:
            session = await self._open()
            assert self._machine is not None
            host = LocalHost(self._machine.services)
            self._machine.host = host
            await host.start()
            try:
                return await session.unless_given_up(self._turn(session, message))
            finally:
                await host.close()
                self._state = await session.state()

    @property
    def messages(self) -> list[Message]:
        """The dialogue so far, without the system prompt."""
        agent = self._agent
        return list(agent.dialogue) if agent else []

    @property
    def usage(self) -> Usage:
        """Tokens and price of all messages so far; `cost` is None where a price is unknown."""
        return self._state.usage

    async def close(self) -> None:
        """Let go of what the agent holds (servers, files)."""
        if self._machine is not None:
            await self._machine.close()
            self._machine = self._session = None

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def _agent(self) -> AgentState | None:
        return self._state.agents.get("main")

    async def _open(self) -> Session:
        if self._session is not None:
            return self._session
        config = load()
        models = Models(config)
        if not isinstance(self._model, str):
            models.add(self._model)
        name = self._model if isinstance(self._model, str) else self._model.id
        journal = SqliteJournal(self._path) if self._path else MemoryJournal()
        providers = [self._provider, *await core_providers()]
        services = await make_services(config, journal, models, providers)
        for wanted in self._names:
            if not services.registry.catalogue([wanted]).names:
                near = did_you_mean(nearest(wanted, services.registry.names))
                raise UseError(f"There is no capability {wanted!r}.", near)
        if not self._workspace.is_dir():
            raise UseError(f"{self._workspace} is no folder to work in.")
        self._machine = Machine(config, services, models)
        offered = [c.name for c in await self._provider.capabilities()]
        definition = Definition(
            "agent",
            dialects=(self._dialect,),
            capabilities=(*offered, *self._names),
            prompt=self._prompt,
        )
        known = await journal.sessions()
        if known:  # the file of an earlier run: go on
            self._session = Session(known[0].id, services)
        else:
            self._session = await self._machine.create(
                workspace=self._workspace,
                model=name,
                policy=self._policy,
                attended=self._approve is not None,
                limits=self._limits,
                definition=definition,
            )
        return self._session

    async def _turn(self, session: Session, message: str) -> Reply:
        before = await session.state()
        posted = await session.post(message)
        events: list[Event] = []
        taken = False
        async for event in session.follow(before.seq):
            events.append(event)
            body = event.body
            if isinstance(body, e.MessagesDelivered) and posted in body.ids:
                taken = True
            elif isinstance(body, e.ActionJudged) and body.verdict == "ask":
                await self._answer(session, body)
            elif isinstance(body, e.TurnEnded) and body.agent == "main" and taken:
                return _reply(body, events)
        raise AssertionError("a journal is followed for ever")

    async def _answer(self, session: Session, judged: e.ActionJudged) -> None:
        assert self._approve is not None
        state = await session.state()
        action = next(w.action for w in state.agents[judged.agent].work if w.action.id == judged.action)
        answer = self._approve(action, judged.reason)
        allow = await answer if inspect.isawaitable(answer) else answer
        await session.answer(judged.action, bool(allow), digest=judged.digest)


def _reply(ended: e.TurnEnded, events: Sequence[Event]) -> Reply:
    generations = [b for ev in events if isinstance(b := ev.body, e.GenerationFinished) and b.agent == "main"]
    usage = Usage(cost=0.0)
    for generation in generations:
        usage += generation.usage
    actions = tuple(action for generation in generations for action in generation.actions)
    started = sum(isinstance(ev.body, e.GenerationStarted) for ev in events)
    return Reply(ended.text, ended.reason, ended.detail, started, usage, ended.values, actions)
