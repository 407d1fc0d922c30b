"""What the status part says, so that a model can plan: what is left, and when to finish."""

from __future__ import annotations

import msgspec
import pytest

from textor import events as e
from textor.events import Limits
from textor.kernel.state import AgentState, State, Turn
from textor.layouts import Stable, budget_words
from textor.messages import Usage
from textor.values import Value

FINISH = "finish now"


def state_of(
    limits: Limits, used: Usage, *, size: int = 4000, began: float = 0.0
) -> tuple[State, AgentState]:
    """A session whose next prompt takes about a quarter of `size` tokens."""
    agent = AgentState("main", e.Definition("main"), "m", turn=Turn(1, began), usage=used, size=size)
    return State(limits=limits, agents={"main": agent}), agent


@pytest.mark.parametrize(
    ("limits", "used", "now", "finish"),
    [
        (Limits(iterations=3), Usage(), 0, False),
        (Limits(iterations=2), Usage(), 0, True),
        (Limits(tokens=10_000), Usage(6_000, 1_000), 0, False),
        (Limits(tokens=10_000), Usage(7_000, 1_000), 0, True),  # two more prompts of 1,000 at most
        (Limits(money=1.0), Usage(4_000, 1_000, cost=0.3), 0, False),
        (Limits(money=1.0), Usage(4_000, 1_000, cost=0.9), 0, True),
        (Limits(seconds=100), Usage(), 80, False),
        (Limits(seconds=100), Usage(), 90, True),
    ],
)
def test_near_the_end_of_any_budget_it_is_time_to_finish(
    limits: Limits, used: Usage, now: float, finish: bool
) -> None:
    assert (FINISH in budget_words(*state_of(limits, used), now)) is finish


def test_many_variables_do_not_fill_the_status() -> None:
    state, agent = state_of(Limits(), Usage())
    texts = {f"code_python_{n}": f"print({n})" for n in range(500)}
    values = {name: Value("text", "text/plain", text=text, size=len(text)) for name, text in texts.items()}
    status = Stable().status(state, msgspec.structs.replace(agent, variables=values), 0.0)
    assert "variable $code_python_499: text, 10 bytes: print(499)" in status
    assert "$code_python_479" in status and "and 450 more" in status
    assert len(status) < 3_000
