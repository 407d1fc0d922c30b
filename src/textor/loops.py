"""Telling that an agent goes round in circles: digests of iterations, and when they repeat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from textor.actions import Action, Outcome
from textor.values import sha256_of

#: Iterations that are remembered of a turn.
REMEMBERED = 12

_SPACE = re.compile(r"(?:\\[nrt]|\s)+")


def trail_of(done: Iterable[tuple[Action, Outcome | None]]) -> str:
    """A digest of actions with their outcomes; equal for an iteration that repeats another.

    White space is folded: two agents that pass the same words to and fro are a loop as well.
    """
    told = [
        (
            action.capability,
            # what was not understood has no arguments, so the text tells one try from another
            (action.fault, action.text) if action.fault else action.arguments,
            outcome and (outcome.state, outcome.text),
        )
        for action, outcome in done
    ]
    text = msgspec.json.encode(told, order="sorted").decode()
    return sha256_of(_SPACE.sub(" ", text).encode())[:16] if told else ""


def repeated(trail: Sequence[str]) -> str:
    """What the model is told when the last iteration repeats: the same three times, or two in
    alternation; "" when it does not."""
    if len(trail) >= 3 and trail[-1] == trail[-2] == trail[-3]:
        times = "three times"
    elif len(trail) >= 6 and trail[-6:-4] == trail[-4:-2] == trail[-2:]:
        times = "three times in alternation"
    else:
        return ""
    return f"You have done exactly this {times} with the same outcome. Do something else, or answer."
