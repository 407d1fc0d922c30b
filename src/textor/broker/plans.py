"""Plans: a request becomes a list of actions that a person sees, corrects and runs.

A plan is a session. Its agent `main` writes the list and waits to be looked at; every run of a line
is an agent of its own, offered the one capability that the line was compiled to, with `typed:lines`
for a model. So each line goes through parser, gate and journal like any action (law 4), two apps
with the same phrase are told apart, and one line can be stopped alone. The queue is serial and lives
in this process: after a restart what ran is known, and the rest waits for a person.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from textor import events as e
from textor.actions import Capability, Catalogue
from textor.arguments import ArgumentError
from textor.broker.book import Book
from textor.broker.compiler import Compiler
from textor.broker.draft import AREA, LINES, MAIN, SETTINGS, Attempt, Draft, Line, Settings, as_json, changed
from textor.broker.prompt import planner, with_facts
from textor.broker.typed import ID as TYPED
from textor.dialects.matching import Compiled
from textor.dialects.plan_lines import Phrase, phrases_of
from textor.dialects.plan_slots import arguments_of
from textor.errors import UseError
from textor.events import AgentCreated, Definition, Event, Limits
from textor.kernel.services import Services
from textor.messages import said
from textor.near import did_you_mean, nearest
from textor.session import Session
from textor.values import Json, Value

PREFIX = "plan-"  #: of the ids of their sessions
WAIT = 20.0  #: seconds that a question for changes is held
#: Opens the window of an app without another question: the person has the list before them, and
#: what goes outward is asked about all the same.
POLICY = "edits"
MOST_LINES = 500
STOPPED = "you stopped it"  #: why a queue has ended

Make = Callable[[str, Definition, str], AgentCreated]


class Ready(msgspec.Struct, frozen=True):
    """A line that can be run: the capability, its arguments, and the line as it is written then."""

    capability: Capability
    arguments: dict[str, Json]
    text: str


class Resolved(msgspec.Struct, frozen=True):
    """A line, compiled; `ready` is None where a person has to decide first, with `fault` why. `note`:
    it is no action at all."""

    line: Line
    compiled: Compiled
    ready: Ready | None
    fault: str
    note: bool


class Queue:
    """The lines of one plan that are to be run, and the task that runs them."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.running = ""
        self.go_on = False
        self.halted = ""  #: why it stopped before its end
        self.task: asyncio.Task[None] | None = None


class Plans:
    """All plans of a machine. `make` gives the event that makes an agent (name, type, model), `model`
    the id of a planner's model ("" = the configured one); `facts` are what the person would have each
    request told with."""

    def __init__(
        self,
        services: Services,
        book: Book,
        compiler: Compiler,
        make: Make,
        model: Callable[[str], str],
        facts: Mapping[str, str],
    ) -> None:
        self._facts = facts
        self._services = services
        self._book = book
        self._compiler = compiler
        self._make = make
        self._model = model
        self._drafts: dict[str, Draft] = {}
        self._queues: dict[str, Queue] = {}

    async def close(self) -> None:
        """End the queues; what is running is the host's."""
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- beginning ---------------------------------------------------------------------------

    async def create(
        self,
        request: str,
        *,
        workspace: Path,
        profile: str | None = None,
        model: str = "",
        attended: bool = True,
        id: str = "",
    ) -> str:
        """Begin a plan; returns its id. The list comes as the model writes it. Raises `TextorError`
        when the request is empty or no model can be had."""
        if not request.strip():
            raise UseError("The request is empty.", "Say what the apps shall do.")
        chosen = self._book.active if profile is None else profile
        if chosen and chosen not in self._book.profiles:
            raise UseError(
                f"There is no profile {chosen!r}.", did_you_mean(nearest(chosen, self._book.profiles))
            )
        id = id or f"{PREFIX}{time.strftime('%Y%m%d-%H%M')}-{secrets.token_hex(3)}"
        if await self._services.journal.session(id) is not None:
            return id
        main = self._make(MAIN, planner(self._book, request, chosen), self._model(model))
        settings = Settings(request, chosen, attended)
        small = main.model.startswith("embedded:")
        title = request.strip().splitlines()[0][:80]
        bodies: list[e.Body] = [
            e.SessionCreated(str(workspace), POLICY, Limits(), title, attended, id),
            main,
            e.Stored(AREA, SETTINGS, msgspec.to_builtins(settings)),
            # A small model that may only copy words would copy these.
            e.MessagePosted(
                MAIN, request if small else with_facts(request, self._services.clock(), self._facts)
            ),
        ]
        await self._services.journal.create(id, [self._services.event(body) for body in bodies])
        return id

    async def listed(self) -> list[dict[str, Any]]:
        """The plans, the last used first."""
        infos = await self._services.journal.sessions()
        return [
            {"id": info.id, "title": info.title, "updated": info.updated}
            for info in infos
            if info.id.startswith(PREFIX)
        ]

    # -- reading -----------------------------------------------------------------------------

    async def draft(self, id: str) -> Draft:
        """A plan as it stands. Raises `UseError` when there is none of this id."""
        if not id.startswith(PREFIX) or await self._services.journal.session(id) is None:
            raise UseError(f"There is no plan {id[:80]!r}.", "GET /v1/plans lists them.")
        draft = self._drafts.setdefault(id, Draft(id))
        async for event in self._services.journal.read(id, draft.seq):
            if event.seq > draft.seq:
                draft.take(event)
        return draft

    async def wait(self, id: str, after: int, seconds: float = WAIT) -> None:
        """Return when the plan has an event above `after`, or when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                async for _ in self._services.journal.follow(id, after):
                    return
        except TimeoutError:
            pass

    async def written(self, id: str) -> Draft:
        """The plan once the model has written it, or failed."""
        while (draft := await self.draft(id)).status == "generating":
            await self.wait(id, draft.seq)
        return draft

    def catalogue(self, draft: Draft) -> Catalogue:
        """What the lines of a plan are compiled against: the apps of its profile as they are now."""
        return self._book.catalogue(draft.settings.profile)

    async def content(self, id: str, handle: str) -> tuple[Value, bytes]:
        """What came of a line (a picture, say), by its handle. Raises `UseError` when nothing did."""
        value = (await self.draft(id)).value(handle)
        if value is None:
            raise UseError(f"No line of this plan gave {handle[:40]!r}.")
        if value.blob is None:
            return value, (value.text or "").encode()
        try:
            return value, await asyncio.to_thread(self._services.journal.blobs.get, value.blob)
        except KeyError:
            raise UseError(f"The content of {value.name or handle} is no longer kept.") from None

    async def resolved(self, draft: Draft) -> list[Resolved]:
        """The lines of a plan, compiled."""
        catalogue = self.catalogue(draft)
        compiled = await self._compiler([line.text for line in draft.lines], catalogue)
        pairs = zip(draft.lines, compiled, strict=True)
        return [resolve(line, each, catalogue) for line, each in pairs]

    # -- changing ------------------------------------------------------------------------------

    async def edit(self, id: str, text: str) -> None:
        """The whole list anew; lines that stay keep their runs. Raises `UseError`."""
        draft = await self.draft(id)
        await self._keep(draft, draft.merged(text))

    async def edit_line(self, id: str, line: str, text: str) -> None:
        """One line anew; an empty text takes it away."""
        draft = await self.draft(id)
        old = self._line(draft, line)
        flat = " ".join(text.split("\n")).strip()
        lines = changed(draft.lines, old.id, text=flat, choice="")
        await self._keep(draft, [each for each in lines if each.text])

    async def choose(self, id: str, line: str, capability: str) -> None:
        """Say what a line means; "" leaves it to the compiler again. Raises `UseError` where the texts
        in its brackets do not fit."""
        draft = await self.draft(id)
        self._line(draft, line)
        catalogue = self.catalogue(draft)
        if capability and capability not in catalogue:
            raise UseError(
                f"No app offers {capability!r} here.", did_you_mean(nearest(capability, catalogue.names))
            )
        await self._keep(draft, changed(draft.lines, line, choice=capability))

    async def skip(self, id: str, line: str, skip: bool = True) -> None:
        draft = await self.draft(id)
        self._line(draft, line)
        await self._keep(draft, changed(draft.lines, line, skip=skip))

    async def _keep(self, draft: Draft, lines: Sequence[Line]) -> None:
        """What a person changed stands beside the original, which is the model's message."""
        if len(lines) > MOST_LINES:
            raise UseError(f"A plan has at most {MOST_LINES} lines.")
        await self._append(draft.id, e.Stored(AREA, LINES, as_json(lines)))

    def _line(self, draft: Draft, id: str) -> Line:
        line = draft.line(id)
        if line is None:
            known = ", ".join(each.id for each in draft.lines) or "none"
            raise UseError(f"The plan has no line {id[:40]!r}.", f"There is: {known}.")
        queue = self._queues.get(draft.id)
        if queue is not None and id == queue.running:
            raise UseError("This line runs just now.", "Stop it first.")
        return line

    async def again(self, id: str, remark: str) -> None:
        """Have the model write the list once more. Raises `UseError` when it was run already."""
        draft = await self.draft(id)
        if draft.reviewed or draft.status != "ready":
            raise UseError("The model can no longer be asked about this plan.", "Begin a new one.")
        told = f"This was your list:\n{draft.original}\n\n{remark or 'Write it anew, better.'}"
        await self._append(id, e.ReplyReviewed(MAIN, "again", remark=told))
        await self.wait(id, draft.seq + 1)

    async def clear_up(self, id: str) -> None:
        """For runs that nobody attends: what is not certain goes back to the model, once."""
        draft = await self.written(id)
        if draft.status != "ready" or draft.again or draft.reviewed:
            return
        unclear = [each for each in await self.resolved(draft) if each.ready is None and not each.note]
        if not unclear:
            return
        catalogue = self.catalogue(draft)
        told = "\n".join(_unclear(each, catalogue) for each in unclear)
        wish = "Write the whole list again, each line as a template has it."
        await self.again(id, f"These lines are not clear:\n{told}\n{wish}")
        await self.written(id)

    # -- running -------------------------------------------------------------------------------

    async def run(self, id: str, lines: Sequence[str] | None = None, *, go_on: bool = False) -> list[str]:
        """Put lines into the queue, by default all that were not run; returns their ids.

        A line that fails, or that nobody can be asked about, stops the queue unless `go_on`. Raises
        `UseError` when a line that was named cannot be run.
        """
        draft = await self.draft(id)
        if draft.status == "generating":
            raise UseError("The plan is still being written.")
        resolved = {each.line.id: each for each in await self.resolved(draft)}
        if lines is None:
            chosen = [
                each.line.id
                for each in resolved.values()
                if not each.line.skip and not each.note and not _was_done(draft, each.line.id)
            ]
        else:
            chosen = [self._line(draft, line).id for line in lines]
            for line in chosen:
                if resolved[line].ready is None:
                    raise UseError(f"“{resolved[line].line.text}” cannot be run: {resolved[line].fault}")
        await self._accept(draft)
        queue = self._queues.setdefault(id, Queue())
        queue.go_on, queue.halted = go_on, ""
        queue.ids += [line for line in chosen if line not in queue.ids]
        if queue.task is None or queue.task.done():
            queue.task = asyncio.create_task(self._work(id, queue), name=f"queue of {id}")
        return chosen

    async def finished(self, id: str) -> None:
        """Wait until the queue is empty or was stopped."""
        queue = self._queues.get(id)
        if queue is not None and queue.task is not None:
            await asyncio.wait([queue.task])

    async def stop(self, id: str, *, now: bool = False) -> None:
        """Run nothing further, and end the line that runs; `now` does not wait for its app."""
        draft = await self.draft(id)
        if queue := self._queues.get(id):
            queue.ids.clear()
            queue.halted = STOPPED
        for attempt in draft.attempts.values():
            if not attempt.ended:
                await self._append(id, e.Controlled(attempt.agent, "kill" if now else "stop"))

    async def answer(self, id: str, line: str, allow: bool, reason: str = "") -> None:
        """Answer the gate about the line that waits. Raises `UseError` when it does not."""
        draft = await self.draft(id)
        asked = next((a for a in draft.runs_of(line) if a.state == "asked"), None)
        if asked is None:
            raise UseError(f"The line {line[:40]!r} does not wait for an answer.")
        session = Session(id, self._services)
        await session.answer(asked.action, allow, reason=reason, digest=asked.digest)

    async def _accept(self, draft: Draft) -> None:
        """The list as it stands is what the model's turn came to; its original stays in the journal."""
        if draft.status == "ready" and not draft.reviewed:
            text = draft.text
            bodies: list[e.Body] = [
                e.ReplyReviewed(MAIN, "edit", said("assistant", text), (), text or "(nothing)")
            ]
            if draft.faults:  # which the kernel would have the model mend, though a person has
                bodies.append(e.Controlled(MAIN, "stop"))
            await self._append(draft.id, *bodies)

    async def _work(self, id: str, queue: Queue) -> None:
        try:
            while queue.ids:
                queue.running = queue.ids.pop(0)
                halted = await self._run_line(id, queue.running)
                if halted and not queue.go_on and not queue.halted:
                    queue.halted = halted
                    queue.ids.clear()
        finally:
            queue.running = ""
            queue.ids.clear()

    async def _run_line(self, id: str, line: str) -> str:
        """Run one line to its end; why the queue should stop, or ""."""
        draft = await self.draft(id)
        resolved = next((each for each in await self.resolved(draft) if each.line.id == line), None)
        if resolved is None:
            return ""
        if resolved.ready is None:
            return f"“{resolved.line.text}” needs you: {resolved.fault}"
        name = f"{line}-{len(draft.runs_of(line)) + 1}"
        ready = resolved.ready
        definition = Definition(
            "line",
            dialects=("plan",),
            capabilities=(ready.capability.name,),
            layout="bare",
            limits=Limits(iterations=1),
        )
        posted = e.MessagePosted(name, ready.text)
        await self._append(id, self._make(name, definition, TYPED), posted)
        attempt = await self._ended(id, name)
        return "" if attempt.state == "done" else f"“{ready.text}” {attempt.state}"

    async def _ended(self, id: str, agent: str) -> Attempt:
        while True:
            draft = await self.draft(id)
            attempt = draft.attempts.get(agent)
            if attempt is not None and attempt.ended:
                return attempt
            await self.wait(id, draft.seq)

    async def _append(self, id: str, *bodies: e.Body) -> None:
        events: list[Event] = [self._services.event(body) for body in bodies]
        await self._services.journal.append(id, events, epoch=None)

    def queue(self, id: str) -> Queue:
        return self._queues.get(id) or Queue()


def resolve(line: Line, compiled: Compiled, catalogue: Catalogue) -> Resolved:
    """What a line comes to: by a person's choice, else by the compiler's match."""
    note = compiled.note and not line.choice
    name = line.choice or (compiled.capability if compiled.state == "match" else "")
    capability = catalogue.get(name) if name else None
    if capability is None:
        gone = f"No app offers {name} now." if name else compiled.fault
        return Resolved(line, compiled, None, gone, note)
    try:
        phrase, arguments = fitted(capability, compiled.parameters)
    except UseError as error:
        return Resolved(line, compiled, None, str(error), note)
    return Resolved(
        line, compiled, Ready(capability, arguments, phrase.filled(compiled.parameters)), "", False
    )


def fitted(capability: Capability, slots: Sequence[str]) -> tuple[Phrase, dict[str, Json]]:
    """The phrase that takes these texts in its brackets, and the arguments that they are. Raises
    `UseError` when none does."""
    phrases = phrases_of(capability)
    problem = f"The line has {len(slots)} texts in brackets."
    for phrase in phrases:
        if len(phrase.properties) == len(slots):
            try:
                return phrase, arguments_of(phrase, slots)
            except ArgumentError as error:
                problem = str(error)
    raise UseError(problem, f"Write it as {' or '.join(f'“{phrase.shown}”' for phrase in phrases)}.")


def _was_done(draft: Draft, line: str) -> bool:
    runs = draft.runs_of(line)
    return bool(runs) and runs[-1].state in ("done", "unknown")


def _unclear(resolved: Resolved, catalogue: Catalogue) -> str:
    names = [candidate.capability for candidate in resolved.compiled.candidates[:3]]
    shown = [phrases_of(c)[0].shown for name in names if (c := catalogue.get(name)) and phrases_of(c)]
    return f"* {resolved.line.text}\n  ({resolved.fault} The nearest templates: {'; '.join(shown)})"
