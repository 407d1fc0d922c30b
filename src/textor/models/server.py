"""`Server`: all that is known of one model on one server before the first request."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

#: How the client library speaks to a server; all but "openai" need an extra of pydantic-ai.
Protocol = Literal["openai", "anthropic", "mistral", "groq"]

#: Where system messages may stand: anywhere, only first, or nowhere (they go as the user's).
SystemRole = Literal["all", "first", "none"]


#: Seconds for a whole request, and until the first piece of the reply: a local model may have to
#: read a long prompt before it says anything.
REQUEST_TIMEOUT = 1800.0
FIRST_EVENT_TIMEOUT = 300.0


#: Kinds of media that the protocols have a form for.
TAKEN = ("image", "audio", "file")


class Prices(msgspec.Struct, frozen=True):
    """US dollars for a million tokens; `cached` None: cached tokens cost what input costs."""

    input: float
    output: float
    cached: float | None = None

    def of(self, input: int, output: int, cached: int = 0) -> float:
        """The price of so many tokens; `cached` of the `input` tokens were read from a cache."""
        fresh, again = max(0, input - cached), min(cached, input)
        cheap = self.input if self.cached is None else self.cached
        return (fresh * self.input + again * cheap + output * self.output) / 1_000_000


FREE = Prices(0.0, 0.0, 0.0)


class Server(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One model on one server.

    `id` is "provider:name"; `base_url` ends where the protocol's paths begin (".../v1").
    `context_window` and `prices` None mean "look them up", and `assumed_window` (tokens) is for a
    model that no list knows; `price_id` is the provider's name in
    the price list, "" when no list knows it. `args` are further fields of the request's body.
    `gbnf`: takes a grammar in the body (llama.cpp). `json_schema`: takes `response_format`.
    `reasoning_field` is the field in which a server wants its reasoning back beside its calls.
    Times are in seconds.
    """

    provider: str
    name: str
    base_url: str
    api_key: str = ""
    protocol: Protocol = "openai"
    context_window: int | None = None
    assumed_window: int = 8_192
    max_tokens: int | None = None
    system_role: SystemRole = "first"
    temperature: float | None = None
    native_tools: bool = True
    json_schema: bool = True
    gbnf: bool = False
    completion_tokens: bool = False  #: the bound is called `max_completion_tokens` (OpenAI)
    reasoning_field: str = ""
    media: tuple[str, ...] = TAKEN  #: kinds of media that are sent; of others a note
    args: dict[str, Any] = {}
    request_timeout: float = REQUEST_TIMEOUT
    first_event_timeout: float = FIRST_EVENT_TIMEOUT
    prices: Prices | None = None
    price_id: str = ""

    @property
    def id(self) -> str:
        return f"{self.provider}:{self.name}"

    @property
    def local(self) -> bool:
        """Whether the address is this machine's."""
        host = urlsplit(self.base_url).hostname or ""
        return host in ("localhost", "::1") or host.startswith("127.")

    def __repr__(self) -> str:  # so that a log or a traceback holds no key
        return f"Server({self.id!r}, {self.base_url!r})"
