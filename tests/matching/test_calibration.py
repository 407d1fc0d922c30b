"""Fitting probabilities to labelled lines."""

from __future__ import annotations

import random
from typing import Any

import pytest

from textor.actions import Catalogue
from textor.dialects.matching import Features, Labelled, Matcher, cross_validate, fit, reach
from textor.dialects.matching.constants import CALIBRATIONS
from textor.errors import UseError
from textor.memory.embedder import MiniLM


def examples(count: int, noise: float) -> list[Labelled]:
    """Lines that are right when their lead is great, but for some noise."""
    rng = random.Random(5)
    made = []
    for _ in range(count):
        lead = rng.uniform(0, 0.4)
        right = (lead > 0.2) != (rng.random() < noise)
        features = Features(score=rng.uniform(0.3, 0.9), lead=lead, opposed=0, unfit=0, shape=0, vague=0)
        made.append(Labelled(features, right, answered=right))
    return made


def test_a_fit_finds_what_tells() -> None:
    lines = examples(200, 0.0)
    made = fit("m", lines)
    assert made.model_id == "m" and made.lines == 200
    assert made.weights.lead > 10 * abs(made.weights.score)
    best = Features(score=0.5, lead=0.4, opposed=0, unfit=0, shape=0, vague=0)
    worst = Features(score=0.5, lead=0.0, opposed=0, unfit=0, shape=0, vague=0)
    assert made.probability(best) > 0.95 and made.probability(worst) < 0.05
    found = reach(lines, cross_validate(lines), made.match)
    assert found.precision is not None and found.precision >= 0.93 and found.recall > 0.8


def test_the_threshold_keeps_the_precision() -> None:
    lines = examples(400, 0.15)
    careful, bold = fit("m", lines, precision=0.90), fit("m", lines, precision=0.60)
    assert careful.match > bold.match


def test_guarded_candidates_are_no_matches() -> None:
    guarded = Features(score=1, lead=1, opposed=1, unfit=0, shape=0, vague=0)
    lines = [Labelled(guarded, True, True), Labelled(guarded, True, True)]
    assert reach(lines, [1.0, 1.0], 0.5).matches == 0
    assert reach(lines, [1.0, 1.0], 0.5).precision is None


def test_too_few_lines_are_told() -> None:
    with pytest.raises(UseError, match="10 lines"):
        fit("m", examples(12, 0.0))


def test_extreme_features_give_a_probability() -> None:
    made = CALIBRATIONS["words"]
    for lead in (-1e9, 1e9):
        features = Features(score=0, lead=lead, opposed=0, unfit=0, shape=0, vague=0)
        assert 0.0 <= made.probability(features) <= 1.0


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2.int8", "words"])
def test_the_constants_are_those_of_the_labelled_lines(
    model: str, minilm: MiniLM, catalogue: Catalogue, labelled: list[dict[str, Any]]
) -> None:
    matcher = Matcher(minilm if model != "words" else None)
    lines, expected = [r["line"] for r in labelled], [r["expected"] or "" for r in labelled]
    made = fit(matcher.model_id, matcher.label(lines, expected, catalogue))
    kept = CALIBRATIONS[model]
    assert (made.match, made.lines) == (kept.match, kept.lines)
    for name in Features.__struct_fields__:
        # Processors differ in the last digits of an int8 model.
        assert getattr(made.weights, name) == pytest.approx(getattr(kept.weights, name), abs=0.5), name
