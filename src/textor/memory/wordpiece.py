"""The tokenizer of BERT's uncased models: text to WordPiece ids.

Text is cleaned, put into lower case and stripped of accents; CJK signs and punctuation stand alone;
each word becomes the longest pieces of the vocabulary that it begins with, the later ones marked
`##`. After Google's BERT (`tokenization.py`, Apache-2.0); equal to Hugging Face's `tokenizers` but
for signs that its Unicode tables do not know yet, and for `[SEP]` and the like in a text, which are
text here and not a mark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from textor.errors import TextorError

#: Words longer than this are unknown as a whole.
LONGEST_WORD = 100

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # so in `tokenizers`, with which the models were trained; Unicode: 0x2B820
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A vocabulary, one piece a line, in the order of the ids. Raises `TextorError` without one."""

    def __init__(self, vocabulary: Path) -> None:
        try:
            pieces = vocabulary.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TextorError(f"The vocabulary {vocabulary} cannot be read: {error}.") from error
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        missing = [mark for mark in ("[CLS]", "[SEP]", "[UNK]") if mark not in self._ids]
        if missing:
            raise TextorError(f"{vocabulary} is no vocabulary of BERT: it lacks {', '.join(missing)}.")
        self._first, self._last, self._unknown = (self._ids[m] for m in ("[CLS]", "[SEP]", "[UNK]"))
        self._word = lru_cache(maxsize=20_000)(self._pieces)

    def ids(self, text: str, limit: int = 256) -> list[int]:
        """The ids of a text between [CLS] and [SEP], `limit` at most; what is beyond is left out."""
        found = [self._first]
        for word in words(text):
            found += self._word(word)
            if len(found) >= limit:
                break
        return [*found[: limit - 1], self._last]

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(piece)
            start = end
        return tuple(pieces)


def words(text: str) -> Iterator[str]:
    """The words of a text as BERT cuts them: lower case, no accents, punctuation and CJK alone."""
    spaced = "".join(_spaced(text))
    lowered = unicodedata.normalize("NFD", spaced.lower())
    plain = "".join(sign for sign in lowered if unicodedata.category(sign) != "Mn")
    for word in plain.split():
        yield from _split(word)


def _spaced(text: str) -> Iterator[str]:
    for sign in text:
        if sign.isascii() and sign.isalnum():
            yield sign
        elif sign in "\t\n\r" or unicodedata.category(sign) == "Zs":
            yield " "
        elif sign in "\x00\ufffd" or unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs"):
            continue
        else:
            yield f" {sign} " if _is_cjk(sign) else sign


def _is_cjk(sign: str) -> bool:
    return any(low <= ord(sign) <= high for low, high in _CJK)


def _split(word: str) -> Iterator[str]:
    start = 0
    for at, sign in enumerate(word):
        if _is_punctuation(sign):
            if start < at:
                yield word[start:at]
            yield sign
            start = at + 1
    if start < len(word):
        yield word[start:]


def _is_punctuation(sign: str) -> bool:
    # All of ASCII that is neither letter nor digit counts, also "$" and "^", which Unicode calls symbols.
    if sign.isascii():
        return not sign.isalnum()
    return unicodedata.category(sign).startswith("P")
