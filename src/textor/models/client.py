"""The border to the client library: a request goes in, chunks come out, errors are the library's.

`Client` has two implementations: `openai_client` (the OpenAI protocol, whose body we make
ourselves) and `native_client` (Anthropic, Mistral, Groq by their own protocols). Both import the
library, which costs one to two seconds of CPU; so they are imported by `load`, on first use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

import msgspec

from textor.errors import ConfigError
from textor.messages import Chunk, Context, Grammar, Stop
from textor.models.habits import Habits
from textor.models.server import Server


class Request(msgspec.Struct, frozen=True):
    """One request to a server."""

    context: Context
    stop: Stop
    grammar: Grammar | None
    habits: Habits


class Client(Protocol):
    """One model on one server through the client library."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """The chunks of one reply, ending with a `FinishChunk` and, where the server reports it, a
        `UsageChunk` without a price. Closing the iterator closes the connection. No retries."""
        ...

    async def aclose(self) -> None: ...


def load(server: Server) -> Client:
    """A client for `server`. Raises `ConfigError` when its extra is not installed."""
    if server.protocol == "openai":
        from textor.models.openai_client import OpenAIClient

        return OpenAIClient(server)
    from textor.models.native_client import NativeClient

    try:
        return NativeClient(server)
    except ImportError as missing:
        raise ConfigError(
            f"{server.id} needs a package that is not installed ({missing.name or server.protocol}).",
            f'Run: pip install "textor[{server.protocol}]"',
        ) from missing
