"""A module at an address: the SDK's streamable HTTP, over a client that tells what never left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED

from textor.capabilities.modules.calling import CALL
from textor.capabilities.modules.sieve import Receiving, Sending, Sieve

#: Marks an error that this file made up, because the server said nothing.
LOST = "textor: the connection was lost"

#: Seconds to connect or to send. How long an answer may take is the deadline of the call.
PATIENCE = 30.0

_NEVER_LEFT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Client(httpx2.AsyncClient):
    """An unreachable server becomes the error of one message. In the SDK's own client it ends the
    whole connection by cancelling whatever runs inside it."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call = CALL.get() if request.method == "POST" else None
        before = call.sent if call is not None else False
        if call is not None:
            call.sent = True
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            if request.method != "POST":
                raise
            if call is not None and isinstance(error, _NEVER_LEFT):
                call.sent = before
            return _lost(request, f"{request.url} does not answer: {str(error) or type(error).__name__}")
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            # a new process, which knows nothing of us and so has done nothing either
            await response.aclose()
            if call is not None:
                call.sent = before
            return _lost(request, f"{request.url} has forgotten our session.")
        return response


def _lost(request: httpx2.Request, message: str) -> httpx2.Response:
    told = {"code": CONNECTION_CLOSED, "message": message, "data": LOST}
    return httpx2.Response(503, json={"jsonrpc": "2.0", "id": 0, "error": told}, request=request)


@asynccontextmanager
async def reaching(
    address: str, headers: Mapping[str, str], auth: httpx2.Auth | None, sieve: Sieve
) -> AsyncIterator[tuple[Receiving, Sending]]:
    """A transport of the SDK to `address`."""
    timeout = httpx2.Timeout(PATIENCE, read=None)
    async with (
        Client(headers=dict(headers), timeout=timeout, auth=auth) as client,
        streamable_http_client(address, http_client=client) as (incoming, outgoing),
    ):
        yield Receiving(incoming, sieve), Sending(outgoing, sieve)
