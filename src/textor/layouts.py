"""The layouts of contexts: how an agent type builds its prompts. `stable` is the default."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from textor.actions import Capability
from textor.dialects.port import Dialect
from textor.errors import UseError
from textor.events import Definition
from textor.kernel.budget import effective
from textor.kernel.context import Layout
from textor.kernel.state import AgentState, State
from textor.messages import Message, said
from textor.values import head


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
        if words := budget_words(state, agent, now):
            lines.append(f"budget: {words}")
        lines += [f"note {key}: {text}" for key, text in agent.notes.items()]
        lines += [f"variable ${name}: {head(value)}" for name, value in agent.variables.items()]
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


def budget_words(state: State, agent: AgentState, now: float) -> str:
    """The budget as the status part shows it; "" when nothing limits the turn."""
    limits, turn = effective(state, agent), agent.turn
    if turn is None:
        return ""
    words: list[str] = []
    if limits.iterations is not None:
        left = limits.iterations - turn.iterations
        words.append(f"{left} of {limits.iterations} iterations left")
        if left <= 2:
            words.append("finish now: give your best answer with what you have")
    for bound, used in ((state.limits, state.usage), (agent.limits, agent.usage)):
        if bound.tokens is not None:
            words.append(f"{max(bound.tokens - used.total, 0)} tokens left")
        if bound.money is not None and used.cost is not None:
            words.append(f"${max(bound.money - used.cost, 0):.2f} left")
    if limits.seconds is not None:
        words.append(f"{max(limits.seconds - (now - turn.began), 0):.0f} s left")
    return "; ".join(words)
