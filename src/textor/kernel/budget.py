"""Limits: exact, visible, reserved before a request (law 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from textor.events import Limits
from textor.kernel.state import AgentState, State
from textor.messages import NO_USAGE, Usage

T = TypeVar("T", int, float)

Price = Callable[[int, int], float | None]  #: US dollars for tokens of input and output

#: Tokens set aside for a reply where nothing else bounds it.
REPLY_TOKENS = 4096
#: A request is not worth sending with less room than this for its reply.
LEAST_REPLY = 16


def effective(state: State, agent: AgentState) -> Limits:
    """The narrower of the agent's own limits and the session's, for what is counted per turn."""
    own, shared = agent.limits, state.limits
    return Limits(
        iterations=_least(own.iterations, shared.iterations),
        tokens=own.tokens,
        money=own.money,
        seconds=_least(own.seconds, shared.seconds),
    )


def _least(*limits: T | None) -> T | None:
    return min((limit for limit in limits if limit is not None), default=None)


def bounds(state: State, agent: AgentState) -> Iterator[tuple[Limits, Usage]]:
    """The limits of the session, of the agent and of all above it, each with what its whole subtree
    has used, requests under way included."""
    yield state.limits, _used(state.agents.values())
    path = agent.id
    while path in state.agents:
        yield state.agents[path].limits, _used(state.agents[name] for name in state.below(path))
        path = path.rpartition("/")[0]


def _used(agents: Iterable[AgentState]) -> Usage:
    total = NO_USAGE
    for agent in agents:
        total += agent.usage
        if agent.generation is not None:
            total += agent.generation.reserved
    return total


def reached(state: State, agent: AgentState, now: float) -> str:
    """The limit that a turn has reached before a request, as its name; "" when none is."""
    limits = effective(state, agent)
    turn = agent.turn
    assert turn is not None
    if limits.iterations is not None and turn.iterations >= limits.iterations:
        return "iterations"
    if limits.seconds is not None and now - turn.began >= limits.seconds:
        return "seconds"
    for bound, used in bounds(state, agent):
        if bound.tokens is not None and used.total >= bound.tokens:
            return "tokens"
        if bound.money is not None and used.cost is not None and used.cost >= bound.money:
            return "money"
    return ""


def reserve(state: State, agent: AgentState, size: int, price: Price) -> Usage | str:
    """What is set aside for a prompt of `size` characters, by the tokens that the server reported for
    the last one, and as much output as is allowed.

    The name of the limit, when what is left of it does not hold the prompt and a least reply.
    """
    prompt, output, limit = int(size * agent.ratio) + 1, REPLY_TOKENS, ""
    for bound, used in bounds(state, agent):
        if bound.tokens is not None and bound.tokens - used.total - prompt < output:
            output, limit = bound.tokens - used.total - prompt, "tokens"
        fixed, each = price(prompt, 0), price(0, 1)
        if bound.money is not None and used.cost is not None and fixed is not None and each:
            affordable = int((bound.money - used.cost - fixed) / each)
            if affordable < output:
                output, limit = affordable, "money"
    if output < LEAST_REPLY:
        return limit
    return Usage(prompt, output, cost=price(prompt, output), estimated=True)
