"""The OpenAI protocol through pydantic-ai's low level (`pydantic_ai.direct`), for any such server.

The library gives the transport, its deadlines, its errors and the closing of the connection. Two
things are taken out of its hands: the body of the request (see `wire`), which goes along as
`extra_body`, so that the text stays exact and is not walked through twice (that walk was four
fifths of the CPU of a long dialogue); and the reading of the deltas, so that no blank is dropped
and no function call is guessed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from functools import cache
from typing import cast

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk, chat_completion_chunk
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings, OpenAIStreamedResponse
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.usage import RequestUsage

from textor.messages import Chunk, FinishChunk, ReasoningChunk, TextChunk, Usage, UsageChunk
from textor.models.calls import Calls
from textor.models.client import Request
from textor.models.server import Server
from textor.models.thinking import Thinking
from textor.models.wire import body_of

#: The messages are in the body; what stands here would be walked through by the library for nothing.
_NONE: list[ModelMessage] = []

#: Fields in which servers send reasoning.
_REASONING = ("reasoning_content", "reasoning")


class OpenAIClient:
    """One model on an OpenAI-compatible server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._model: _Model | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        model = self._model_here()
        settings = self._settings(request)
        async with model_request_stream(model, _NONE, model_settings=settings) as stream:
            assert isinstance(stream, _Stream)
            try:
                async for event in stream:
                    # What our `_map_part_delta` yields are chunks and no events.
                    yield cast(Chunk, event)
                for chunk in stream.end():
                    yield chunk
            finally:
                await stream.cancel()

    async def aclose(self) -> None:
        model, self._model = self._model, None
        if model is not None and self._loop is asyncio.get_running_loop():
            await model.client.close()

    def _model_here(self) -> _Model:
        """The model for the running loop: connections that are kept open belong to one loop."""
        loop = asyncio.get_running_loop()
        if self._model is None or self._loop is not loop:
            self._model, self._loop = _Model(self._server), loop
        return self._model

    def _settings(self, request: Request) -> OpenAIChatModelSettings:
        server, context = self._server, request.context
        settings = OpenAIChatModelSettings(
            extra_body=body_of(server, request.habits, context, request.grammar),
            request_timeout=server.request_timeout,
            first_event_timeout=server.first_event_timeout,
        )
        if (temperature := _first(context.temperature, server.temperature)) is not None:
            settings["temperature"] = temperature
        if (bound := _first(context.max_tokens, server.max_tokens)) is not None:
            settings["max_tokens"] = int(bound)
        if len(request.stop.sequences) == 1:  # of several, most servers do not say which it was
            settings["stop_sequences"] = list(request.stop.sequences)
        return settings


def _first(one: float | None, two: float | None) -> float | None:
    return one if one is not None else two


class _Model(OpenAIChatModel):
    """The library's model, with our reader of the stream."""

    def __init__(self, server: Server) -> None:
        self.server = server
        client = openai.AsyncOpenAI(
            base_url=server.base_url,
            api_key=server.api_key or "none",
            max_retries=0,
            http_client=_http_client(server),
        )
        profile = OpenAIModelProfile(
            openai_chat_streaming_requires_finish_reason=True,
            openai_chat_supports_max_completion_tokens=server.completion_tokens,
            # Text goes out and comes back byte for byte.
            may_tokenize_special_tokens_in_content=False,
        )
        provider = OpenAICompatibleProvider(server.provider, openai_client=client)
        super().__init__(server.name, provider=provider, profile=profile)

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _Stream


def _http_client(server: Server) -> openai.DefaultAsyncHttpxClient:
    """The connections to a server. Certificates are read once for all (50 ms of CPU each time), and
    not at all for a plain address; a redirect would lead away from what was configured."""
    plain = server.base_url.startswith("http://")
    return openai.DefaultAsyncHttpxClient(
        verify=False if plain else _certificates(),
        follow_redirects=False,
        trust_env=not server.local,  # this machine is not reached through a proxy
    )


@cache
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@dataclass
class _Stream(OpenAIStreamedResponse):
    """The library's stream; `_map_part_delta` is its hook for the content of a chunk."""

    def __post_init__(self) -> None:
        self._calls = Calls(f"{self._provider_name}:{self._model_name}")
        self._thinking = Thinking()
        self._reason = ""
        self._used: Usage | None = None

    def end(self) -> Iterable[Chunk]:
        """What is known when the stream has ended well."""
        yield from self._thinking.end()
        self._calls.finish()
        refusal = (self.provider_details or {}).get("refusal")
        if isinstance(refusal, str):
            yield TextChunk(refusal)
            self._reason = "content_filter"
        yield FinishChunk(self._reason or "stop")
        if self._used is not None:
            yield UsageChunk(self._used)

    def _map_part_delta(self, choice: chat_completion_chunk.Choice) -> Iterable[ModelResponseStreamEvent]:
        return cast(Iterable[ModelResponseStreamEvent], self._chunks(choice))

    def _chunks(self, choice: chat_completion_chunk.Choice) -> Iterable[Chunk]:
        delta = choice.delta
        if choice.finish_reason:
            self._reason = str(choice.finish_reason)
        for field in _REASONING:
            thought = getattr(delta, field, None)
            if isinstance(thought, str) and thought:
                yield ReasoningChunk(thought)
                break
        if text := _text_of(delta.content):
            yield from self._thinking.feed(text)
        for piece in delta.tool_calls or ():
            called = piece.function
            name, arguments = (called.name, called.arguments) if called is not None else (None, None)
            yield from self._calls.feed(piece.index, piece.id, name, arguments)

    def _map_usage(self, response: ChatCompletionChunk) -> RequestUsage:
        """Usage is read here: the library's way through the price list costs more CPU than all else
        in a chunk, and is gone through for every chunk."""
        if (used := response.usage) is not None:
            details = used.prompt_tokens_details
            cached = (details.cached_tokens if details is not None else None) or 0
            self._used = Usage(used.prompt_tokens or 0, used.completion_tokens or 0, cached)
        return RequestUsage()

    def _add_usage(self, usage: RequestUsage, *, reported: bool, cumulative: bool = False) -> None:
        """Nothing: see `_map_usage`."""


def _text_of(content: object) -> str:
    """The text of a delta: a text, or (some servers) a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [p.get("text") for p in content if isinstance(p, dict) and p.get("type") == "text"]
    return "".join(t for t in texts if isinstance(t, str))
