"""Free lines against many capabilities, without keeping anybody waiting for vectors.

To embed a capability costs some 20 ms of CPU, to compare a line with ten thousand of them less. So a
catalogue with much that is new is embedded in the background, and until that is done its lines are
compiled by their words alone.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from textor.actions import Catalogue
from textor.dialects.matching import Compiled, Matcher
from textor.dialects.matching.index import Indexes
from textor.embedding import Embedder
from textor.errors import TextorError

log = logging.getLogger("textor.broker")

#: So many new capabilities are embedded while the line waits.
AT_ONCE = 32
_ANY = "compare any line with all that is there"


class Compiler:
    """Compiles lines (`kernel.services.Compile`). `embedder` None: by words alone."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.embedder = embedder
        views = Indexes()
        self._meaning = Matcher(embedder, indexes=views) if embedder is not None else None
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
        new = sum(id(each) not in self._embedded for each in catalogue)
        if new > AT_ONCE:
            compiled = self._words.compile_now(lines, catalogue)
            self.prepare(catalogue)
            return compiled
        try:
            compiled = self._meaning.compile_now(lines, catalogue)
        except TextorError as error:
            return self._without(error).compile_now(lines, catalogue)
        self._note(catalogue)
        return compiled

    def prepare(self, catalogue: Catalogue) -> threading.Thread | None:
        """Embed what is new of a catalogue in the background; one at a time."""
        if self._meaning is None or (self._preparing is not None and self._preparing.is_alive()):
            return self._preparing
        # No task of the loop: at the end of the program nobody should wait for it.
        self._preparing = threading.Thread(target=self._prepare, args=(catalogue,), daemon=True)
        self._preparing.start()
        return self._preparing

    def _prepare(self, catalogue: Catalogue) -> None:
        assert self._meaning is not None
        self._words.compile_now([_ANY], catalogue)  # makes the views, which both use
        try:
            self._meaning.compile_now([_ANY], catalogue)
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


def _give_back() -> None:
    """Hand what the embedding of thousands of texts left free back to the system, where glibc can:
    it would keep twice the size of the vectors for ever."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
