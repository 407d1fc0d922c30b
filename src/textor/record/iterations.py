"""Iterations read back from the journal: what a model was shown, what it said, what came of it.

Nothing of this is kept twice. A prompt is built from the events before it by the same function
that built it for the model, so it equals what was sent; `tests/sia` proves it byte for byte.
Iterations as the material from which a system improves are from the SIA document.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from textor import events as e
from textor.actions import Action, Outcome
from textor.journal.port import Journal
from textor.kernel.context import Layout, build
from textor.kernel.state import State, fold
from textor.messages import (
    NO_USAGE,
    Context,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from textor.values import Blobs, Value, content_of


class Deed(msgspec.Struct, frozen=True):
    """An action of an iteration. `verdict` is the gate's, `answer` the person's where one was asked."""

    action: Action
    verdict: str = ""
    reason: str = ""
    answer: str = ""
    outcome: Outcome | None = None


class Iteration(msgspec.Struct, frozen=True):
    """One iteration of an agent. `seq` is the number of its `GenerationStarted`, by which it is
    addressed in the session; `number` counts those of its agent.

    `raw` is the reply as the model gave it, `edited` as a person left it, `verdict` and `remark`
    what the person said of it. Times in seconds since 1970; 0 where it did not come to that.
    """

    seq: int
    agent: str
    number: int
    turn: int
    model: str
    version: str
    began: float
    context: Context
    status: str = ""
    replied: float = 0.0
    over: float = 0.0
    raw: Message | None = None
    edited: Message | None = None
    verdict: str = ""
    remark: str = ""
    reply: str = ""
    deeds: tuple[Deed, ...] = ()
    usage: Usage = NO_USAGE
    finish: str = ""
    faults: tuple[str, ...] = ()
    failure: str = ""
    shown: tuple[Message, ...] = ()  #: how the outcomes were shown to the model
    last: int = 0  #: number of the last event that belongs to it


async def iterations(
    journal: Journal, session: str, layout: Callable[[str], Layout]
) -> AsyncIterator[Iteration]:
    """The iterations of a session, in the order in which they were over; what is open comes last."""
    reading = _Reading(layout)
    async for event in journal.read(session):
        for done in reading.take(event):
            yield done
    for left in reading.open.values():
        yield left


async def iteration_at(
    journal: Journal, session: str, seq: int, layout: Callable[[str], Layout]
) -> Iteration | None:
    """The iteration that began with event `seq`."""
    async for found in iterations(journal, session, layout):
        if found.seq == seq:
            return found
    return None


class _Reading:
    """Folds the events, and keeps of each agent the iteration that is open."""

    def __init__(self, layout: Callable[[str], Layout]) -> None:
        self._layout = layout
        self._state = State()
        self._agents: dict[str, str] = {}  # action -> agent
        self.open: dict[str, Iteration] = {}

    def take(self, event: e.Event) -> Iterator[Iteration]:
        """Take the next event; gives the iteration that it ends."""
        self._state = fold(self._state, event)
        body = event.body
        agent = body.agent if hasattr(body, "agent") else self._agents.get(getattr(body, "action", ""), "")
        if isinstance(body, e.GenerationStarted):
            if (left := self.open.pop(agent, None)) is not None:
                yield left
            self.open[agent] = self._begun(body, event)
            return
        known = self.open.get(agent)
        if known is None:
            return
        changed = self._changed(known, body, event.time)
        if changed is None:
            return
        changed = replace(changed, last=event.seq)
        ends = isinstance(body, e.Observed | e.TurnEnded) or (
            isinstance(body, e.ReplyReviewed) and body.verdict == "again"
        )
        if ends:
            self.open.pop(agent)
            yield replace(changed, over=event.time)
        else:
            self.open[agent] = changed

    def _begun(self, body: e.GenerationStarted, event: e.Event) -> Iteration:
        agent = self._state.agents[body.agent]
        layout = self._layout(agent.definition.layout)
        context = build(layout, self._state, agent, body.status, body.reserved.output)
        turn = agent.turn.number if agent.turn else 0
        return Iteration(
            event.seq,
            agent.id,
            body.iteration,
            turn,
            body.model,
            body.version,
            event.time,
            context,
            body.status,
        )

    def _changed(self, known: Iteration, body: e.Body, time: float) -> Iteration | None:
        match body:
            case e.GenerationFinished():
                self._agents |= {action.id: body.agent for action in body.actions}
                return replace(
                    known,
                    raw=body.message,
                    replied=time,
                    reply=body.reply,
                    usage=body.usage,
                    finish=body.finish,
                    faults=body.faults,
                    deeds=tuple(Deed(action) for action in body.actions),
                )
            case e.GenerationFailed(message=message, usage=usage):
                return replace(known, failure=message, usage=usage)
            case e.ReplyReviewed(verdict=verdict, remark=remark):
                told = replace(known, verdict=verdict, remark=remark)
                if verdict != "edit":
                    return told
                self._agents |= {action.id: body.agent for action in body.actions}
                deeds = tuple(Deed(action) for action in body.actions)
                return replace(told, edited=body.message, deeds=deeds, reply=body.reply)
            case e.PlanCompiled(actions=actions):
                return replace(known, deeds=tuple(Deed(action) for action in actions))
            case e.ActionJudged(action=action, verdict=verdict, reason=reason):
                return _with(known, action, lambda d: replace(d, verdict=verdict, reason=reason))
            case e.ActionAnswered(action=action, allow=allow):
                return _with(known, action, lambda d: replace(d, answer="yes" if allow else "no"))
            case e.ActionFinished(action=action, outcome=outcome):
                return _with(known, action, lambda d: replace(d, outcome=d.outcome or outcome))
            case e.Observed(messages=messages):
                return replace(known, shown=messages)
            case e.TurnEnded():
                return known
        return None


def _with(known: Iteration, action: str, change: Callable[[Deed], Deed]) -> Iteration:
    return replace(known, deeds=tuple(change(d) if d.action.id == action else d for d in known.deeds))


# -- as text and as files ------------------------------------------------------------------


def message_text(message: Message) -> str:
    """A message for a reader, with its calls and results."""
    return "\n".join(_part_text(part) for part in message.parts)


def _part_text(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Reasoning(text=text):
            return f"[reasoning]\n{text}\n[/reasoning]"
        case ToolCall(name=name, arguments=arguments):
            return f"[call {name}] {arguments}"
        case ToolResult(name=name, text=text):
            return f"[result of {name}]\n{text}"
        case Media(value=value, caption=caption):
            return f"[{value.kind} {caption}: {file_name(value)}]"


def file_name(value: Value) -> str:
    """The name under which an exported value lies: "0a1b2c3d4e5f.png"."""
    return value.handle + (mimetypes.guess_extension(value.media_type) or ".bin")


def context_text(context: Context) -> str:
    """A context for a reader: every message under its role."""
    return "\n\n".join(f"--- {message.role} ---\n{message_text(message)}" for message in context.messages)


def facts(iteration: Iteration) -> dict[str, Any]:
    """An iteration as JSON data, without the texts that have files of their own."""
    told = msgspec.to_builtins(iteration)
    for name in ("context", "raw", "edited", "deeds", "shown", "status"):
        told.pop(name)
    return dict(told)


def files_of(iteration: Iteration) -> dict[str, str]:
    """The files of an iteration by name; JSON holds exactly what was, TXT is for reading."""
    files = {
        "iteration.json": _json(facts(iteration)),
        "context.json": _json(msgspec.to_builtins(iteration.context)),
        "context.txt": context_text(iteration.context),
        "actions.json": _json(msgspec.to_builtins(iteration.deeds)),
    }
    for name, message in (("reply", iteration.raw), ("edited", iteration.edited)):
        if message is not None:
            files[f"{name}.json"] = _json(msgspec.to_builtins(message))
            files[f"{name}.txt"] = message_text(message)
    return files


def folder_name(iteration: Iteration) -> str:
    """A name that sorts in the order of the session: "000012-main-3"."""
    agent = re.sub(r"[^A-Za-z0-9_-]", "_", iteration.agent)
    return f"{iteration.seq:06d}-{agent}-{iteration.number}"


def write_files(iteration: Iteration, folder: Path, blobs: Blobs) -> None:
    """Write an iteration below `folder`; the media and long texts in it into `folder`/values, each
    content once. A value whose content is no longer kept has no file; what it was stands in actions.json
    and context.json."""
    place = folder / folder_name(iteration)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files_of(iteration).items():
        (place / name).write_text(text, "utf-8")
    shown = [p.value for m in iteration.context.messages for p in m.parts if isinstance(p, Media)]
    came = [v for deed in iteration.deeds if deed.outcome for v in deed.outcome.values]
    for value in (v for v in (*shown, *came) if v.blob):
        file = folder / "values" / file_name(value)
        if not file.exists():
            with suppress(KeyError):
                content = content_of(value, blobs)
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)


def _json(data: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(data), indent=1).decode()
