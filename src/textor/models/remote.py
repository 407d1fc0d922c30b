"""`RemoteModel`: a model on a server, as the kernel sees it.

Around the client library's one request stand here: the retries (shown as `WaitChunk`s), what is
learned of a server's manners, stop strings, and the count of tokens where the server gives none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from textor.errors import ModelError, TextorError
from textor.messages import (
    NO_STOP,
    CallChunk,
    Chunk,
    Context,
    FinishChunk,
    Grammar,
    Message,
    ProgressChunk,
    ReasoningChunk,
    Stop,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    Usage,
    UsageChunk,
    WaitChunk,
)
from textor.models.client import Client, Request, load
from textor.models.habits import estimate, habits_of
from textor.models.media import as_taken, media_of
from textor.models.pricing import listed_window, price_of
from textor.models.retry import Retry
from textor.models.server import Server
from textor.models.stops import Stops
from textor.models.wire import later_system


class RemoteModel:
    """One model on one server; implements `textor.models.port.Model`.

    It may be shared by any number of agents and used in any event loop; `aclose` lets its
    connections go.
    """

    def __init__(self, server: Server, *, retry: Retry | None = None) -> None:
        self.server = server
        self._retry = retry or Retry()
        self._habits = habits_of(server)
        self._client: Client | None = None
        self._window = server.context_window

    @property
    def id(self) -> str:
        return self.server.id

    @property
    def window(self) -> int:
        if self._window is None:
            self._window = listed_window(self.server) or self.server.assumed_window
        return self._window

    @property
    def native_tools(self) -> bool:
        return self.server.native_tools

    @property
    def grammars(self) -> bool:
        return self.server.gbnf or (self.server.json_schema and self.server.protocol == "openai")

    def count(self, text: str) -> int:
        return self._habits.tokens(estimate(text))

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        return price_of(self.server, input, output, cached)

    def estimated_usage(self, context: Context, written: str) -> Usage:
        """What a generation probably used that was hung up on: the server reports nothing then.

        `written` is all that had come: text, reasoning, calls.
        """
        used = Usage(self._habits.tokens(_size(context)), self.count(written), estimated=True)
        return self._priced(used)

    async def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        failed = 0
        while True:
            shown = as_taken(context, self.server.media, self._habits.refused)
            attempt = _Attempt(self, Request(shown, stop, grammar, self._habits))
            try:
                async with aclosing(attempt.run()) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except ModelError as fault:
                if notice := self._learned(fault, context):
                    yield ProgressChunk(notice)
                    if attempt.begun:
                        yield WaitChunk(notice, 0.0)
                    continue
                failed += 1
                seconds = self._retry.wait(fault, failed)
                if seconds is None:
                    raise _last(fault, failed) from fault.__cause__
                yield WaitChunk(fault.message, seconds)
            await self._retry.sleep(seconds)

    async def aclose(self) -> None:
        """Close the connections that are kept open."""
        if self._client is not None:
            await self._client.aclose()

    async def _loaded(self) -> Client:
        if self._client is None:
            # In a thread: the import takes a second, in which the loop has other things to do.
            self._client = await asyncio.to_thread(load, self.server)
        return self._client

    def _learned(self, fault: ModelError, context: Context) -> str:
        """What will be done differently after a refusal, for a person; "" for nothing (case S1)."""
        if fault.fault not in ("refused", "server") or fault.status is None:
            return ""
        change = self._habits.learn_from(fault.message, later_system(context), media_of(context))
        return f"{self.id}: {change}." if change else ""

    def _cut_prompt(self, context: Context, used: Usage) -> str:
        """A sentence when the server has read much less than was sent (case S5), once per window."""
        size = _size(context)
        if self._habits.reported(size, used.input) or self._habits.told_window == used.input:
            return ""
        self._habits.told_window = used.input
        key = f"[providers.{self.server.provider}]"
        ollama = " (Ollama: OLLAMA_CONTEXT_LENGTH)" if self.server.provider == "ollama" else ""
        return (
            f"{self.id} read only {used.input} of about {self._habits.tokens(size)} tokens: its own "
            f"context is smaller than the {self.window} told here, and it cuts the prompt without a word. "
            f"Enlarge it in the server{ollama}, or set `context_window` of {key} to what it has."
        )

    def _priced(self, used: Usage) -> Usage:
        cost = self.price(used.input, used.output, used.cached)
        return Usage(used.input, used.output, used.cached, cost, used.estimated)


class _Attempt:
    """One try of a request."""

    def __init__(self, model: RemoteModel, request: Request) -> None:
        self._model = model
        self._request = request
        self._stops = Stops(request.stop.sequences)
        self._written: list[str] = []
        self.begun = False  #: something was yielded that a retry makes void

    async def run(self) -> AsyncGenerator[Chunk, None]:
        """Yields the chunks of a reply. Raises `ModelError` for everything that goes wrong."""
        client = await self._model._loaded()
        try:
            async with aclosing(client.stream(self._request)) as chunks:
                reported: Usage | None = None
                finish = FinishChunk("stop")
                async for chunk in chunks:
                    if isinstance(chunk, UsageChunk):
                        reported = chunk.usage
                    elif isinstance(chunk, FinishChunk):
                        finish = chunk
                    elif (kept := self._kept(chunk)) is not None:
                        self.begun = True
                        yield kept
                    if self._stops.found:
                        break
        except TextorError:
            raise
        except Exception as error:
            # Any: the library raises its own errors, those of the transport, and, on junk that it did
            # not foresee, whatever Python does.
            from textor.models.faults import model_error

            raise model_error(error, self._model.server, begun=self.begun) from error
        async for chunk in self._end(finish, reported):
            yield chunk

    async def _end(self, finish: FinishChunk, reported: Usage | None) -> AsyncIterator[Chunk]:
        if missing := self._stops.missing(finish.reason):
            yield TextChunk(missing)
        context = self._request.context
        if reported is None:
            used = self._model.estimated_usage(context, "".join(self._written))
        else:
            if notice := self._model._cut_prompt(context, reported):
                yield ProgressChunk(notice)
            used = self._model._priced(reported)
        yield UsageChunk(used)
        yield finish

    def _kept(self, chunk: Chunk) -> Chunk | None:
        """The chunk as it is passed on; text ends with a stop string."""
        if isinstance(chunk, TextChunk):
            text = self._stops.feed(chunk.text)
            self._written.append(text)
            return TextChunk(text) if text else None
        if isinstance(chunk, ReasoningChunk):
            self._written.append(chunk.text)
        elif isinstance(chunk, CallChunk):
            self._written.append(chunk.name + chunk.arguments)
        return chunk


def _size(context: Context) -> float:
    """The estimated tokens of a prompt, uncorrected. Media count as nothing."""
    total = sum(_size_of(message) for message in context.messages)
    for tool in context.tools:
        total += estimate(tool.name + tool.description + repr(tool.parameters))
    return total


def _size_of(message: Message) -> float:
    total = 4.0  # the marks around a message
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            total += estimate(part.text)
        elif isinstance(part, ToolCall):
            total += estimate(part.name) + estimate(part.arguments)
    return total


def _last(fault: ModelError, failed: int) -> ModelError:
    """The fault after which we give up, with the number of tries."""
    if failed < 2:
        return fault
    message = f"{fault.message} (tried {failed} times)"
    return ModelError(
        message, fault.hint, fault=fault.fault, retry_after=fault.retry_after, status=fault.status
    )
