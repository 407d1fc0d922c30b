"""The processor `typed:lines`: it answers with the message itself.

A line that a person wrote or accepted is carried out on the road of every other action (parser,
gate, journal): its agent has this for a model, so that its reply is the line, letter by letter.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from textor.messages import NO_STOP, Chunk, Context, FinishChunk, Grammar, Stop, TextChunk, Usage, UsageChunk

ID = "typed:lines"


class Typed:
    """See `textor.models.port.Model`. It costs nothing and uses no tokens."""

    id = ID
    window = 1_000_000
    native_tools = False
    grammars = False

    async def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        yield TextChunk(next((m.text for m in reversed(context.messages) if m.role == "user"), ""))
        yield UsageChunk(Usage(cost=0.0))
        yield FinishChunk("stop")

    def count(self, text: str) -> int:
        return 0

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        return 0.0
