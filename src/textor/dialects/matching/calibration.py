"""From the features of a candidate to the probability that it is what the line means.

A logistic regression. Its constants hold for one embedder (`model_id`) and were fitted on labelled
lines; `fit` makes them for another embedder or another catalogue, and `cross_validate` says what
they are worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from textor.errors import UseError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

#: The model_id of matching by words alone.
LEXICAL = "words"

#: So many lines of either kind a fit needs.
LEAST_LINES = 10


class Features(msgspec.Struct, frozen=True):
    """What is known of one candidate for one line."""

    score: float  #: the mean of the cosines with phrase, description and best example
    lead: float  #: how far it is before the next one, in the order of the ranking; may be negative
    opposed: float  #: 1 if the contradiction guard holds it back
    unfit: float  #: 1 if the brackets of the line fit no phrase of it
    shape: float  #: how well the texts in brackets look like what its slots hold, -1 to 1
    vague: float  #: 1 if the line has one meaningful word at most and its brackets tell nothing


NAMES = Features.__struct_fields__
NO_FEATURES = Features(score=0.0, lead=0.0, opposed=0.0, unfit=0.0, shape=0.0, vague=0.0)


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The constants of one embedder.

    A candidate with a probability of at least `match` and no objection is a match; a line whose
    best score is below `least` fails; a lead below `tie` makes it ambiguous. A line that says nothing
    in brackets is no match below the score `distant`: there the lead alone would speak for it, which
    is large wherever nothing else is near ("delete all my files" among apps that clear a drawing).
    `lines` is how many labelled lines it was fitted on.
    """

    model_id: str
    bias: float
    weights: Features
    match: float
    least: float
    tie: float = 0.10
    distant: float = 0.0
    lines: int = 0

    def probability(self, features: Features) -> float:
        sum_ = self.bias + math.fsum(getattr(self.weights, name) * getattr(features, name) for name in NAMES)
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, sum_))))


class Labelled(msgspec.Struct, frozen=True):
    """The first candidate of one labelled line, and whether it is right. `answered`: some
    capability is. `exact`: nothing was guessed, because it is written like a phrase or is no action."""

    features: Features
    right: bool
    answered: bool
    exact: bool = False


#: The precision that a match should have, and the thresholds tried for it.
PRECISION = 0.93
_STEPS = tuple(step / 100 for step in range(50, 100, 5))


def fit(model_id: str, examples: Sequence[Labelled], precision: float = PRECISION) -> Calibration:
    """The constants that fit these lines best; `match` is the least threshold at which matches
    have this precision in cross-validation. Raises `UseError` for lines that cannot tell."""
    free = [each for each in examples if not each.exact]
    right = sum(each.right for each in free)
    if min(right, len(free) - right) < LEAST_LINES:
        raise UseError(
            f"A calibration needs {LEAST_LINES} lines whose first candidate is right and as many where "
            f"it is wrong; there are {right} and {len(free) - right}.",
            "Label more lines, also some that no capability can do.",
        )
    bias, weights = _regression(*_arrays(free))
    chances = cross_validate(examples)
    reached = [step for step in _STEPS if (reach(examples, chances, step).precision or 0) >= precision]
    return Calibration(
        model_id=model_id,
        bias=round(bias, 3),
        weights=Features(*(round(float(weight), 3) for weight in weights)),
        match=reached[0] if reached else _STEPS[-1],
        # A line shares few words with what it means, where its meaning shares most.
        least=0.15 if model_id == LEXICAL else 0.30,
        distant=0.0 if model_id == LEXICAL else 0.40,
        lines=len(examples),
    )


class Reach(msgspec.Struct, frozen=True):
    """What matches are worth at one threshold: their number, how many of them are right, and the
    share of the lines that have an answer which they get right (`recall`)."""

    matches: int
    right: int
    recall: float

    @property
    def precision(self) -> float | None:
        return self.right / self.matches if self.matches else None


def reach(examples: Sequence[Labelled], chances: Sequence[float], threshold: float) -> Reach:
    """What comes of a threshold, with the probabilities of a cross-validation."""
    taken = [
        each
        for each, chance in zip(examples, chances, strict=True)
        if chance >= threshold and not each.features.opposed and not each.features.unfit
    ]
    right = sum(each.right for each in taken)
    answered = sum(each.answered for each in examples)
    return Reach(len(taken), right, right / answered if answered else 0.0)


def cross_validate(examples: Sequence[Labelled], parts: int = 10, rounds: int = 5) -> list[float]:
    """For each line the probability that a fit without it gives, the mean of several divisions."""
    import numpy as np

    inputs, right = _arrays(examples)
    free = np.array([not each.exact for each in examples])
    sums = np.zeros(len(examples))
    for round_ in range(rounds):
        order = np.random.default_rng(round_).permutation(len(examples))
        for part in range(parts):
            held = order[part::parts]
            kept = np.setdiff1d(np.flatnonzero(free), held)
            bias, weights = _regression(inputs[kept], right[kept])
            sums[held] += 1 / (1 + np.exp(-(bias + inputs[held] @ weights)))
    return [1.0 if e.exact else float(p) for e, p in zip(examples, sums / rounds, strict=True)]


def _arrays(examples: Sequence[Labelled]) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    import numpy as np

    inputs = np.array([[getattr(each.features, name) for name in NAMES] for each in examples], np.float64)
    return inputs, np.array([each.right for each in examples], np.float64)


def _regression(inputs: Any, right: Any, ridge: float = 1.0) -> tuple[float, Any]:
    """Newton's method on the penalised likelihood; inputs are put to one scale in between."""
    import numpy as np

    mean, scale = inputs.mean(axis=0), inputs.std(axis=0) + 1e-9
    design = np.hstack([np.ones((len(inputs), 1)), (inputs - mean) / scale])
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 1e-9
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (chance - right) + penalty * weights
        curve = (design.T * (chance * (1 - chance))) @ design + np.diag(penalty)
        weights -= np.linalg.solve(curve, slope)
    plain = weights[1:] / scale
    return float(weights[0] - plain @ mean), plain
