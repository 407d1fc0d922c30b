"""The layout `regenerated`: the whole context anew in each iteration, as the SIA document has it.

    <context><system …/><containers>…</containers><previous>…</previous><files>…</files></context>

Only the previous iteration stands in it. What an agent is to remember it writes into files and
monitors them. The status text of an iteration is this whole context, so prompts are rebuilt from
events as for every layout; the price is that a server's cache of the prompt ends where it begins.
Images and other media of the previous iteration and of the turn's messages stand before it, each
under the name that it has in the XML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from textor.actions import Capability
from textor.dialects.port import Dialect
from textor.events import Definition, MessagePosted
from textor.kernel.state import AgentState, State
from textor.layouts import Stable, budget_words
from textor.layouts.status import Moment, StatusPart, content, element, lines, possible
from textor.messages import Media, Message, Part, Text, ToolCall, ToolResult, message_size
from textor.values import SHOWN, Value, head

LEAD = "The context as it is now:"
#: How what the dialect `xml` writes of an iteration begins.
_RESULTS = "<previous>\n<actions>"
#: The first part of what `posted` writes, alone in it: the turn that the message belongs to. It is
#: not shown.
_TURN = re.compile(r"<!-- turn (\d+) -->")
#: A message in a journal that was written before the turn stood with it: who is in the middle of such a
#: turn is not to lose sight of it.
_UNMARKED = re.compile(r"(?s)<message(?: from=\"[^\"]*\")?>\n.*")


class Regenerated:
    """`parts` as for `Stable`; "system" stands first, "containers" before the previous iteration,
    all others after it."""

    def __init__(self, parts: Mapping[str, StatusPart], window: Callable[[str], int]) -> None:
        self._parts = parts
        self._window = window

    def prefix(
        self, definition: Definition, dialect: Dialect, capabilities: Sequence[Capability]
    ) -> tuple[Message, ...]:
        return Stable().prefix(definition, dialect, capabilities)

    def posted(self, posted: Iterable[MessagePosted], agent: AgentState, values: Iterable[Value]) -> Message:
        """As `Stable`, in elements, so that they can be told from what the machine says."""
        told = [_message(message, agent.caller) for message in posted]
        kept = [*values]
        told += [element("value", {"name": v.name}, content(head(v))) for v in kept if v.kind not in SHOWN]
        told += [_medium(v.name, v) for v in kept if v.kind in SHOWN]
        turn = agent.turn.number if agent.turn else agent.turns + 1
        media = [Media(v, v.name) for v in kept if v.kind in SHOWN]
        return Message("user", (Text(f"<!-- turn {turn} -->"), Text("\n".join(told)), *media))

    def messages(self, state: State, agent: AgentState) -> tuple[Message, ...]:
        known = {v.handle: name for name, v in agent.variables.items()}
        media = _once(_of(Media, (*_said_now(agent), *_after(agent))))
        named = [Media(part.value, known.get(part.value.handle, part.caption)) for part in media]
        return (*agent.prefix, Message("user", (Text(LEAD), *named)))

    def size(self, agent: AgentState) -> int:
        return sum(map(message_size, (*agent.prefix, *self.messages(State(), agent)[-1:])))

    def status(self, state: State, agent: AgentState, now: float) -> str:
        moment = Moment(state, agent, now, full=True)
        first = [part(moment) for name, part in self._parts.items() if name == "containers"]
        last = [part(moment) for name, part in self._parts.items() if name not in ("system", "containers")]
        own = [*first, _messages(agent), _previous(agent), *_kept(state, agent, now), *last]
        size = sum(len(text) for text in own) + self.size(agent)
        window = self._window(agent.model)
        used = min(round(100 * size * agent.ratio / window), 100) if window else 0
        moment = Moment(state, agent, now, full=True, context=used)
        system = self._parts["system"](moment) if "system" in self._parts else ""
        return lines("context", [system, *own])


def _message(message: MessagePosted, caller: str) -> str:
    origin = {} if message.sender == caller else {"from": message.sender or "the person"}
    return element("message", origin, f"\n{content(message.text)}\n")


def _kept(state: State, agent: AgentState, now: float) -> list[str]:
    """Limits, notes and variables, where there are any."""
    words = budget_words(state, agent, now)
    found = [element("budget", {}, content(words))] if words else []
    found += [element("note", {"key": key}, content(text)) for key, text in agent.notes.items()]
    return [*found, *(element("variable", {"name": n}, content(head(v))) for n, v in agent.variables.items())]


def _messages(agent: AgentState) -> str:
    """What was said to the agent in this turn."""
    told: list[str] = []
    for message in _said_now(agent):
        texts = [part.text for part in message.parts if isinstance(part, Text)][1:]
        told += [possible(texts[0]), *(element("found", {}, content(text)) for text in texts[1:])]
    return lines("messages", told) if told else ""


def _previous(agent: AgentState) -> str:
    """The last reply: its reasoning, its actions with their results, what the machine told of it."""
    last = _last(agent)
    if last < 0:
        return "<previous/>"
    reply = agent.dialogue[last]
    block = reply.text.rfind("<actions")
    reasoning = (reply.text if block < 0 else reply.text[:block]).strip()
    shown = [f"<reasoning>\n{content(reasoning)}\n</reasoning>" if reasoning else "<reasoning/>"]
    shown += [element("call", {"name": p.name}, content(p.arguments)) for p in _of(ToolCall, [reply])]
    told = _after(agent)
    results = [possible(_inner(m.text)) for m in told if m.text.startswith(_RESULTS)]
    results += [element("result", {"name": p.name}, content(p.text)) for p in _of(ToolResult, told)]
    known = {v.handle: name for name, v in agent.variables.items()}
    media = [_medium(known.get(p.value.handle, p.caption), p.value) for p in _once(_of(Media, told))]
    plain = [m for m in told if m.text and not m.text.startswith(_RESULTS) and not [*_of(Media, [m])]]
    notices = [element("notice", {}, content(m.text)) for m in plain]
    return lines("previous", [*shown, *(results or ["<actions/>"]), *media, *notices])


def _last(agent: AgentState) -> int:
    """The place of the last reply in the dialogue; -1 where there is none."""
    places = range(len(agent.dialogue) - 1, -1, -1)
    return next((at for at in places if agent.dialogue[at].role == "assistant"), -1)


def _after(agent: AgentState) -> list[Message]:
    """What the machine told after the last reply."""
    last = _last(agent)
    after = agent.dialogue[last + 1 :] if last >= 0 else ()
    return [m for m in after if not _turn(m) and not _unmarked(m)]


def _said_now(agent: AgentState) -> list[Message]:
    """The messages of this turn."""
    found: list[Message] = []
    replies = agent.turn.iterations if agent.turn else 0  # of this turn, from here on backwards
    for message in reversed(agent.dialogue):
        if turn := _turn(message):
            if turn != agent.turns:
                break
            found.append(message)
        elif message.role == "assistant":
            replies -= 1
        elif replies >= 0 and _unmarked(message):
            found.append(Message("user", (Text(""), Text(message.text))))
    return found[::-1]


def _turn(message: Message) -> int:
    """The turn that a message was posted for; 0 for what was not posted."""
    first = message.parts[0] if len(message.parts) > 1 else None
    found = _TURN.fullmatch(first.text) if isinstance(first, Text) else None
    return int(found[1]) if found else 0


def _unmarked(message: Message) -> bool:
    return message.role == "user" and not _turn(message) and bool(_UNMARKED.fullmatch(message.text))


P = TypeVar("P", bound=Part)


def _of(kind: type[P], messages: Iterable[Message]) -> Iterator[P]:
    """The parts of one kind."""
    return (part for message in messages for part in message.parts if isinstance(part, kind))


def _once(media: Iterable[Media]) -> Iterator[Media]:
    """Each content once."""
    return iter({part.value.handle: part for part in media}.values())


def _medium(name: str, value: Value) -> str:
    """How a part that stands beside the XML is named in it."""
    about = {"name": name, "kind": value.kind, "type": value.media_type, "bytes": value.size}
    return element("media", about)


def _inner(text: str) -> str:
    """The actions with their results, which were escaped when they were written."""
    return text.removeprefix("<previous>\n").removesuffix("\n</previous>")
