"""The layouts of contexts: how an agent type builds its prompts. `stable` is the default."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from textor.actions import Capability
from textor.dialects.port import Dialect
from textor.errors import UseError
from textor.events import Definition, MessagePosted
from textor.kernel.budget import bounds, effective
from textor.kernel.context import Layout
from textor.kernel.state import AgentState, State
from textor.layouts.status import Moment, StatusPart
from textor.messages import Media, Message, Part, Text, said
from textor.values import SHOWN, Value, head


class Stable:
    """The default: prompt, dialect and examples first; time, budget, notes, variables last, then
    what the `parts` have to say (containers, monitored files)."""

    def __init__(self, parts: Mapping[str, StatusPart] | None = None) -> None:
        self._parts = parts or {}

    def prefix(
        self, definition: Definition, dialect: Dialect, capabilities: Sequence[Capability]
    ) -> tuple[Message, ...]:
        taught = dialect.teach(capabilities)
        text = "\n\n".join(part for part in (definition.prompt.strip(), taught.strip()) if part)
        return (*((said("system", text),) if text else ()), *definition.examples)

    def posted(self, posted: Iterable[MessagePosted], agent: AgentState, values: Iterable[Value]) -> Message:
        """Messages as they enter the dialogue: the caller's as they are, others' with their sender;
        then the values that came along, by the names that they have here."""
        parts: list[Part] = []
        for message in posted:
            origin = "" if message.sender == agent.caller else f"[from {message.sender or 'the person'}] "
            parts.append(Text(("\n\n" if parts else "") + origin + message.text))
        for value in values:
            if value.kind in SHOWN:
                parts.append(Media(value, value.name))
            else:
                parts.append(Text(f"\n[value ${value.name}: {head(value)}]"))
        return Message("user", tuple(parts))

    def status(self, state: State, agent: AgentState, now: float) -> str:
        lines = [f"now: {datetime.fromtimestamp(now).astimezone().isoformat(timespec='minutes')}"]
        if words := budget_words(state, agent, now):
            lines.append(f"budget: {words}")
        lines += [f"note {key}: {text}" for key, text in agent.notes.items()]
        lines += _variables(agent)
        moment = Moment(state, agent, now)
        lines += [text for part in self._parts.values() if (text := part(moment))]
        return "<status>\n" + "\n".join(lines) + "\n</status>"

    def messages(self, state: State, agent: AgentState) -> tuple[Message, ...]:
        return agent.prefix + agent.dialogue

    def size(self, agent: AgentState) -> int:
        return agent.size


class Bare(Stable):
    """As `Stable` without a status, for small models that every word of it would cost dearly."""

    def status(self, state: State, agent: AgentState, now: float) -> str:
        return ""


class Layouts:
    """The layouts by name. `parts` are what stands in their status, by name; `window` gives the
    tokens that a model's window holds, by its id."""

    def __init__(
        self, parts: Mapping[str, StatusPart] | None = None, window: Callable[[str], int] = lambda _: 0
    ) -> None:
        from textor.layouts.regenerated import Regenerated

        parts = parts or {}
        self._known: dict[str, Layout] = {
            "stable": Stable(parts),
            "bare": Bare(),
            REGENERATED: Regenerated(parts, window),
        }

    def __call__(self, name: str) -> Layout:
        """The layout of this name. Raises `UseError` with the known ones."""
        if name not in self._known:
            raise UseError(f"There is no context layout {name!r}.", f"Known ones: {', '.join(self._known)}.")
        return self._known[name]


REGENERATED = "regenerated"
#: So many variables are shown with their heads, and so many older ones by name.
VARIABLES, NAMED = 20, 30
#: With less than this share of its time left, a turn is told to finish.
LATE = 0.15


def room_of(layout: str, window: int, ratio: float) -> int:
    """The tokens that prompts may have before the oldest part is summarised; 0 where there is no
    dialogue to summarise."""
    return 0 if layout == REGENERATED else int(window * ratio)


def _variables(agent: AgentState) -> list[str]:
    """The newest variables with their heads, the names of those before, and how many more there
    are: each is read again in every iteration."""
    names = list(agent.variables)
    older, newest = names[:-VARIABLES], names[-VARIABLES:]
    lines = [f"variable ${name}: {head(agent.variables[name])}" for name in newest]
    if older:
        named = ", ".join(f"${name}" for name in older[-NAMED:])
        more = f" and {len(older) - NAMED} more" if len(older) > NAMED else ""
        lines.insert(0, f"older variables: {named}{more}")
    return lines


def budget_words(state: State, agent: AgentState, now: float) -> str:
    """The budget as the status part shows it; "" when nothing limits the turn."""
    limits, turn = effective(state, agent), agent.turn
    if turn is None:
        return ""
    words: list[str] = []
    ending = False
    prompt = agent.size * agent.ratio  # tokens of the next one, about
    if limits.iterations is not None:
        left = limits.iterations - turn.iterations
        words.append(f"{left} of {limits.iterations} iterations left")
        ending = left <= 2
    for bound, used in bounds(state, agent):
        if bound.tokens is not None:
            tokens = max(bound.tokens - used.total, 0)
            words.append(f"{tokens} tokens left")
            ending = ending or tokens < 2.5 * prompt
        if bound.money is not None and used.cost is not None:
            money = max(bound.money - used.cost, 0)
            words.append(f"${money:.2f} left")
            ending = ending or money < 2.5 * prompt * used.cost / max(used.total, 1)
    if limits.seconds is not None:
        seconds = max(limits.seconds - (now - turn.began), 0)
        words.append(f"{seconds:.0f} s left")
        ending = ending or seconds < LATE * limits.seconds
    if ending:
        words.append("finish now: give your best answer with what you have")
    return "; ".join(words)
