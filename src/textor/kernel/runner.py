"""The runner carries out steps: it starts those that are due and cancels those that no longer are.

One loop a session. Results are appended together with all that follows from them at once, so an
iteration costs two writes; nothing is started, shown or done before its event is durable (law 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import aclosing, suppress
from functools import partial

import msgspec
from msgspec.structs import replace

from textor import events as e
from textor.actions import Outcome
from textor.arguments import ArgumentError, convert
from textor.dialects.reader import Reader
from textor.errors import JournalError, ModelError, TextorError
from textor.kernel import budget, summary
from textor.kernel.context import build
from textor.kernel.decide import Step, decide
from textor.kernel.services import Services
from textor.kernel.state import AgentState, State, Work, fold
from textor.kernel.steps import Now
from textor.live import Delta
from textor.messages import Grammar, Message, ProgressChunk, TextChunk, Usage, UsageChunk, WaitChunk
from textor.values import Value, content_of, text_value

#: Consequences appended in one go; a state that asks for more than this is a fault of ours.
MOST_CONSEQUENCES = 10_000


class Running:
    """A step under way, and whether it has been told to end."""

    def __init__(self, step: Step, task: asyncio.Task[list[e.Body]]) -> None:
        self.step = step
        self.task = task
        self.cancelled_at: float | None = None
        self.entered = False  #: its coroutine has run at all


class Runner:
    """Runs one session from a state to the point where nothing is due.

    `epoch` is the right to append; `state` is the fold of the journal so far.
    """

    def __init__(self, session: str, services: Services, state: State, epoch: int) -> None:
        self.session = session
        self.services = services
        self._state = state
        self._changed: asyncio.Future[None] | None = None
        self.epoch = epoch
        self._running: dict[str, Running] = {}
        self._abandoned: set[asyncio.Task[list[e.Body]]] = set()
        self._begun: set[str] = set()
        self._readers: dict[str, tuple[Reader, Usage]] = {}
        self._notes: list[e.Body] = []
        self._wake = asyncio.Event()
        self._timers: dict[str, tuple[int, asyncio.TimerHandle]] = {}

    @property
    def state(self) -> State:
        """The fold of all that is durable."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    async def changed(self) -> None:
        """Wait for the next change of the state."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def wake(self) -> None:
        """Somebody appended an input, or a step ended."""
        self._wake.set()

    def show(self, agent: str, kind: str, text: str, action: str = "") -> None:
        """Show something that is not kept."""
        self.services.hub.send(self.session, Delta(agent, kind, text, action))

    async def run(self) -> None:
        """Carry out all that is due; returns when nothing is. Raises `Fenced`, `JournalError`."""
        try:
            while True:
                self._wake.clear()
                await self._catch_up()
                await self._advance(self._results())
                steps = decide(self.state)
                self._reconcile(steps)
                if not self._running and not self._notes and not any(s.now for s in steps):
                    return
                await self._wake.wait()
        finally:
            await self._end()

    # -- the journal -----------------------------------------------------------------------

    async def _catch_up(self) -> None:
        async for event in self.services.journal.read(self.session, self.state.seq):
            self.state = fold(self.state, event)

    async def _advance(self, bodies: list[e.Body]) -> None:
        """Append `bodies` and all that follows from them at once, as one batch."""
        state = self.state
        batch: list[e.Event] = []
        for _ in range(MOST_CONSEQUENCES):
            for body in bodies:
                event = self.services.event(body)
                batch.append(event)
                state = fold(state, event)
            steps = decide(state)
            ending = {r.step.agent for r in self._unwanted(steps)}
            step = next((s for s in steps if s.now and s.agent not in ending), None)
            if step is None:
                break
            bodies = Now(state, self.services, self._partial).take(step)
            self._begun |= {
                Step(b.agent, "perform", b.action).id for b in bodies if isinstance(b, e.ActionStarted)
            }
        if not batch:
            return
        stored = await self.services.journal.append(self.session, batch, epoch=self.epoch)
        if stored[0].seq == self.state.seq + 1:
            self.state = replace(state, seq=stored[-1].seq)
        else:  # an input came in between: read all in the journal's order
            await self._catch_up()
        self._set_timers()

    def _results(self) -> list[e.Body]:
        """What ended steps came to, and what running ones noted on the way."""
        bodies, self._notes = self._notes, []
        for id, running in list(self._running.items()):
            overdue = (
                running.cancelled_at is not None
                and self.services.clock() - running.cancelled_at >= self.services.grace
            )
            if running.task.done() or overdue:
                del self._running[id]
                if not running.task.done():
                    self._abandoned.add(running.task)
                elif not running.task.cancelled():
                    bodies += running.task.result()
                elif not running.entered and id in self._begun:
                    never = Outcome("cancelled", "Stopped before it started.")
                    bodies.append(e.ActionFinished(running.step.agent, running.step.key, never))
        return bodies

    # -- steps that take time --------------------------------------------------------------

    def _unwanted(self, steps: Iterable[Step]) -> list[Running]:
        wanted = {s.id for s in steps}
        return [r for id, r in self._running.items() if id not in wanted]

    def _reconcile(self, steps: list[Step]) -> None:
        """Start what is due and not running, cancel what is running and not due."""
        for running in self._unwanted(steps):
            if running.cancelled_at is None:
                running.cancelled_at = self.services.clock()
                running.task.cancel()
                asyncio.get_running_loop().call_later(self.services.grace, self.wake)
        ending = {r.step.agent for r in self._running.values() if r.cancelled_at is not None}
        for step in steps:
            if not step.now and step.id not in self._running and step.agent not in ending:
                self._start(step, getattr(self, f"_{step.what}")(step))

    def _start(self, step: Step, work: Coroutine[None, None, list[e.Body]]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=step.id)
        task.add_done_callback(lambda _: self.wake())
        self._running[step.id] = Running(step, task)

    async def _generate(self, step: Step) -> list[e.Body]:
        agent = self.state.agents[step.agent]
        try:
            return await self._read_reply(agent)
        except ModelError as error:
            return [e.GenerationFailed(agent.id, error.fault, str(error), self._partial(agent.id)[1])]
        except TextorError as error:
            return [e.GenerationFailed(agent.id, "refused", str(error))]
        finally:
            self.services.hub.fresh(self.session, agent.id)
            if not _is_cancelled():
                self._readers.pop(agent.id, None)

    async def _compile(self, step: Step) -> list[e.Body]:
        agent = self.state.agents[step.agent]
        actions = [work.action for work in agent.work]
        free = [n for n, action in enumerate(actions) if not action.capability and not action.fault]
        texts = [actions[n].text for n in free]
        lines = await self.services.compile(texts, self.services.offered(agent.offered))
        for n, line in zip(free, lines, strict=True):
            actions[n] = replace(actions[n], **line.as_action())
        return [e.PlanCompiled(agent.id, tuple(actions), tuple(msgspec.to_builtins(lines)))]

    async def _summarise(self, step: Step) -> list[e.Body]:
        agent = self.state.agents[step.agent]
        count = summary.oldest(agent)
        text, usage = "", Usage(estimated=True)
        try:
            model = self.services.model(agent.model)
            if isinstance(reserved := budget.reserve(self.state, agent, agent.size, model.price), str):
                return [e.SummaryFailed(agent.id, f"the budget of {reserved} does not allow it")]
            usage = reserved
            async with aclosing(model.generate(summary.request(agent, count, usage.output))) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, WaitChunk):
                        text = ""
                    elif isinstance(chunk, TextChunk):
                        text += chunk.text
                    elif isinstance(chunk, UsageChunk):
                        usage = chunk.usage
        except TextorError as error:
            return [e.SummaryFailed(agent.id, str(error), usage)]
        if (message := summary.replacement(agent, count, text)) is None:
            return [e.SummaryFailed(agent.id, "the summary was not shorter", usage)]
        return [e.Summarised(agent.id, count, message, usage)]

    async def _read_reply(self, agent: AgentState) -> list[e.Body]:
        started = agent.generation
        assert started is not None
        model = self.services.model(agent.model)
        dialect = self.services.dialect_of(agent)
        offered = self.services.offered(agent.offered)
        grammar: Grammar | None = None
        if model.grammars:
            grammar = dialect.grammar(tuple(offered), _request(agent))
        layout = self.services.layout(agent.definition.layout)
        context = build(layout, self.state, agent, started.status, started.reserved.output)
        prefix = f"{agent.id}.{started.iteration}"
        variables = {name: self._content(value) for name, value in agent.variables.items()}
        reader = self._reader(
            agent, Reader(dialect, offered, prefix, variables, self.services.found.findable)
        )
        finish = ""
        async with aclosing(model.generate(context, grammar=grammar)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, WaitChunk):
                    reader = self._reader(
                        agent, Reader(dialect, offered, prefix, variables, self.services.found.findable)
                    )
                    self._note(e.GenerationWaiting(agent.id, chunk.reason, chunk.seconds))
                elif isinstance(chunk, ProgressChunk):
                    self.show(agent.id, "progress", chunk.text)
                for kind, text in reader.feed(chunk):
                    self.show(agent.id, kind, text)
                if reader.done:
                    finish = "stopped"
                    break
        reading = reader.close(finish)
        usage = reading.usage or self._partial(agent.id)[1]
        labels = agent.turn.labels if agent.turn else ()
        if usage.cost is None:
            usage = replace(usage, cost=model.price(usage.input, usage.output, usage.cached))
        finished = e.GenerationFinished(
            agent.id,
            reading.message,
            tuple(replace(a, labels=labels) for a in reading.actions),
            reading.reply if not reading.actions else "",
            usage,
            reading.finish,
            reading.faults,
            reading.think,
            dialect.order == "serial",
            dialect.final,
            labels,
        )
        kept = partial(text_value, blobs=self.services.journal.blobs, labels=labels)
        defined = [e.VariableSet(agent.id, n, kept(text, name=n)) for n, text in reading.defined.items()]
        return [*defined, finished]

    def _content(self, value: Value) -> str | Value:
        """A text variable as its text, anything else as it is."""
        if value.kind != "text":
            return value
        return content_of(value, self.services.journal.blobs).decode("utf-8", "replace")

    def _reader(self, agent: AgentState, reader: Reader) -> Reader:
        assert agent.generation is not None
        self.services.hub.fresh(self.session, agent.id)
        self._readers[agent.id] = (reader, agent.generation.reserved)
        return reader

    def _partial(self, agent: str) -> tuple[Message, Usage]:
        """What an unfinished generation had said, and an estimate of what it used."""
        state = self.state.agents[agent]
        if agent not in self._readers:
            used = Usage(state.generation.reserved.input if state.generation else 0, estimated=True)
            return Message("assistant", ()), used
        reader, reserved = self._readers[agent]
        model = self.services.model(state.model)
        output = max(int(reader.written * state.ratio), 1 if reader.written else 0)
        cost = model.price(reserved.input, output)
        return reader.partial(), Usage(reserved.input, output, cost=cost, estimated=True)

    def _note(self, body: e.Body) -> None:
        self._notes.append(body)
        self.wake()

    async def _perform(self, step: Step) -> list[e.Body]:
        self._running[step.id].entered = True
        agent = self.state.agents[step.agent]
        work = next(w for w in agent.work if w.action.id == step.key)
        outcome = await self._outcome(agent, work, begun=step.id in self._begun)
        return [e.ActionFinished(agent.id, step.key, outcome)]

    async def _outcome(self, agent: AgentState, work: Work, *, begun: bool) -> Outcome:
        action = work.action
        capability = self.services.registry.get(action.capability)
        if capability is None:
            return Outcome.failed(f"There is no capability {action.capability!r} now.")
        if not begun and capability.repeat == "once":
            return Outcome(
                "unknown",
                "It had been started when the program ended, and whether it took effect is not known. "
                "Look before you do it again.",
            )
        try:
            action = replace(action, arguments=convert(action.arguments, capability.parameters))
            return await self.services.registry.invoke(action, self.services.scope(self, agent.id, action.id))
        except ArgumentError as error:
            return Outcome.failed(str(error))
        except asyncio.CancelledError:
            return Now(self.state, self.services, self._partial).unfinished(work)

    # -- time and the end ------------------------------------------------------------------

    def _set_timers(self) -> None:
        """One timer for each turn whose wall time is limited."""
        for agent in self.state.agents.values():
            turn = agent.turn
            known = self._timers.get(agent.id)
            if known and (turn is None or known[0] != turn.number):
                known[1].cancel()
                del self._timers[agent.id]
            seconds = budget.effective(self.state, agent).seconds
            if turn is None or seconds is None or agent.id in self._timers or turn.expired:
                continue
            left = max(turn.began + seconds - self.services.clock(), 0)
            expire = partial(self._note, e.TurnExpired(agent.id, turn.number))
            handle = asyncio.get_running_loop().call_later(left, expire)
            self._timers[agent.id] = (turn.number, handle)

    async def _end(self) -> None:
        """Leave nothing running. What ended actions confirm is kept where it still can be."""
        for _, timer in self._timers.values():
            timer.cancel()
        running = [*self._running.values()]
        tasks = [*(r.task for r in running), *self._abandoned]
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=self.services.grace)
        confirmed = [
            self.services.event(body)
            for r in running
            if r.step.what == "perform" and r.task.done() and not r.task.cancelled()
            for body in r.task.result()
        ]
        with suppress(JournalError):
            if confirmed:
                await self.services.journal.append(self.session, confirmed, epoch=self.epoch)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _request(agent: AgentState) -> str:
    """The last message of the caller, from which a grammar may copy."""
    return next((m.text for m in reversed(agent.dialogue) if m.role == "user"), "")
