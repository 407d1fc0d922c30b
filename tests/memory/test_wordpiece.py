"""The tokenizer: the ids that Hugging Face's `tokenizers` 0.23 gives for BERT's uncased vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor import weights
from textor.errors import TextorError
from textor.memory import embedder_fetch
from textor.memory.wordpiece import WordPiece, words

GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "wordpiece.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece(weights.fetch(embedder_fetch.VOCABULARY))


@pytest.mark.parametrize(("text", "ids"), GOLDEN, ids=range(len(GOLDEN)))
def test_the_ids_are_those_of_the_reference(tokenizer: WordPiece, text: str, ids: list[int]) -> None:
    assert tokenizer.ids(text) == ids


def test_marks_in_a_text_are_text(tokenizer: WordPiece) -> None:
    first, *inner, last = tokenizer.ids("[SEP] x [CLS]")
    assert first not in inner and last not in inner


@given(st.text())
def test_any_text_gives_ids_between_the_marks(tokenizer: WordPiece, text: str) -> None:
    ids = tokenizer.ids(text, 16)
    assert 2 <= len(ids) <= 16 and (ids[0], ids[-1]) == (101, 102)
    assert all(word and not word.isspace() for word in words(text))


def test_a_file_that_is_no_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(TextorError, match="cannot be read"):
        WordPiece(tmp_path / "missing")
    (tmp_path / "vocab.txt").write_text("[CLS]\nhello\n")
    with pytest.raises(TextorError, match=r"lacks \[SEP\], \[UNK\]"):
        WordPiece(tmp_path / "vocab.txt")
