"""Patterns of strangers: what a module's schema says must never hold this process up."""

from __future__ import annotations

import time

import pytest

from textor import regexes
from textor.arguments import ArgumentError, convert

BAD = ["^(a+)+$", "^(a|a)*$", "^(a?){40}a{40}$", "^(a{1,9}){1,9}$", r"^(a*)\1*b$", "a*a*a*a*a*b"]
LONG = "a" * 5_000 + "!"


@pytest.mark.parametrize("pattern", BAD)
@pytest.mark.parametrize("linear", [True, False])
def test_no_pattern_takes_longer_than_it_may(
    pattern: str, linear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linear:  # as where google-re2 is not installed
        monkeypatch.setattr(regexes, "_linear", lambda pattern: None)
    began = time.process_time()
    for text in ("a" * 40 + "!", LONG):
        assert regexes.found(pattern, text) in (None, False)
    for schema in (
        {"properties": {"t": {"type": "string", "pattern": pattern}}},
        {"patternProperties": {pattern: {}}, "additionalProperties": True},
        {"patternProperties": {pattern: {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    ):
        for arguments in ({"t": LONG}, {LONG: "x"}):
            try:
                convert(arguments, {"type": "object", **schema})
            except ArgumentError:
                pass
    assert time.process_time() - began < 2


@pytest.mark.parametrize("linear", [True, False])
def test_what_patterns_are_for_still_holds(linear: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not linear:
        monkeypatch.setattr(regexes, "_linear", lambda pattern: None)
    for pattern, text, wanted in (
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-30", True),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-11-3", False),
        ("^[a-z_]+$", "snake_case", True),
        ("^(red|blue)$", "green", False),
        ("b", "abc", True),
        ("^https?://", "ftp://x", False),
        ("(", "(", None),
    ):
        assert regexes.found(pattern, text) is wanted, pattern
    # RE2 knows no looking ahead; what is plain enough is searched all the same
    assert regexes.found("^(?!x)[a-z]+$", "abc") is True
    assert regexes.found("^(?!x)[a-z]+$", "xbc") is False
    schema = {
        "type": "object",
        "properties": {"t": {"type": "string", "pattern": "^[a-z]+$"}},
        "patternProperties": {"^n_": {"type": "integer", "minimum": 3}},
        "additionalProperties": False,
    }
    assert convert({"t": "abc", "n_x": 4}, schema) == {"t": "abc", "n_x": 4}
    for wrong in ({"t": "ABC"}, {"t": "abc", "n_x": 1}, {"t": "abc", "other": 1}):
        with pytest.raises(ArgumentError):
            convert(wrong, schema)
