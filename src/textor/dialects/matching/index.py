"""A catalogue as it is searched: views, words and vectors, kept from one line to the next.

A capability that was seen before costs nothing again; a new one is taken apart and embedded when
the next line is compiled, together with all other new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from textor.actions import Capability, Catalogue
from textor.dialects.matching.lexicon import Lexicon
from textor.dialects.matching.views import View, view_of
from textor.dialects.plan_lines import Phrases

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from textor.embedding import Embedder, Vectors

#: So many are looked at closely, the nearest by their middle and as many by their words.
CLOSE = 64


class Entry(msgspec.Struct):
    """One capability, and the vectors of its texts once there are any, one a row."""

    view: View
    vectors: Vectors | None = None


class Index:
    """One catalogue. What a line that is written like a phrase does not need is made later.

    `known` are entries of earlier catalogues, by the identity of their capabilities.
    """

    def __init__(self, capabilities: Sequence[Capability], known: dict[int, Entry]) -> None:
        self._capabilities = capabilities
        self._known = known
        self._middles: Vectors | None = None

    @cached_property
    def phrases(self) -> Phrases:
        return Phrases(self._capabilities)

    @cached_property
    def entries(self) -> list[Entry]:
        # By identity: to compare capabilities is to compare their schemas. An entry keeps its
        # capability alive, so that its number is not given to another one.
        entries = {id(c): self._known.get(id(c)) or Entry(view_of(c)) for c in self._capabilities}
        self._known.clear()
        self._known.update(entries)
        return list(entries.values())

    @cached_property
    def lexicon(self) -> Lexicon:
        return Lexicon([entry.view for entry in self.entries])

    def embed(self, embedder: Embedder) -> None:
        """Have a vector for every text. Blocks while new ones are embedded."""
        import numpy as np

        if self._middles is not None:
            return
        new = [entry for entry in self.entries if entry.vectors is None]
        if new:
            vectors = embedder.encode([text for entry in new for text in entry.view.texts], "passage")
            ends = np.cumsum([len(entry.view.texts) for entry in new])
            for entry, rows in zip(new, np.split(vectors, ends[:-1]), strict=True):
                entry.vectors = rows
        self._middles = np.stack([_middle(entry, embedder.dim) for entry in self.entries])

    def nearest(self, words: Sequence[str], vector: NDArray[numpy.float32] | None) -> list[int]:
        """The places of the entries that are worth a closer look, at most 2 * CLOSE."""
        import numpy as np

        if len(self.entries) <= CLOSE:
            return list(range(len(self.entries)))
        found = _best(self.lexicon.scores(words), CLOSE)
        if vector is not None and self._middles is not None:
            # einsum and not @: that wakes the threads of BLAS, which cost more than they bring.
            found = np.union1d(found, _best(np.einsum("ij,j->i", self._middles, vector), CLOSE))
        return [int(place) for place in found]

    def cosines(self, places: Sequence[int], vector: NDArray[numpy.float32]) -> list[Sequence[float]]:
        """For each place the cosines of the line with the texts of that entry."""
        import numpy as np

        rows = [self.entries[place].vectors for place in places]
        assert all(row is not None for row in rows)
        lengths = [len(row) for row in rows if row is not None]
        if not sum(lengths):
            return [() for _ in rows]
        flat = np.einsum("ij,j->i", np.concatenate([row for row in rows if row is not None]), vector)
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
    """Makes an `Index` of a catalogue, out of what is left of the last one."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._last: tuple[Catalogue, Index] | None = None

    def of(self, catalogue: Catalogue) -> Index:
        last = self._last
        if last is not None and (last[0] is catalogue or _same(last[0], catalogue)):
            return last[1]
        self._last = (catalogue, Index(list(catalogue), self._entries))
        return self._last[1]


def _same(one: Catalogue, other: Catalogue) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
