"""The words of a catalogue: how rare each is, and which capabilities have it.

A word that the catalogue does not know is taken for the one that is spelt most like it, so that
`emial subjct` still speaks of an e-mail's subject. Rareness is BM25's (Robertson and Spärck Jones).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from textor.dialects.matching.views import View
from textor.dialects.matching.words import bigrams, likeness

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

#: Words that are spelt less alike than this are two words.
LEAST_LIKENESS = 0.75
#: So many words with most pairs of letters in common are compared whole.
COMPARED = 20


class Lexicon:
    """Built from the views of a catalogue, in their order."""

    def __init__(self, views: Sequence[View]) -> None:
        self._size = len(views)
        self._where: dict[str, list[int]] = {}
        for number, view in enumerate(views):
            for word in view.words:
                self._where.setdefault(word, []).append(number)
        self._by_bigram: dict[str, list[str]] = {}
        for word in self._where:
            for part in bigrams(word):
                self._by_bigram.setdefault(part, []).append(word)
        self.known = lru_cache(maxsize=4096)(self._known)

    def rareness(self, word: str) -> float:
        """The weight of a word: the rarer it is among the capabilities, the more it says."""
        return math.log(1 + self._size / (len(self._where.get(word, ())) + 0.5))

    def _known(self, word: str) -> tuple[str, float]:
        """The word of the catalogue that this is, or is most like, with the likeness; 0 if none."""
        if word in self._where:
            return word, 1.0
        shared = Counter(other for part in bigrams(word) for other in self._by_bigram.get(part, ()))
        near = heapq.nlargest(COMPARED, shared, key=lambda other: (shared[other] / (len(other) + 1), other))
        best = max(((likeness(word, other), other) for other in near), default=(0.0, word))
        return (best[1], best[0]) if best[0] >= LEAST_LIKENESS else (word, 0.0)

    def coverage(self, line: Sequence[str], held: Collection[str]) -> float:
        """The share of a line's words, by weight, that are among those `held`: 0 to 1."""
        total = sum(self.rareness(word) for word in line)
        found = 0.0
        for word in line:
            known, alike = self.known(word)
            if alike and known in held:
                found += alike * self.rareness(word)
        return found / total if total else 0.0

    def scores(self, line: Sequence[str]) -> NDArray[numpy.float64]:
        """The coverage of a line by each capability, for all of them at once."""
        import numpy as np

        total = sum(self.rareness(word) for word in line)
        scores = np.zeros(self._size)
        for word in line:
            known, alike = self.known(word)
            if alike:
                scores[self._where[known]] += alike * self.rareness(word) / total
        return scores
