"""Where text may act: the zones of a reply."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from textor.dialects.fences import INFO, QUOTED, RUN, Fences, Piece

MARK = "<go>"


def pieces(text: str, size: int = 10**9, line_marks: tuple[str, ...] = ()) -> list[Piece]:
    """The pieces of `text` fed in chunks, those of one zone merged."""
    fences, found = Fences((MARK,), line_marks), []
    for start in range(0, len(text), size):
        fences.feed(text[start : start + size])
        while (piece := fences.next()) is not None:
            found.append(piece)
    fences.end()
    while (piece := fences.next()) is not None:
        found.append(piece)
    merged: list[Piece] = []
    for piece in found:
        last = merged[-1] if merged else None
        if last and last.zone == piece.zone != "mark" and not (last.edge or piece.edge):
            merged[-1] = last._replace(text=last.text + piece.text)
        else:
            merged.append(piece)
    return merged


def acting(text: str) -> int:
    return sum(piece.zone == "mark" for piece in pieces(text))


QUOTATIONS = [
    "`<go>`",
    "``a ` <go>``",
    "` <go>",
    "```\n<go>\n```",
    "```py\n<go>",
    "~~~\n<go>\n~~~",
    "````\n```\n<go>\n````",
    "  - x\n    ```\n    <go>\n    ```",
    "```\n<go>\n``` no end\n<go>",
    "~~~\n```\n<go>\n```\n<go>",
    "> <go>",
    "a\n  > <go>",
    "<think><go></think>",
    "<THINK>\n<go>",
    "<thinking>a</think><go></thinking>",
    "[THINK]<go>[/THINK]",
    "<code><go></code>",
    "<pre>\n<go>\n</pre>",
    "<blockquote>\n<go></blockquote>",
    "```<go>``` ",
]


@pytest.mark.parametrize("text", QUOTATIONS)
def test_quoted_marks_do_not_act(text: str) -> None:
    assert acting(text) == 0


@pytest.mark.parametrize(
    "text", [text for text in QUOTATIONS if not text.endswith(("\n<go>", "> <go>", "` <go>"))]
)
def test_after_a_closed_quotation_text_acts_again(text: str) -> None:
    if text in ("```py\n<go>", "<THINK>\n<go>"):
        return
    assert acting(text + "\n<go>") == (0 if "no end" in text else 1)


ACTING = [
    "<go>",
    "a <go> b",
    "the ` key\n<go>",
    "``\n<go>",
    "x ~~~ <go>",
    "a ``` <go>".replace("```", "''"),
    "a > b <go>",
    "<thin<go>",
    "```\nx\n```\n<go>",
    "```\nx\n  `````  \n<go>",
]


@pytest.mark.parametrize("text", ACTING)
def test_marks_in_prose_act(text: str) -> None:
    assert acting(text) == 1


def test_info_and_edges_of_a_fence() -> None:
    opened, body, closed = pieces("```json x\n{}\n```")
    assert (opened.edge, opened.info, opened.text) == ("open", "json x", "```json x")
    assert (body.text, body.offset) == ("\n{}\n", 9)
    assert (closed.edge, closed.text) == ("close", "```")
    assert pieces("```\n{}")[-1].edge == "cut"


def test_the_end_of_reasoning_whose_begin_was_swallowed() -> None:
    """Servers that put `<think>` into the prompt send only its end."""
    assert [p.edge for p in pieces("hm </think>ok") if p.edge] == ["orphan"]
    assert [p.edge for p in pieces("<think>a</think> b </think>") if p.edge] == ["open", "close"]
    assert [p.edge for p in pieces("the `</think>` tag") if p.edge] == []


def test_line_marks_count_where_a_line_begins() -> None:
    marks = [p for p in pieces("{ a { b\n  {", line_marks=("{",)) if p.zone == "mark"]
    assert [(p.text, p.offset) for p in marks] == [("{", 0), ("  {", 8)]


def test_the_dialect_reads_by_itself_and_hands_back() -> None:
    fences = Fences((MARK,))
    fences.feed("a <go>`raw` stop\n> quoted")
    assert [fences.next(), fences.next()] == [Piece("prose", "a ", 0), Piece("mark", "<go>", 2)]
    assert fences.buffer[fences.pos :].startswith("`raw` stop")
    fences.advance(len("`raw` stop"))
    assert fences.offset == 16
    rest = [fences.next(), fences.next()]
    assert [p.zone for p in rest if p] == ["prose", "quote"]


def test_skipped_text_counts() -> None:
    fences = Fences((MARK,))
    fences.feed("<go>")
    assert fences.next() == Piece("mark", "<go>", 0)
    fences.skip("abc\n")
    fences.feed("> q")
    assert fences.next() == Piece("quote", ">", 8, "open")


marks = st.sampled_from(
    [MARK, "<g", "`", "``", "```", "````", "~~~", "> ", "\n", "\n\n", " ", "\t", "json", "{", "a", *QUOTED]
    + [close for _, close in QUOTED.values()]
    + ["`" * RUN, "`" * (RUN + 1), "~" * (INFO + 1), " " * 13, "x" * INFO]
)
texts = st.lists(st.one_of(marks, st.text(max_size=3)), max_size=14).map("".join)


@given(texts, st.integers(1, 7))
@example("```a`b\n<go>", 1)
@example(" ```", 1)
@example("``` " + "x" * INFO + "\n<go>", 3)
def test_the_chunks_do_not_matter(text: str, size: int) -> None:
    """R18"""
    whole = pieces(text, line_marks=("{",))
    assert pieces(text, size, ("{",)) == whole
    assert "".join(piece.text for piece in whole) == text
    for piece in whole:
        assert text[piece.offset : piece.offset + len(piece.text)] == piece.text
