"""Words, shapes and opposites, by themselves."""

from __future__ import annotations

import pytest

from textor.dialects.matching.opposites import groups, negated, opposed, verb_group
from textor.dialects.matching.shapes import fit, hinted, shape, shapes_of
from textor.dialects.matching.words import content, likeness, stem, tokens


def test_stems() -> None:
    for forms in (
        ("close", "closes", "closed", "closing"),
        ("stop", "stops", "stopped", "stopping"),
        ("delete", "deleted", "deleting"),
        ("reply", "replies", "replied"),
        ("cancel", "cancelled"),
    ):
        assert len({stem(form) for form in forms}) == 1, forms
    assert stem("press") == stem("pressed") and stem("user's") == "user" and stem("文件") == "文件"


def test_words_that_mean_something() -> None:
    assert content(tokens("now set the chart's title to []")) == ("set", "chart", "titl")
    assert tokens("don’t open [] or [x]") == ("don't", "open", "or", "x")
    assert likeness("emial", "email") == 0.8 and likeness("cat", "dog") == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42", "number"),
        ("-5", "number"),
        ("20 %", "number"),
        ("bob@example.com", "email"),
        ("https://x.org/a?b=1", "domain"),
        ("news.ycombinator.com", "domain"),
        ("a=1:b=2", "pairs"),
        ("X=1, Y=2, Text=a", "pairs"),
        ("notes.txt", "file"),
        ("my report (final).pdf", "file"),
        ("/etc/hosts", "file"),
        ("today", "time"),
        ("7/12/2024 2:00 PM", "time"),
        ("2024-07-09", "time"),
        ("March 3 at 10am", "time"),
        ("I will be late tomorrow", "text"),
        ("Lunch with Eve", "text"),
        ("may be", "text"),
        ("", ""),
        ("  ", ""),
        ("x" * 5000 + ".txt", "text"),
    ],
)
def test_shapes(text: str, expected: str) -> None:
    assert shape(text) == expected


def test_hostile_texts_are_soon_read() -> None:
    """A pattern that tries all divisions of these would not end within the test's time."""
    for hostile in (
        "1 " * 149 + "x",
        "a=" + ":x" * 140 + "==",
        "a." * 149 + "!",
        "/a" * 149 + "|",
        "on " * 99 + "!",
    ):
        assert shape(hostile) == "text"


def test_how_well_texts_fit() -> None:
    seen = shapes_of([("a.txt", "Docs"), ("b.pdf", "Music")])
    assert fit(("c.csv", "Old"), seen) == 0.5
    assert fit(("5", "Old"), seen) < 0
    assert fit(("x",), ()) == 0.0
    assert fit(("loud",), (frozenset(["number"]),)) == -1.0
    assert fit(("2025",), (frozenset(["text"]),)) == 0.0


def test_hints_of_phrases_and_schemas() -> None:
    assert hinted(("set", "volum"), ("percent",), {"type": "string"}) == {"number"}
    assert hinted((), (), {"type": "integer"}) == {"number"}
    assert hinted((), (), {"type": "string", "format": "date"}) == {"time"}
    assert hinted(("email", "subject"), (), None) == frozenset()


def test_negations() -> None:
    assert negated(tokens("don’t do it")) and negated(tokens("send it without asking"))
    assert negated((), "不要打开") and not negated(tokens("note the notebook"))


def test_opposites() -> None:
    start, views = verb_group(tokens("start email application")), groups(tokens("start email application"))
    assert opposed(groups(tokens("close the email application")), start, views)
    assert opposed(groups(tokens("call off the email")), start, views)
    assert not opposed(groups(tokens("launch the email")), start, views)
    pause = verb_group(tokens("pause music"))
    assert not opposed(groups(tokens("stop playing")), pause, pause)
    assert groups(("turn", "the", "light", "off")) == {"disable"}
