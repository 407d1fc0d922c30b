"""Reaching the agents of a session by what a person types: who is there, control, words, limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from textor.errors import UseError
from textor.events import Asked, Level, Limits
from textor.kernel.state import AgentState, State
from textor.near import did_you_mean, nearest

if TYPE_CHECKING:
    from textor.session import Session

#: All commands of a conversation, for a near miss.
COMMANDS = ("/model", "/stop", "/kill", "/pause", "/go", "/agents", "/to", "/limits", "/help", "/quit")
#: The commands of a conversation that control an agent and all below it.
LEVELS: dict[str, Level] = {"/pause": "pause", "/go": "run", "/stop": "stop", "/kill": "kill"}
WORDS: dict[Level, str] = {
    "pause": "Pausing {}; /go goes on.",
    "run": "{} goes on.",
    "stop": "Stopping {} at the next step.",
    "kill": "Ending {} now.",
}

#: The limits that hold for each turn; the others hold for the whole session.
OF_A_TURN = ("iterations", "seconds")


async def act(session: Session, word: str, rest: str) -> list[str]:
    """Do what a command of a conversation says, and return what there is to show.

    Raises `UseError` for a command, an agent or a limit that does not exist.
    """
    match word:
        case "/agents":
            return list(tree_lines(await session.state()))
        case "/limits":
            if rest:
                await session.raise_limits(read_limits(rest, (await session.state()).limits))
            return list(limit_lines(await session.state()))
        case "/to":
            name, _, text = rest.partition(" ")
            if not text.strip():
                raise UseError("/to takes an agent and what to say to it.", "As in: /to anna Look again.")
            await session.post(text.strip(), find_agent(await session.state(), name))
            return []
        case _ if word in LEVELS:
            agent = find_agent(await session.state(), rest or "main")
            await session.control(LEVELS[word], agent)
            return [WORDS[LEVELS[word]].format(agent)]
    near = did_you_mean(nearest(word, COMMANDS))
    raise UseError(f"There is no command {word}.", near or "/help lists them.")


def for_person(asked: Asked) -> bool:
    """Whether a question is the person's to answer. One of an agent below is its caller's, who may
    know the answer; where it does not, it asks in its own name."""
    return "/" not in asked.agent


def find_agent(state: State, word: str) -> str:
    """The agent of this name: its path, or the last part of it. Raises `UseError`."""
    if word in state.agents:
        return word
    found = [name for name in state.agents if name.rpartition("/")[2] == word]
    if len(found) == 1:
        return found[0]
    if found:
        raise UseError(f"There are several agents {word!r}.", f"Say which: {', '.join(found)}.")
    likely = nearest(word.rpartition("/")[2], (name.rpartition("/")[2] for name in state.agents), 1)
    near = did_you_mean(name for name in state.agents if name.rpartition("/")[2] in likely)
    raise UseError(
        f"There is no agent {word!r} in this session.", near or f"There are: {', '.join(state.agents)}."
    )


def tree_lines(state: State) -> Iterator[str]:
    """The agents as a tree, each with its type and what it is doing."""
    for agent in sorted(state.agents.values(), key=lambda agent: agent.id.split("/")):
        depth = agent.id.count("/")
        name = agent.id.rpartition("/")[2]
        yield f"{'  ' * depth}{name} ({agent.definition.type}): {doing(state, agent)}"


def doing(state: State, agent: AgentState) -> str:
    """What an agent is doing, in a few words."""
    if agent.level != "run":
        return {"pause": "paused", "stop": "stopping", "kill": "ending"}[agent.level]
    if any(question.agent == agent.id for question in state.questions.values()):
        return "waits for an answer"
    if any(work.verdict == "ask" and work.outcome is None for work in agent.work):
        return "waits for your permission"
    open_ones = [work.action.capability for work in agent.work if work.started and work.outcome is None]
    if open_ones:
        return f"runs {', '.join(dict.fromkeys(open_ones))}"
    if agent.turn is not None:
        return "at work"
    return "at rest" if agent.ended is None else f"at rest ({agent.ended.reason})"


def limit_lines(state: State) -> Iterator[str]:
    """The limits of the session and what is used of those that hold for it as a whole."""
    used = {"tokens": state.usage.total, "money": state.usage.cost, "agents": len(state.agents)}
    for name, limit in msgspec.structs.asdict(state.limits).items():
        said = "no limit" if limit is None else f"{limit:g}"
        if name in OF_A_TURN:
            yield f"{name}: {said}" if limit is None else f"{name}: {said} for each message"
        else:
            spent = used[name]
            yield f"{name}: {said}, used {'unknown' if spent is None else f'{spent:g}'}"


def used_line(state: State) -> str:
    """What a session has used so far: "1,103 tokens read, 40 written; $0.0042"."""
    usage = state.usage
    about = "about " if usage.estimated else ""
    price = "price unknown" if usage.cost is None else f"${usage.cost:.4f}" if usage.cost else "free"
    return f"{about}{usage.input:,} tokens read, {usage.output:,} written; {price}"


def read_limits(text: str, now: Limits) -> Limits:
    """New limits from `tokens=100000 money=2`: what is not named stays; `none` lifts a limit.

    Raises `UseError` that says what is wrong.
    """
    names = Limits.__struct_fields__
    changes: dict[str, float | int | None] = {}
    for part in text.split():
        name, mark, value = part.partition("=")
        if not mark or name not in names:
            near = did_you_mean(nearest(name, names)) or f"There are: {', '.join(names)}."
            raise UseError(f"{part!r} sets no limit; write it as in tokens=100000.", near)
        changes[name] = None if value == "none" else _number(name, value)
    return msgspec.structs.replace(now, **changes)


def _number(name: str, value: str) -> float | int:
    whole = name not in ("money", "seconds")
    try:
        number = int(value.replace(",", "").replace("_", "")) if whole else float(value)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        kind = "whole number" if whole else "number"
        raise UseError(f"{name} must be a {kind} above 0, or none, and is {value!r}.")
    return number
