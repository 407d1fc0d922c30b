"""Free lines against many capabilities, without keeping anybody waiting for vectors.

To embed a capability costs some 20 ms of CPU, to compare a line with ten thousand of them less. So a
catalogue with much that is new is embedded in the background. A line waits for that a little, because
vectors that an earlier process made are only read again; then it is compiled by its words alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from textor.actions import Catalogue
from textor.dialects.matching import Compiled, Matcher
from textor.dialects.matching.index import Indexes
from textor.embedding import Embedder, Role
from textor.errors import TextorError

if TYPE_CHECKING:
    from textor.embedding import Vectors

log = logging.getLogger("textor.broker")

#: So many new capabilities are embedded while the line waits: those of the apps in the box, and more.
AT_ONCE = 100
#: Seconds that a line waits for the vectors of more.
PATIENCE = 1.0
PIECE = 32  #: texts that are embedded before the background looks whether it is to end
_ANY = "compare any line with all that is there"


class Compiler:
    """Compiles lines (`kernel.services.Compile`). `embedder` None: by words alone. `patience` are
    the seconds that a line waits for many vectors."""

    def __init__(self, embedder: Embedder | None = None, *, patience: float = PATIENCE) -> None:
        self.embedder = embedder
        self._patience = patience
        self.ended = threading.Event()  #: nothing more is embedded
        views = Indexes()
        pieces = _InPieces(embedder, self.ended) if embedder is not None else None
        self._meaning = Matcher(pieces, indexes=views) if pieces is not None else None
        self._words = Matcher(indexes=views)
        self._embedded: dict[int, object] = {}  #: capabilities that have vectors, by identity
        self._preparing: threading.Thread | None = None

    async def __call__(self, lines: Sequence[str], catalogue: Catalogue) -> Sequence[Compiled]:
        """Each line compiled; in a thread, for the event loop has others to serve."""
        return await asyncio.to_thread(self.compile_now, lines, catalogue)

    def compile_now(self, lines: Sequence[str], catalogue: Catalogue) -> Sequence[Compiled]:
        """The same, where blocking is no harm."""
        if self._meaning is None:
            return self._words.compile_now(lines, catalogue)
        if self._new(catalogue) > AT_ONCE:
            busy = self._preparing is not None and self._preparing.is_alive()
            thread = self.prepare(catalogue)
            if thread is not None and not busy:  # one line waits, and those after it no longer
                thread.join(self._patience)
            if self._meaning is None or self._new(catalogue) > AT_ONCE:
                return self._words.compile_now(lines, catalogue)
        try:
            compiled = self._meaning.compile_now(lines, catalogue)
        except _Ended:
            return self._words.compile_now(lines, catalogue)
        except TextorError as error:
            return self._without(error).compile_now(lines, catalogue)
        self._note(catalogue)
        return compiled

    def _new(self, catalogue: Catalogue) -> int:
        """How many capabilities have no vectors yet."""
        return sum(id(each) not in self._embedded for each in catalogue)

    def close(self) -> None:
        """End what is being embedded: a thread inside the model at the end of the program brings the
        whole process down. Blocks for one piece."""
        self.ended.set()
        if self._preparing is not None:
            self._preparing.join()

    def prepare(self, catalogue: Catalogue) -> threading.Thread | None:
        """Embed what is new of a catalogue in the background; one at a time."""
        if self._meaning is None or (self._preparing is not None and self._preparing.is_alive()):
            return self._preparing
        # No task of the loop: at the end nobody should wait for all of it; see `close`.
        self._preparing = threading.Thread(target=self._prepare, args=(catalogue,), daemon=True)
        self._preparing.start()
        return self._preparing

    def _prepare(self, catalogue: Catalogue) -> None:
        assert self._meaning is not None
        self._words.compile_now([_ANY], catalogue)  # makes the views, which both use
        try:
            self._meaning.compile_now([_ANY], catalogue)
        except _Ended:
            return
        except TextorError as error:
            self._without(error)
        else:
            self._note(catalogue)
            _give_back()

    def _note(self, catalogue: Catalogue) -> None:
        # The objects are kept beside their numbers, so that no other is given the same.
        self._embedded = {id(each): each for each in catalogue}

    def _without(self, error: TextorError) -> Matcher:
        log.warning("lines are compiled by their words alone: %s", error)
        self._meaning = None
        return self._words


class _Ended(Exception):
    """Nobody wants the vectors any more."""


class _InPieces:
    """An embedder that looks between two pieces whether it is to end. Raises `_Ended` then."""

    def __init__(self, embedder: Embedder, ended: threading.Event) -> None:
        self._embedder = embedder
        self._ended = ended

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dim(self) -> int:
        return self._embedder.dim

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        import numpy as np

        made = []
        for start in range(0, max(len(texts), 1), PIECE):
            if self._ended.is_set():
                raise _Ended
            made.append(self._embedder.encode(texts[start : start + PIECE], role))
        return np.concatenate(made)


def _give_back() -> None:
    """Hand what the embedding of thousands of texts left free back to the system, where glibc can:
    it would keep twice the size of the vectors for ever."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
