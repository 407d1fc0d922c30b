"""Anthropic, Mistral and Groq by their own protocols, through pydantic-ai and its extras.

Here the library makes the body; so the text of old calls is serialised anew, which these servers
do themselves in any case. System messages after the first go as the user's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from textor.errors import ModelError
from textor.messages import (
    Chunk,
    Context,
    FinishChunk,
    Media,
    Message,
    Reasoning,
    ReasoningChunk,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    Usage,
    UsageChunk,
)
from textor.models.calls import Calls
from textor.models.client import Request
from textor.models.server import Server
from textor.models.wire import content_of
from textor.values import clean_text

#: The library's words for the end of a reply, in ours.
_REASONS = {"tool_call": "tool_calls", "error": "stop", None: ""}


@runtime_checkable
class _Closable(Protocol):
    """The SDKs that can be closed; Mistral's lets its connections go by itself."""

    async def close(self) -> None: ...


class NativeClient:
    """One model on a server that has its own protocol."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._model: Model[Any] = _model_of(server)  # here, so that a missing extra is told at once

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        model, context = self._model_here(), request.context
        parameters = ModelRequestParameters(
            function_tools=[
                ToolDefinition(name=t.name, description=t.description, parameters_json_schema=t.parameters)
                for t in context.tools
            ]
        )
        async with model_request_stream(
            model,
            messages_of(self._server, context),
            model_settings=self._settings(request),
            model_request_parameters=parameters,
        ) as stream:
            try:
                calls = Calls(self._server.id)
                async for event in stream:
                    for chunk in _chunks(event, calls):
                        yield chunk
                for chunk in _end(stream, calls, self._server):
                    yield chunk
            finally:
                await stream.cancel()

    async def aclose(self) -> None:
        client = getattr(self._model, "client", None)
        if isinstance(client, _Closable) and self._loop is asyncio.get_running_loop():
            await client.close()

    def _model_here(self) -> Model[Any]:
        """The model for the running loop: connections that are kept open belong to one loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                self._model = _model_of(self._server)
            self._loop = loop
        return self._model

    def _settings(self, request: Request) -> ModelSettings:
        server, context = self._server, request.context
        settings = ModelSettings(
            request_timeout=server.request_timeout, first_event_timeout=server.first_event_timeout
        )
        if server.args:
            settings["extra_body"] = server.args
        temperature = context.temperature if context.temperature is not None else server.temperature
        if temperature is not None:
            settings["temperature"] = temperature
        if (bound := context.max_tokens or server.max_tokens) is not None:
            settings["max_tokens"] = bound
        if len(request.stop.sequences) == 1:
            settings["stop_sequences"] = list(request.stop.sequences)
        return settings


def _model_of(server: Server) -> Model[Any]:
    """The library's model. Raises `ImportError` when its extra is not installed."""
    if server.protocol == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = AsyncAnthropic(api_key=server.api_key, base_url=server.base_url, max_retries=0)
        return AnthropicModel(server.name, provider=AnthropicProvider(anthropic_client=client))
    if server.protocol == "groq":
        from groq import AsyncGroq
        from pydantic_ai.models.groq import GroqModel
        from pydantic_ai.providers.groq import GroqProvider

        groq = AsyncGroq(api_key=server.api_key, base_url=server.base_url, max_retries=0)
        return GroqModel(server.name, provider=GroqProvider(groq_client=groq))
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    provider = MistralProvider(api_key=server.api_key, base_url=server.base_url)
    return MistralModel(server.name, provider=provider)


def messages_of(server: Server, context: Context) -> list[ModelMessage]:
    """A context in the library's messages: neighbours of one side are one message."""
    found: list[ModelMessage] = []
    leading = True
    for message in context.messages:
        leading = leading and message.role == "system"
        if message.role == "assistant":
            if answer := list(_said(message, server)):
                found.append(ModelResponse(parts=answer))
            continue
        parts = list(_asked(message, leading, context.media))
        if found and isinstance(found[-1], ModelRequest):
            found[-1] = ModelRequest(parts=[*found[-1].parts, *parts])
        elif parts:
            found.append(ModelRequest(parts=parts))
    return found


def _said(message: Message, server: Server) -> Iterator[ModelResponsePart]:
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, Reasoning) and part.signature:
            yield ThinkingPart(part.text, signature=part.signature, provider_name=server.protocol)
        elif isinstance(part, Text):
            texts.append(part.text)
    if text := clean_text("".join(texts)):
        yield TextPart(text)
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield ToolCallPart(part.name, part.arguments, tool_call_id=part.call_id)


def _asked(message: Message, leading: bool, media: dict[str, bytes]) -> Iterator[ModelRequestPart]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield ToolReturnPart(
                tool_name=part.name, content=clean_text(part.text), tool_call_id=part.call_id
            )
    shown = [part for part in message.parts if isinstance(part, Text | Media)]
    if not shown:
        return
    if leading:
        yield SystemPromptPart(clean_text(message.text))
    elif any(isinstance(part, Media) for part in shown):
        yield UserPromptPart(list(_pieces(shown, media)))
    else:
        yield UserPromptPart(clean_text(message.text))


def _pieces(parts: Sequence[Text | Media], media: dict[str, bytes]) -> Iterator[UserContent]:
    for part in parts:
        if isinstance(part, Text):
            yield clean_text(part.text)
            continue
        if part.caption:
            yield clean_text(part.caption)
        yield BinaryContent(content_of(part, media), media_type=part.value.media_type)


def _chunks(event: object, calls: Calls) -> Iterator[Chunk]:
    if isinstance(event, PartStartEvent):
        part = event.part
        if isinstance(part, TextPart) and part.content:
            yield TextChunk(part.content)
        elif isinstance(part, ThinkingPart) and (part.content or part.signature):
            yield ReasoningChunk(part.content, part.signature or "")
        elif isinstance(part, ToolCallPart):
            text = part.args if isinstance(part.args, str) else part.args_as_json_str() if part.args else ""
            yield from calls.feed(event.index, part.tool_call_id, part.tool_name, text)
    elif isinstance(event, PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, TextPartDelta) and delta.content_delta:
            yield TextChunk(delta.content_delta)
        elif isinstance(delta, ThinkingPartDelta):
            yield ReasoningChunk(delta.content_delta or "", delta.signature_delta or "")
        elif isinstance(delta, ToolCallPartDelta) and delta.args_delta is not None:
            if not isinstance(delta.args_delta, str):
                raise ModelError("A function call was replaced in the middle of a reply.", fault="junk")
            yield from calls.feed(event.index, None, None, delta.args_delta)


def _end(stream: StreamedResponse, calls: Calls, server: Server) -> Iterator[Chunk]:
    calls.finish()
    if stream.finish_reason is None:
        raise ModelError(
            f"The reply of {server.id} at {server.base_url} broke off before its end.",
            "Try again.",
            fault="cut",
        )
    yield FinishChunk(_REASONS.get(stream.finish_reason, stream.finish_reason))
    used = stream.usage
    if used.input_tokens or used.output_tokens:
        yield UsageChunk(Usage(used.input_tokens, used.output_tokens, used.cache_read_tokens))
