"""Words of lines and views: cut out, stemmed, the meaningless ones left out."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

_WORD = re.compile(r"\w+(?:['’]\w+)*|\[\]")

#: Words that say nothing about which action is meant.
_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "it",
        "its",
        "my",
        "your",
        "our",
        "their",
        "his",
        "her",
        "me",
        "you",
        "we",
        "i",
        "user",
        "users",
        "is",
        "are",
        "be",
        "was",
        "to",
        "of",
        "in",
        "on",
        "at",
        "by",
        "for",
        "with",
        "from",
        "into",
        "as",
        "and",
        "or",
        "so",
        "then",
        "now",
        "please",
        "just",
        "also",
        "will",
        "would",
        "should",
        "can",
        "could",
        "shall",
        "do",
        "does",
        "let",
        "us",
        "want",
        "need",
        "like",
        "first",
        "next",
        "finally",
        "after",
        "before",
        "here",
        "there",
        "have",
        "has",
        "called",
        "named",
        "which",
        "what",
        "where",
        "who",
        "when",
        "kindly",
        "ok",
        "okay",
        "sure",
        "next",
        "step",
    ]
)


def tokens(text: str) -> tuple[str, ...]:
    """The words of a skeleton in lower case, slots left out."""
    return tuple(word.replace("’", "'") for word in _WORD.findall(text.casefold()) if word != "[]")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its commonest English endings: `closing`, `closed`, `close` are one.

    Rough on purpose: the same on both sides is all that counts. The idea is Porter's (1980).
    """
    word = word.removesuffix("'s").removesuffix("'")
    if not word.isascii() or len(word) < 4:
        return word
    for ending in ("ings", "ing", "ies", "ied", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    return word


def content(words: tuple[str, ...]) -> tuple[str, ...]:
    """The stems of the words that mean something, each once, in order."""
    return tuple(dict.fromkeys(stem(word) for word in words if word not in _STOP))


def bigrams(word: str) -> frozenset[str]:
    """The pairs of letters of a word with its borders: what two spellings share."""
    framed = f"^{word}$"
    return frozenset(framed[at : at + 2] for at in range(len(framed) - 1))


def likeness(one: str, other: str) -> float:
    """How alike two words are spelt, 0 to 1: twice the letters in common runs over all letters."""
    return 1.0 if one == other else SequenceMatcher(None, one, other, autojunk=False).ratio()
