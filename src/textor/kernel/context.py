"""What a model is shown in one iteration: stable prefix, dialogue, volatile status.

The prefix is made once and stored with the agent; dialogue messages are stored verbatim; the
status is the last block of the last message and is left out the next time (law 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from msgspec.structs import replace

from textor.actions import Capability
from textor.dialects.port import Dialect
from textor.errors import UseError
from textor.events import Definition, MessagePosted
from textor.kernel import budget
from textor.kernel.state import AgentState, State
from textor.messages import Context, Media, Message, Part, Text, said
from textor.values import Value


class Layout(Protocol):
    """A way to build prompts; an agent type names the one it uses."""

    def prefix(
        self, definition: Definition, dialect: Dialect, capabilities: Sequence[Capability]
    ) -> tuple[Message, ...]: ...

    def status(self, state: State, agent: AgentState, now: float) -> str: ...

    def messages(self, state: State, agent: AgentState) -> tuple[Message, ...]: ...


class Stable:
    """The default: prompt, dialect and examples first; time, budget, notes, variables last."""

    def prefix(
        self, definition: Definition, dialect: Dialect, capabilities: Sequence[Capability]
    ) -> tuple[Message, ...]:
        taught = dialect.teach(capabilities)
        text = "\n\n".join(part for part in (definition.prompt.strip(), taught.strip()) if part)
        return (*((said("system", text),) if text else ()), *definition.examples)

    def status(self, state: State, agent: AgentState, now: float) -> str:
        lines = [f"now: {datetime.fromtimestamp(now).astimezone().isoformat(timespec='minutes')}"]
        if words := budget.wording(state, agent, now):
            lines.append(f"budget: {words}")
        lines += [f"note {key}: {text}" for key, text in agent.notes.items()]
        lines += [f"variable ${name}: {_head(value)}" for name, value in agent.variables.items()]
        return "<status>\n" + "\n".join(lines) + "\n</status>"

    def messages(self, state: State, agent: AgentState) -> tuple[Message, ...]:
        return agent.prefix + agent.dialogue


class Bare(Stable):
    """As `Stable` without a status, for small models that every word of it would cost dearly."""

    def status(self, state: State, agent: AgentState, now: float) -> str:
        return ""


LAYOUTS: dict[str, Layout] = {"stable": Stable(), "bare": Bare()}


def layout_of(name: str) -> Layout:
    """The layout of this name. Raises `UseError` with the known ones."""
    if name not in LAYOUTS:
        raise UseError(f"There is no context layout {name!r}.", f"Known ones: {', '.join(LAYOUTS)}.")
    return LAYOUTS[name]


def _head(value: Value) -> str:
    if value.text is None:
        return f"{value.kind}, {value.media_type}, {value.size} bytes"
    head = value.text[:50].replace("\n", " ")
    return f"{value.kind}, {value.size} bytes: {head}{'…' if len(value.text) > 50 else ''}"


def build(
    state: State, agent: AgentState, status: str, *, max_tokens: int | None, temperature: float | None = None
) -> Context:
    """The context of the iteration whose status text this is."""
    messages = layout_of(agent.definition.layout).messages(state, agent)
    if status and messages:
        last = messages[-1]
        messages = (*messages[:-1], replace(last, parts=(*last.parts, Text("\n\n" + status))))
    return Context(messages, agent.tools, max_tokens=max_tokens, temperature=temperature)


def render_posted(posted: Iterable[MessagePosted], caller: str) -> Message:
    """Messages as they enter the dialogue: the caller's as they are, others' with their sender."""
    parts: list[Part] = []
    for message in posted:
        origin = "" if message.sender == caller else f"[from {message.sender or 'the person'}] "
        parts.append(Text(("\n\n" if parts else "") + origin + message.text))
        parts += [Media(v, v.name) for v in message.values if v.kind in ("image", "audio", "video")]
        others = [v for v in message.values if v.kind not in ("image", "audio", "video")]
        parts += [Text(f"\n[value ${v.name}: {_head(v)}]") for v in others]
    return Message("user", tuple(parts))
