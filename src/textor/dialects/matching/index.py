"""A catalogue as it is searched: views, words and vectors, kept from one line to the next.

A capability that was seen before costs nothing again; a new one is taken apart and embedded when
the next line is compiled, together with all other new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from textor.actions import Capability
from textor.dialects.matching.lexicon import Lexicon
from textor.dialects.matching.views import View, view_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from textor.embedding import Embedder, Vectors

#: So many are looked at closely, the nearest by their middle and as many by their words.
CLOSE = 128


class Entry(msgspec.Struct):
    """One capability, and the vectors of its texts once there are any, one a row."""

    view: View
    vectors: Vectors | None = None


class Index:
    """The entries of one catalogue, in its order. Made and brought up to date by `Indexes`."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.lexicon = Lexicon([entry.view for entry in entries])
        self._middles: Vectors | None = None

    @property
    def views(self) -> list[View]:
        return [entry.view for entry in self.entries]

    def embed(self, embedder: Embedder) -> None:
        """Have a vector for every text. Blocks while new ones are embedded."""
        import numpy as np

        new = [entry for entry in self.entries if entry.vectors is None]
        vectors = embedder.encode([text for entry in new for text in entry.view.texts], "passage")
        start = 0
        for entry in new:
            end = start + len(entry.view.texts)
            entry.vectors = vectors[start:end]
            start = end
        if new or self._middles is None:
            self._middles = np.stack([_middle(entry, embedder.dim) for entry in self.entries])

    def nearest(self, words: Sequence[str], vector: NDArray[numpy.float32] | None) -> list[int]:
        """The places of the entries that are worth a closer look, at most 2 * CLOSE."""
        import numpy as np

        if len(self.entries) <= CLOSE:
            return list(range(len(self.entries)))
        found = _best(self.lexicon.scores(words), CLOSE)
        if vector is not None and self._middles is not None:
            found = np.union1d(found, _best(self._middles @ vector, CLOSE))
        return [int(place) for place in found]

    def cosines(self, places: Sequence[int], vector: NDArray[numpy.float32]) -> list[Sequence[float]]:
        """For each place the cosines of the line with the texts of that entry."""
        import numpy as np

        rows = [self.entries[place].vectors for place in places]
        assert all(row is not None for row in rows)
        lengths = [len(row) for row in rows if row is not None]
        if not sum(lengths):
            return [() for _ in rows]
        flat = np.concatenate([row for row in rows if row is not None]) @ vector
        ends = np.cumsum(lengths)
        return [flat[end - length : end].tolist() for end, length in zip(ends, lengths, strict=True)]


def _middle(entry: Entry, dim: int) -> Vectors:
    """One vector for a capability: the mean of those of its kinds of text."""
    import numpy as np

    view, vectors = entry.view, entry.vectors
    assert vectors is not None
    phrases, examples = len(view.phrases), len(view.examples)
    kinds = (
        vectors[:phrases],
        vectors[phrases : len(vectors) - examples],
        vectors[len(vectors) - examples :],
    )
    means = [kind.mean(axis=0) for kind in kinds if len(kind)]
    middle: Vectors = np.mean(means, axis=0) if means else np.zeros(dim, np.float32)
    return middle


def _best(scores: NDArray[numpy.floating], count: int) -> NDArray[numpy.intp]:
    import numpy as np

    return np.argpartition(-scores, count)[:count]


class Indexes:
    """Makes an `Index` of a catalogue, out of what is left of earlier ones."""

    def __init__(self) -> None:
        # By identity: comparing a capability means comparing its schema. The entry keeps the
        # capability alive, so that its number is not given to another one.
        self._entries: dict[int, Entry] = {}
        self._last: tuple[tuple[int, ...], Index] | None = None

    def of(self, capabilities: Iterable[Capability]) -> Index:
        found = list(capabilities)
        key = tuple(map(id, found))
        if self._last is None or self._last[0] != key:
            known = self._entries
            self._entries = {id(c): known.get(id(c)) or Entry(view_of(c)) for c in found}
            self._last = (key, Index(list(self._entries.values())))
        return self._last[1]
