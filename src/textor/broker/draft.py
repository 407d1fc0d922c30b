"""A plan as its session's journal tells it: the lines as they stand, and what came of each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from textor import events as e
from textor.broker.prompt import without_facts
from textor.events import Event
from textor.values import Value

AREA = "plan"  #: of `events.Stored` in the session of a plan
LINES, SETTINGS = "lines", "settings"
MAIN = "main"  #: the agent that writes the plan; each attempt at a line is an agent of its own

INSTANCE = "instance"  #: in the data of an outcome: the window that was opened

Status = Literal["generating", "ready", "failed"]


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. `choice` is the capability that a person chose for it; a `skip` line is not run."""

    id: str
    text: str
    skip: bool = False
    choice: str = ""


class Settings(msgspec.Struct, frozen=True):
    """What a plan was begun with. `attended` False: weak lines go back to the model once."""

    request: str
    profile: str = ""
    attended: bool = True


class Attempt:
    """One run of a line. `state` is queued, asked, running, or that of its outcome."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.line = agent.rpartition("-")[0]
        self.state = "queued"
        self.action = self.digest = self.reason = self.text = ""
        self.values: tuple[Value, ...] = ()
        self.window = ""  #: the id of the instance that it started
        self.log: list[dict[str, Any]] = []
        self.ended = False

    def note(self, event: Event, text: str) -> None:
        self.log.append({"time": event.time, "text": text})


class Draft:
    """The fold. `original` is what the model wrote last, `attempts` are by agent, in order."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.seq = 0
        self.settings = Settings("")
        self.model = ""
        self.status: Status = "generating"
        self.detail = ""
        self.original = ""
        self.lines: list[Line] = []
        self.attempts: dict[str, Attempt] = {}
        self.reviewed = False  #: the model's turn is over
        self.faults: tuple[str, ...] = ()  #: what the parser could not read
        self.again = 0  #: how often it was asked again
        self._count = 0

    def take(self, event: Event) -> None:
        self.seq = event.seq
        body = event.body
        if isinstance(body, e.Stored) and body.area == AREA:
            self._stored(body)
        elif isinstance(body, e.ActionAnswered):
            self._answered(event, body)
        elif (agent := getattr(body, "agent", "")) == MAIN:
            self._main(body)
        elif agent:
            self._attempt(event, body, agent)

    def _stored(self, body: e.Stored) -> None:
        if body.key == SETTINGS:
            self.settings = msgspec.convert(body.value, Settings)
        elif body.key == LINES:
            self.lines = msgspec.convert(body.value, list[Line])
            self._count = max([self._count, *(int(line.id[1:]) for line in self.lines)])

    def _main(self, body: e.Body) -> None:
        match body:
            case e.AgentCreated(model=model):
                self.model = model
            case e.MessagePosted(text=text, sender=""):
                self.settings = replace(self.settings, request=self.settings.request or without_facts(text))
            case e.GenerationStarted():
                self.status, self.detail = "generating", ""
            case e.GenerationFinished(finish=finish) if finish != "cut":
                self.original = body.message.text.strip()
                self.lines = self.merged(self.original)
                self._count += len(self.lines)
                self.status, self.reviewed, self.faults = "ready", False, body.faults
            case e.ReplyReviewed(verdict="again"):
                self.status, self.again = "generating", self.again + 1
            case e.ReplyReviewed():
                self.reviewed = True
            case e.TurnEnded(reason=reason, detail=detail) if reason != "replied" and not self.reviewed:
                self.status, self.detail, self.reviewed = "failed", detail or reason, True

    def _attempt(self, event: Event, body: e.Body, agent: str) -> None:
        if isinstance(body, e.AgentCreated):
            self.attempts[agent] = Attempt(agent)
        attempt = self.attempts.get(agent)
        if attempt is None:
            return
        match body:
            case e.MessagePosted(text=text):
                attempt.note(event, f"to be run: {text}")
            case e.ActionJudged(verdict="ask"):
                attempt.state, attempt.action = "asked", body.action
                attempt.reason, attempt.digest = body.reason, body.digest
                attempt.note(event, f"waits for you: {body.reason}")
            case e.ActionStarted():
                attempt.state, attempt.action = "running", body.action
                attempt.note(event, "started")
            case e.ActionProgress(text=text):
                attempt.note(event, text)
            case e.ActionFinished(outcome=outcome):
                attempt.state, attempt.text, attempt.values = outcome.state, outcome.text, outcome.values
                told = outcome.data if isinstance(outcome.data, dict) else {}
                attempt.window = str(told.get(INSTANCE) or "")
                attempt.note(event, f"{outcome.state}: {outcome.text}" if outcome.text else outcome.state)
            case e.TurnEnded():
                self._over(event, attempt, body)

    def _over(self, event: Event, attempt: Attempt, body: e.TurnEnded) -> None:
        attempt.ended = True
        if attempt.state in ("queued", "asked", "running"):  # its turn ended without an outcome
            attempt.state = "cancelled" if body.reason == "stopped" else "failed"
            attempt.text = body.detail or body.text
            attempt.note(event, f"{attempt.state}: {attempt.text}")

    def _answered(self, event: Event, body: e.ActionAnswered) -> None:
        for attempt in self.attempts.values():
            if attempt.action == body.action and attempt.state == "asked":
                attempt.state = "running" if body.allow else "denied"
                attempt.note(event, "allowed" if body.allow else f"denied {body.reason}".strip())

    # -- editing ---------------------------------------------------------------------------

    def merged(self, text: str) -> list[Line]:
        """The lines of a new text; those that are as before keep their ids, and with them what came
        of them."""
        texts = [line.strip() for line in text.splitlines() if line.strip()]
        old = [line.text for line in self.lines]
        number = self._count
        found: list[Line] = []
        matcher = difflib.SequenceMatcher(None, old, texts, autojunk=False)
        for what, i, k, j, l in matcher.get_opcodes():  # noqa: E741
            if what == "equal":
                found += self.lines[i:k]
                continue
            for at, new in enumerate(texts[j:l]):
                if what == "replace" and i + at < k and not self.runs_of(self.lines[i + at].id):
                    found.append(Line(self.lines[i + at].id, new))  # the same line, changed
                    continue
                number += 1
                found.append(Line(f"l{number}", new))
        return found

    def value(self, handle: str) -> Value | None:
        """What came of a line, by its handle."""
        runs = self.attempts.values()
        return next((value for run in runs for value in run.values if value.handle == handle), None)

    def runs_of(self, line: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts.values() if attempt.line == line]

    def line(self, id: str) -> Line | None:
        return next((line for line in self.lines if line.id == id), None)

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


def changed(lines: Sequence[Line], id: str, **changes: Any) -> list[Line]:
    """The lines with one of them changed."""
    return [replace(line, **changes) if line.id == id else line for line in lines]


def as_json(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(line) for line in lines]
