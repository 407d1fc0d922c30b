"""A module's question: how a person reads it, and what their answer becomes."""

from __future__ import annotations

import asyncio

import pytest

from textor.capabilities.modules.questions import Answer, Field, Question
from textor.elicitation import ask_person, read_answer, told

ONE = Question("shop", "How many?", (Field("count", "integer", required=True),))
TWO = Question(
    "shop", "Where to?", (Field("street", required=True), Field("express", "yes or no", default=False))
)


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (ONE, "3", Answer("accept", {"count": 3})),
        (ONE, '{"count": 4}', Answer("accept", {"count": 4})),
        (ONE, "three", Answer("decline")),
        (ONE, "no", Answer("decline")),
        (TWO, '{"street": "Main 1"}', Answer("accept", {"street": "Main 1", "express": False})),
        (
            TWO,
            '{"street": "Main 1", "express": "yes"}',
            Answer("accept", {"street": "Main 1", "express": True}),
        ),
        (TWO, '{"express": true}', Answer("decline")),
        (TWO, "Main 1", Answer("decline")),
        (Question("m", "Sure?"), "yes", Answer("accept")),
        (Question("m", "Sure?"), "No", Answer("decline")),
        (Question("m", "Sure?", (Field("ok", "yes or no"),)), "no", Answer("accept", {"ok": False})),
        (Question("m", "?", (Field("c", choices=("red", "blue")),)), "green", Answer("decline")),
        (
            Question("m", "?", (Field("c", "texts", choices=("a", "b")),)),
            "a, b",
            Answer("accept", {"c": ["a", "b"]}),
        ),
    ],
)
def test_an_answer_in_the_kind_that_was_asked_for(question: Question, text: str, answer: Answer) -> None:
    assert read_answer(question, text) == answer


def test_a_question_says_who_asks_and_how_to_answer() -> None:
    assert "module shop asks: Where to?" in told(TWO)
    assert '{"street": …, "express": …}' in told(TWO)
    assert "Open https://example.org/login" in told(Question("m", "Log in", url="https://example.org/login"))


def test_nobody_is_asked_outside_a_session() -> None:
    assert asyncio.run(ask_person(ONE, None)) == Answer("cancel")
