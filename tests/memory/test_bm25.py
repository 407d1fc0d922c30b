"""Ranking by words."""

from __future__ import annotations

from textor.memory.bm25 import Bm25, stems


def test_rare_words_and_short_texts_come_first() -> None:
    texts = Bm25(["reads files and pages", "reads files", "writes files to the web and reads files"])
    assert texts.scores("") == [0, 0, 0] == texts.scores("nothing")
    scores = texts.scores("read a page")
    assert scores.index(max(scores)) == 0
    assert scores[1] > scores[2] > 0
    assert texts.best("pages") == [0]
    assert Bm25([]).scores("files") == []


def test_names_fall_apart() -> None:
    assert stems("getWeather web_search.runs") == ["get", "weath", "web", "search", "run"]
