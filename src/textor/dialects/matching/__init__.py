"""Matching: free lines of the `plan` dialect, compiled by meaning."""

from textor.dialects.matching.calibration import Calibration, Features, Labelled, cross_validate, fit
from textor.dialects.matching.matcher import Candidate, Compiled, Matcher

__all__ = [
    "Calibration",
    "Candidate",
    "Compiled",
    "Features",
    "Labelled",
    "Matcher",
    "cross_validate",
    "fit",
]
