"""The calibrations that come with Textor, as `benchmarks/matching.py --fit` printed them."""

from __future__ import annotations

from textor.dialects.matching.calibration import LEXICAL, Calibration, Features

_MINILM = Calibration(
    model_id="all-MiniLM-L6-v2.int8",
    bias=-1.127,
    weights=Features(score=0.2, lead=10.763, opposed=-5.087, unfit=-0.26, shape=1.071, vague=-1.673),
    match=0.65,
    least=0.30,
    distant=0.40,
    lines=153,
)
_WORDS = Calibration(
    model_id=LEXICAL,
    bias=-1.586,
    weights=Features(score=1.002, lead=5.362, opposed=-4.199, unfit=-3.134, shape=0.714, vague=-3.967),
    match=0.85,
    least=0.15,
    lines=153,
)
CALIBRATIONS = {each.model_id: each for each in (_MINILM, _WORDS)}
