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
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from textor import events as e
from textor.actions import Action
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.functions import FunctionProvider, capability
from textor.capabilities.inputs import value_of_file
from textor.config import AGENTS, load
from textor.errors import UseError
from textor.events import Definition, Event, Limits
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import AgentState, State
from textor.live import Delta
from textor.messages import Message, Usage
from textor.models.port import Model
from textor.near import did_you_mean, nearest
from textor.processors import Models
from textor.session import Session
from textor.steps import Done, Piece, Step, Steps, step_of
from textor.values import Value

__all__ = ["Agent", "Done", "Piece", "Reply", "Step", "capability"]

Approve = Callable[[Action, str], bool | Awaitable[bool]]
Answer = Callable[[str], str | Awaitable[str]]
Review = Callable[[Step], bool | str | Awaitable[bool | str]]
Watch = Callable[[Piece], object]

NOBODY = "Nobody is here to answer. Go on with what you know, or end with what you have."


class Reply(msgspec.Struct, frozen=True):
    """What came of one message.

    `reason` is "replied", "asked", "limit", "stopped" or "failed"; `detail` says which limit or
    what failed; `text` is the answer or what was achieved so far. `iterations`, `usage`, `actions`
    and `steps` (what was thought and written in each iteration) are those of this turn.
    """

    text: str
    reason: e.EndReason
    detail: str = ""
    iterations: int = 0
    usage: Usage = Usage()
    values: tuple[Value, ...] = ()
    actions: tuple[Action, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def ok(self) -> bool:
        return self.reason in ("replied", "asked")

    def __str__(self) -> str:
        return self.text


class Agent:
    """An agent that keeps its context between messages.

    `capabilities` are typed functions, plain or decorated with `@capability`, or names of those
    in the box ("files.*", "shell.run"). `agent` is an agent type by name (see `textor agents`): its
    prompt and capabilities come first, and `call` among them lets it call others. `iterations` is
    an exact limit on generations per message. `policy="yes"` allows all but sending and paying.
    `journal` is a file to keep everything in; without it nothing is kept.

    Four functions, async or not, stand for the person. `approve(action, reason)` answers the gate;
    without it an action beyond reading is denied. `answer(question)` answers an agent that asks back
    in the middle of a turn; without it the agent is told that nobody is there. `review(step)` is
    asked about every reply before anything of it runs: True takes it, a text is the remark with
    which another is asked for, False stops. `watch(piece)` is shown each `Delta` (text as it
    arrives), `Step` and `Done`; `stream` gives the same.
    """

    def __init__(
        self,
        prompt: str = "",
        *,
        model: str | Model = "",
        capabilities: Sequence[Callable[..., Any] | str] = (),
        agent: str = "",
        dialect: str = "",
        temperature: float | None = None,
        iterations: int | None = 20,
        tokens: int | None = None,
        money: float | None = None,
        seconds: float | None = None,
        policy: str = "ask",
        approve: Approve | None = None,
        answer: Answer | None = None,
        review: Review | None = None,
        watch: Watch | None = None,
        workspace: str | Path = ".",
        journal: str | Path | None = None,
    ) -> None:
        self._model = model
        self._provider = FunctionProvider([c for c in capabilities if not isinstance(c, str)])
        self._names = tuple(c for c in capabilities if isinstance(c, str))
        self._prompt, self._type, self._dialect = prompt, agent, dialect
        self._temperature = temperature
        self._policy, self._approve, self._answers = policy, approve, answer
        self._review, self._watch = review, watch
        self._workspace = Path(workspace)
        self._limits = Limits(iterations, tokens, money, seconds, AGENTS)
        self._path = Path(journal) if journal is not None else None
        self._machine: Machine | None = None
        self._session: Session | None = None
        self._state = State()
        self._lock = asyncio.Lock()
        self._busy = False

    async def __call__(self, message: str, *, files: Sequence[str | Path] = ()) -> Reply:
        """Send a message and wait for the reply. Messages sent at the same time wait their turn.

        `files` go along as values: images and other media are shown to models that take them, all
        others are variables of the agent, named after the file.

        Raises `TextorError` when the model, the journal or a file cannot be had; what goes wrong
        within the turn is told by the reply's `reason`.
        """
        if self._watch is None:
            return await self._send(message, files, None)
        async with aclosing(self.stream(message, files=files)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    return piece
                told = self._watch(piece)
                if inspect.isawaitable(told):
                    await told
        raise AssertionError("a stream ends with its reply")

    async def stream(
        self, message: str, *, files: Sequence[str | Path] = ()
    ) -> AsyncGenerator[Piece | Reply, None]:
        """The same, piece by piece: text as it arrives, steps, outcomes, and at last the reply.

        What is left when you stop listening is given up; the next message goes on from there.
        """
        pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        turn = asyncio.ensure_future(self._send(message, files, pieces.put_nowait))
        turn.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            yield turn.result()
        finally:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

    async def say(self, text: str, to: str = "main") -> None:
        """A word to an agent at work, beside the turn that runs: it is read at the next step."""
        session = await self._open()
        await session.post(text, to)

    async def stop(self, *, now: bool = False) -> None:
        """Stop the turn that runs, at the next boundary or (`now`) within its actions. Its reply has
        the reason "stopped"; the next message goes on. Without a turn nothing happens."""
        if self._session is not None and self._busy:
            await self._session.control("kill" if now else "stop")

    async def _send(
        self, message: str, files: Sequence[str | Path], tell: Callable[[Piece], None] | None
    ) -> Reply:
        async with self._lock:
            session = await self._open()
            assert self._machine is not None
            blobs = self._machine.journal.blobs
            values = [await asyncio.to_thread(value_of_file, Path(file), blobs) for file in files]
            host = LocalHost(self._machine.services)
            self._machine.host = host
            await host.start()
            self._busy = True
            try:
                return await session.unless_given_up(self._turn(session, message, values, tell))
            finally:
                self._busy = False
                await host.close()
                self._state = await session.state()

    @property
    def messages(self) -> list[Message]:
        """The dialogue so far, without the system prompt; `str(message)` is a message for a reader."""
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
        name = self._model if isinstance(self._model, str) else self._model.id
        if name:  # the agents that it calls use it as well, where none is configured for them
            config = msgspec.structs.replace(config, models={**config.models, "default": name})
        models = Models(config)
        if not isinstance(self._model, str):
            models.add(self._model)
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
        known = await journal.sessions()
        if known:  # the file of an earlier run: go on
            self._session = Session(known[0].id, services)
        else:
            self._session = await self._machine.create(
                workspace=self._workspace,
                model=name,
                policy=self._policy,
                attended=self._approve is not None or self._answers is not None,
                limits=self._limits,
                definition=await self._definition(self._machine),
            )
        return self._session

    async def _definition(self, machine: Machine) -> Definition:
        """The agent type: the one that was named, with what was given beside it."""
        made = machine.definition(self._type, self._workspace) if self._type else Definition("agent")
        offered = [c.name for c in await self._provider.capabilities()]
        return msgspec.structs.replace(
            made,
            dialects=(self._dialect,) if self._dialect else made.dialects,
            capabilities=(*made.capabilities, *offered, *self._names),
            prompt="\n\n".join(part for part in (made.prompt, self._prompt) if part),
            review=made.review or self._review is not None,
            temperature=made.temperature if self._temperature is None else self._temperature,
        )

    async def _turn(
        self,
        session: Session,
        message: str,
        values: Sequence[Value],
        tell: Callable[[Piece], None] | None,
    ) -> Reply:
        before = await session.state()
        hub = self._machine.services.hub if self._machine else None
        deltas = hub.subscribe(session.id) if hub and tell else None
        moving = asyncio.ensure_future(_move(deltas, tell)) if deltas and tell else None
        try:
            posted = await session.post(message, values=values)
            events: list[Event] = []
            steps, taken = Steps(), False
            async for event in session.follow(before.seq):
                events.append(event)
                body = event.body
                piece = steps.take(event)
                if tell and deltas and piece is not None:
                    while not deltas.empty():  # what was said before it stands before it
                        tell(deltas.get_nowait())
                    tell(piece)
                if isinstance(body, e.MessagesDelivered) and posted in body.ids:
                    taken = True
                elif isinstance(body, e.TurnEnded) and body.agent == "main" and taken:
                    return _reply(body, events, steps)
                else:
                    await self._attend(session, body)
            raise AssertionError("a journal is followed for ever")
        finally:
            if moving and deltas and hub:
                moving.cancel()
                hub.unsubscribe(session.id, deltas)

    async def _attend(self, session: Session, body: e.Body) -> None:
        """Answer what waits for a person: a question of the gate, one of an agent, a reply."""
        if isinstance(body, e.ActionJudged) and body.verdict == "ask":
            await self._judge(session, body)
        elif isinstance(body, e.Asked) and "/" not in body.agent:  # of one below: its caller's
            text = NOBODY
            if self._answers is not None:
                given = self._answers(body.question)
                text = await given if inspect.isawaitable(given) else given
            await session.reply(body.key, text, secret=body.secret)
        elif (
            isinstance(body, e.GenerationFinished)
            and body.finish != "cut"
            and (await session.state()).agents[body.agent].definition.review
        ):
            await self._reviewed(session, body)

    async def _reviewed(self, session: Session, body: e.GenerationFinished) -> None:
        given = self._review(step_of(body)) if self._review is not None else False
        verdict = await given if inspect.isawaitable(given) else given
        if isinstance(verdict, str):
            await session.review(body.agent, "again", remark=verdict)
        elif verdict:
            await session.review(body.agent, "accept")
        else:
            await session.control("stop", body.agent)

    async def _judge(self, session: Session, judged: e.ActionJudged) -> None:
        if self._approve is None:
            await session.answer(judged.action, False, reason="nobody approves", digest=judged.digest)
            return
        state = await session.state()
        action = next(w.action for w in state.agents[judged.agent].work if w.action.id == judged.action)
        answer = self._approve(action, judged.reason)
        allow = await answer if inspect.isawaitable(answer) else answer
        await session.answer(judged.action, bool(allow), digest=judged.digest)


async def _move(deltas: asyncio.Queue[Delta], tell: Callable[[Piece], None]) -> None:
    while True:
        tell(await deltas.get())


def _reply(ended: e.TurnEnded, events: Sequence[Event], steps: Steps) -> Reply:
    own = tuple(step for step in steps.steps if step.agent == "main")
    usage = sum((step.usage for step in own), Usage(cost=0.0))
    actions = tuple(action for step in own for action in step.actions)
    started = sum(isinstance(b := ev.body, e.GenerationStarted) and b.agent == "main" for ev in events)
    return Reply(ended.text, ended.reason, ended.detail, started, usage, ended.values, actions, own)
