"""Limits: exact, visible, reserved before a request (law 9)."""

from __future__ import annotations

from typing import TypeVar

from textor.events import Limits
from textor.kernel.state import AgentState, State
from textor.messages import Usage

T = TypeVar("T", int, float)

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


def estimate_input(agent: AgentState, status: str) -> int:
    """Tokens of the next prompt, estimated from what the server reported for the last one."""
    return int((agent.size + len(status)) * agent.ratio) + 1


def reached(state: State, agent: AgentState, now: float) -> str:
    """The limit that a turn has reached before a request, as its name; "" when none is."""
    limits = effective(state, agent)
    turn = agent.turn
    assert turn is not None
    if limits.iterations is not None and turn.iterations >= limits.iterations:
        return "iterations"
    if limits.seconds is not None and now - turn.began >= limits.seconds:
        return "seconds"
    for bound, used in ((state.limits, state.usage), (agent.limits, agent.usage)):
        if bound.tokens is not None and used.total >= bound.tokens:
            return "tokens"
        if bound.money is not None and used.cost is not None and used.cost >= bound.money:
            return "money"
    return ""


def reserve(state: State, agent: AgentState, status: str, most: int | None) -> Usage | None:
    """What is set aside for the next request: input as estimated, output as much as is allowed.

    None when the tokens left do not hold the prompt and a least reply.
    """
    prompt = estimate_input(agent, status)
    output = most or REPLY_TOKENS
    for bound, used in ((state.limits, state.usage), (agent.limits, agent.usage)):
        if bound.tokens is not None:
            output = min(output, bound.tokens - used.total - prompt)
    if output < LEAST_REPLY:
        return None
    return Usage(input=prompt, output=output, estimated=True)
