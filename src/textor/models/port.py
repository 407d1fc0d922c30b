"""The port of models: a context goes in, chunks come out, and it can be stopped anywhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from textor.messages import NO_STOP, Chunk, Context, Grammar, Stop


class Model(Protocol):
    """A language model behind any server.

    `id` is "provider:name", `window` the context window in tokens. `native_tools` says whether
    the server takes function declarations, `grammars` whether it can be held to a grammar.
    """

    @property
    def id(self) -> str: ...
    @property
    def window(self) -> int: ...
    @property
    def native_tools(self) -> bool: ...
    @property
    def grammars(self) -> bool: ...

    def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Stream one reply. Closing the iterator closes the connection, so the server stops.

        Ends with a `FinishChunk` (and a `UsageChunk` where the server reports usage). Yields a
        `WaitChunk` before each retry of a transient fault; what came before it is void. Raises
        `ModelError` when no reply can be had.
        """
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`: exact for the model in the box, an estimate elsewhere."""
        ...

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        """US dollars for so many tokens; None where the price is not known."""
        ...
