"""Ranking of texts by words: BM25 (Robertson and Spärck Jones), with the usual constants."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

K1, B = 1.2, 0.75

_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENDINGS = ("ings", "ing", "ers", "er", "es", "ed", "s", "e")


def stems(text: str) -> list[str]:
    """The words of a text or name, small and without their endings; `camelCase` and `snake_case`
    fall apart."""
    return [
        next((w[: -len(end)] for end in _ENDINGS if w.endswith(end) and len(w) > len(end) + 2), w)
        for w in _WORD.findall(_CASE.sub(" ", text).casefold())
    ]


class Bm25:
    """Texts, ready to be asked which fits a query."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._bags = [Counter(stems(text)) for text in texts]
        self._lengths = [sum(bag.values()) for bag in self._bags]
        self._usual = max(sum(self._lengths) / max(len(self._lengths), 1), 1)
        self._holders: dict[str, list[int]] = {}
        for place, bag in enumerate(self._bags):
            for stem in bag:
                self._holders.setdefault(stem, []).append(place)

    def scores(self, query: str) -> list[float]:
        """How well each text fits; 0 is not at all."""
        scores = [0.0] * len(self._bags)
        for stem in set(stems(query)):
            held = self._holders.get(stem, ())
            weight = math.log(1 + (len(scores) - len(held) + 0.5) / (len(held) + 0.5))
            for place in held:
                times = self._bags[place][stem]
                length = K1 * (1 - B + B * self._lengths[place] / self._usual)
                scores[place] += weight * times * (K1 + 1) / (times + length)
        return scores

    def best(self, query: str) -> list[int]:
        """The places of the texts that fit at all, best first."""
        scores = self.scores(query)
        return sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: -scores[n])
