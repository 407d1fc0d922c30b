"""`ScriptedModel`: a language model in process that says what it is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field

from textor.errors import ModelError
from textor.messages import (
    NO_STOP,
    CallChunk,
    Chunk,
    Context,
    FinishChunk,
    Grammar,
    ReasoningChunk,
    Stop,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    Usage,
    UsageChunk,
)
from textor.testing.script import Flag, Gate, Reply, pieces

ModelItem = Reply | ModelError | str


@dataclass
class Asked:
    """What a scripted model was asked, and what became of it.

    `hung_up` is set when the consumer closed the iterator before the end; `chunks` counts what
    was yielded until then.
    """

    context: Context
    stop: Stop
    grammar: Grammar | None
    hung_up: Flag = field(default_factory=Flag)
    chunks: int = 0


class ScriptedModel:
    """Implements `textor.models.port.Model` from a script.

    `script` is a list of items, one a generation, or a function from the `Context` to an item. An
    item is a `Reply`, a text, or a `ModelError` to be raised. When the list is used up a
    generation raises `ModelError` and says so. `prices` are US dollars for a million tokens of
    input and output; None: unknown. A token is four characters.
    """

    def __init__(
        self,
        script: Iterable[ModelItem] | Callable[[Context], ModelItem],
        *,
        id: str = "scripted:model",
        window: int = 100_000,
        native_tools: bool = True,
        grammars: bool = True,
        prices: tuple[float, float] | None = (0.0, 0.0),
    ) -> None:
        self._script = script if callable(script) else _in_order(script)
        self._id, self._window = id, window
        self._native_tools, self._grammars = native_tools, grammars
        self._prices = prices
        self.asked: list[Asked] = []  #: every generation, in order

    @property
    def id(self) -> str:
        return self._id

    @property
    def window(self) -> int:
        return self._window

    @property
    def native_tools(self) -> bool:
        return self._native_tools

    @property
    def grammars(self) -> bool:
        return self._grammars

    @property
    def contexts(self) -> list[Context]:
        """What was shown to the model, in order."""
        return [asked.context for asked in self.asked]

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        if self._prices is None:
            return None
        return (input * self._prices[0] + output * self._prices[1]) / 1_000_000

    async def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        asked = Asked(context, stop, grammar)
        self.asked.append(asked)
        item = self._script(context)
        if isinstance(item, ModelError):
            raise item
        reply = Reply(item) if isinstance(item, str) else item
        ended = False
        try:
            for step in self._steps(reply, context, stop):
                if isinstance(step, Gate):
                    await step.passed()
                else:
                    asked.chunks += 1
                    yield step
            ended = True
        except ModelError:
            ended = True
            raise
        finally:
            if not ended:
                asked.hung_up.set()

    def _steps(self, reply: Reply, context: Context, stop: Stop) -> Iterator[Chunk | Gate]:
        for text in pieces(reply.reasoning, reply.chunk):
            yield ReasoningChunk(text)
        reply, stopped = _stopped(reply, stop)
        for piece in reply.text_pieces():
            if piece is None:
                raise ModelError("The scripted reply broke off.", fault="cut")
            yield piece if isinstance(piece, Gate) else TextChunk(piece)
        for index, call in enumerate(() if stopped else reply.calls):
            yield CallChunk(index, call.id or f"call_{len(self.asked)}_{index + 1}", call.name)
            for text in pieces(call.text, reply.chunk):
                yield CallChunk(index, arguments=text)
        if reply.usage_sent:
            yield UsageChunk(self._used(reply, context))
        yield FinishChunk("stop" if stopped else reply.reason or "stop")

    def _used(self, reply: Reply, context: Context) -> Usage:
        if reply.usage is not None:
            return reply.usage
        read = sum(self._size(part) for message in context.messages for part in message.parts)
        written = self.count(reply.reasoning + reply.text + "".join(c.name + c.text for c in reply.calls))
        return Usage(read, written, cost=self.price(read, written))

    def _size(self, part: object) -> int:
        if isinstance(part, Text | ToolResult):
            return self.count(part.text)
        return self.count(part.arguments) if isinstance(part, ToolCall) else 0


def _stopped(reply: Reply, stop: Stop) -> tuple[Reply, bool]:
    """`reply` up to and with the first stop string, and whether there was one."""
    ends = [at + len(s) for s in stop.sequences if (at := reply.text.find(s)) >= 0]
    if not ends:
        return reply, False
    cut = None if reply.cut is None or reply.cut >= min(ends) else reply.cut
    kept = reply.text[: min(ends)]
    return Reply(kept, "", (), reply.chunk, reply.gates, cut, "stop", reply.usage, reply.usage_sent), True


def _in_order(items: Iterable[ModelItem]) -> Callable[[Context], ModelItem]:
    left = iter(items)
    asked = 0

    def following(context: Context) -> ModelItem:
        nonlocal asked
        asked += 1
        for item in left:
            return item
        return ModelError(f"The script of this model has no reply for generation {asked}.", fault="refused")

    return following
