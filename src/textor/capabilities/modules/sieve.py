"""Stands between the wire and the SDK, which refuses a whole list of tools for one that is impossible.

What the module listed is kept here as it came; the SDK sees the tools without output schemas (it
would throw a result away that does not fit one; we show it and say so) and without the impossible.
"""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, JSONRPCResponse

from textor.capabilities.modules.tools import impossible


class Sieve:
    """Sees every message of one connection."""

    def __init__(self) -> None:
        self.raw: list[Any] = []  #: of the last whole listing
        self._asked: dict[Any, bool] = {}  #: request id -> whether it began a listing

    def sent(self, message: SessionMessage) -> None:
        request = message.message
        if isinstance(request, JSONRPCRequest) and request.method == "tools/list":
            self._asked[request.id] = not (request.params or {}).get("cursor")

    def received(self, message: SessionMessage | Exception) -> None:
        if not self._asked or isinstance(message, Exception):
            return
        answer = message.message
        if not isinstance(answer, JSONRPCResponse) or answer.id not in self._asked:
            return
        if self._asked.pop(answer.id):
            self.raw = []
        listed = answer.result.get("tools")
        if isinstance(listed, list):
            self.raw += listed
            answer.result["tools"] = [_plain(tool) for tool in listed if not impossible(tool)]


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    """What the SDK needs of a tool: its name, and which arguments go into headers. Its checks of the
    rest would refuse what does no harm, such as `true` as a schema in older protocols."""
    schema = tool["inputSchema"]
    headers = "x-mcp-header" in json.dumps(schema)
    return {"name": tool["name"], "inputSchema": {**(schema if headers else {}), "type": "object"}}


class Receiving:
    """A stream of the SDK that is read through a sieve."""

    def __init__(self, stream: Any, sieve: Sieve) -> None:
        self._stream = stream
        self._sieve = sieve

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        message: SessionMessage | Exception = await self._stream.receive()
        self._sieve.received(message)
        return message

    def __aiter__(self) -> Receiving:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message: SessionMessage | Exception = await self._stream.__anext__()
        self._sieve.received(message)
        return message

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Receiving:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(kind, error, trace)
        return ended


class Sending:
    """The other direction."""

    def __init__(self, stream: Any, sieve: Sieve) -> None:
        self._stream = stream
        self._sieve = sieve

    async def send(self, item: SessionMessage, /) -> None:
        self._sieve.sent(item)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Sending:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(kind, error, trace)
        return ended
