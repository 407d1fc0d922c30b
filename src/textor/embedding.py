"""The port of embedders: texts to vectors. Matching, tool finding and memory use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Vectors = NDArray[numpy.float32]

#: Some models want to know which side of a search a text is on.
Role = Literal["query", "passage"]


class Embedder(Protocol):
    """Turns texts into vectors whose cosines say how near their meanings are.

    Vectors of two models have nothing to do with each other, and nor have thresholds on their
    cosines: whatever is kept of either is kept with the `model_id`.
    """

    @property
    def model_id(self) -> str: ...

    @property
    def dim(self) -> int:
        """The length of a vector."""
        ...

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """One row for each text, float32[len(texts), dim], of length 1 (an empty text may give a
        row of zeros). Blocks; may be called from any thread. Raises `ModelError`."""
        ...
