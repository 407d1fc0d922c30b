"""The layout `regenerated`: the whole context anew in each iteration, as the SIA document has it.

    <context><system …/><containers>…</containers><previous>…</previous><files>…</files></context>

Only the previous iteration stands in it. What an agent is to remember it writes into files and
monitors them. The status text of an iteration is this whole context, so prompts are rebuilt from
events as for every layout; the price is that a server's cache of the prompt ends where it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from textor.actions import Capability
from textor.dialects.port import Dialect
from textor.events import Definition, MessagePosted
from textor.kernel.state import AgentState, State
from textor.layouts import Stable, budget_words
from textor.messages import Media, Message, Text, said
from textor.status import Moment, StatusPart, content, element, lines, possible
from textor.values import Value, head

LEAD = "The context as it is now:"
#: How what the dialect `xml` writes of an iteration begins, and what `posted` writes.
_RESULTS, _SAID = "<previous>\n<actions>", "<message"
_SEEN = ("image", "audio", "video")
#: Tokens a character, for the share of the window.
_TOKENS = 0.25


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

    def posted(self, posted: Iterable[MessagePosted], caller: str, values: Iterable[Value]) -> Message:
        """As `Stable`, in elements, so that they can be told from what the machine says."""
        told = [_message(message, caller) for message in posted]
        kept = [*values]
        told += [element("value", {"name": v.name}, content(head(v))) for v in kept if v.kind not in _SEEN]
        media = [Media(v, v.name) for v in kept if v.kind in _SEEN]
        return Message("user", (Text("\n".join(told)), *media))

    def messages(self, state: State, agent: AgentState) -> tuple[Message, ...]:
        return (*agent.prefix, said("user", LEAD))

    def status(self, state: State, agent: AgentState, now: float) -> str:
        moment = Moment(state, agent, now, full=True)
        first = [part(moment) for name, part in self._parts.items() if name == "containers"]
        last = [part(moment) for name, part in self._parts.items() if name not in ("system", "containers")]
        own = [*first, _messages(agent), _previous(agent), *_kept(state, agent, now), *last]
        size = sum(len(text) for text in own) + sum(len(m.text) for m in agent.prefix)
        window = self._window(agent.model)
        used = min(round(100 * size * _TOKENS / window), 100) if window else 0
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
    told = [m.text for m in agent.dialogue[_begin(agent) :] if m.role == "user" and m.text.startswith(_SAID)]
    return lines("messages", map(possible, told)) if told else ""


def _previous(agent: AgentState) -> str:
    """The last reply: its reasoning, its actions with their results, what the machine told of it."""
    last = max((at for at, m in enumerate(agent.dialogue) if m.role == "assistant"), default=-1)
    if last < 0:
        return "<previous/>"
    text = agent.dialogue[last].text
    block = text.rfind("<actions")
    reasoning = (text if block < 0 else text[:block]).strip()
    shown = f"<reasoning>\n{content(reasoning)}\n</reasoning>" if reasoning else "<reasoning/>"
    told = [m.text for m in agent.dialogue[last + 1 :] if not m.text.startswith(_SAID)]
    results = [possible(_inner(text)) for text in told if text.startswith(_RESULTS)]
    notices = [element("notice", {}, content(text)) for text in told if not text.startswith(_RESULTS)]
    return lines("previous", [shown, *(results or ["<actions/>"]), *notices])


def _begin(agent: AgentState) -> int:
    """Where the messages of this turn begin in the dialogue."""
    replies = [at for at, message in enumerate(agent.dialogue) if message.role == "assistant"]
    made = agent.turn.iterations if agent.turn else 0
    before = replies[: len(replies) - made] if made else replies
    return before[-1] + 1 if before else 0


def _inner(text: str) -> str:
    """The actions with their results, which were escaped when they were written."""
    return text.removeprefix("<previous>\n").removesuffix("\n</previous>")
