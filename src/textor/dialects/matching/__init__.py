"""Matching: free lines of the `plan` dialect, compiled by meaning."""

from textor.dialects.matching.calibration import (
    Calibration,
    Features,
    Labelled,
    Reach,
    cross_validate,
    fit,
    reach,
)
from textor.dialects.matching.matcher import Candidate, Compiled, Matcher

__all__ = [
    "Calibration",
    "Candidate",
    "Compiled",
    "Features",
    "Labelled",
    "Matcher",
    "Reach",
    "cross_validate",
    "fit",
    "reach",
]
