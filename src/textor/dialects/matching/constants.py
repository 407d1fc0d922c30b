"""The calibrations that come with Textor, as `benchmarks/matching.py --fit` printed them."""

from __future__ import annotations

from textor.dialects.matching.calibration import LEXICAL, Calibration, Features

_MINILM = Calibration(
    model_id="all-MiniLM-L6-v2.int8",
    bias=-1.356,
    weights=Features(score=0.188, lead=11.095, opposed=-5.452, unfit=-0.214, shape=1.212, vague=-1.508),
    match=0.65,
    least=0.30,
    lines=153,
)
_WORDS = Calibration(
    model_id=LEXICAL,
    bias=-1.81,
    weights=Features(score=1.461, lead=5.217, opposed=-4.446, unfit=-3.573, shape=0.643, vague=-3.977),
    match=0.85,
    least=0.15,
    lines=153,
)
CALIBRATIONS = {each.model_id: each for each in (_MINILM, _WORDS)}
