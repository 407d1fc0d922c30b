"""As much of HTTP/1.1 as a scripted server needs, on one asyncio protocol.

A protocol and not streams, because `connection_lost` tells of a client's hang-up at once, also
while the answer waits at a gate; and because it costs little CPU, so that benchmarks measure the
client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from textor.testing.server import Request

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class Connection(asyncio.Protocol):
    """One client's connection. Calls `answer(connection, request)` for each request in turn."""

    def __init__(
        self, answer: Callable[[Connection, Request], Awaitable[None]], open_ones: set[Connection]
    ) -> None:
        self._answer = answer
        self._open_ones = open_ones
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._streaming = False
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()

    # -- the protocol ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open_ones.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_ones.discard(self)
        self._closed.set()
        if self._request is not None:
            self._request.hung_up.set()
        if self._task is not None:
            self._task.cancel()

    def _next(self) -> None:
        """Start on the next request in the buffer, when the last one is answered."""
        if self._request is not None or (request := self._parse()) is None:
            return
        self._request = request
        self._task = asyncio.create_task(self._run(request))

    async def _run(self, request: Request) -> None:
        await self._answer(self, request)
        self._request = None
        self._task = None
        request.answered.set()
        self._next()

    def _parse(self) -> Request | None:
        from textor.testing.server import Request

        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(self._buffer) < end + 4 + length:
            return None
        method, path, _ = first.split(" ", 2)
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        return Request(method, path, headers, body)

    # -- what an answer uses ---------------------------------------------------------------

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """A whole response, JSON."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Scripted')}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        lines.append(f"content-length: {len(body)}")
        self._transport.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def start_stream(self) -> None:
        """The head of an event stream, in chunked encoding."""
        self._out.append(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )

    def write_piece(self, piece: bytes) -> None:
        self._out.append(b"%x\r\n%b\r\n" % (len(piece), piece))

    def flush(self) -> None:
        """Send what was written. Pieces between two gates leave together: it is the client that is
        to be tested or measured, and it may not depend on where the network cuts."""
        self._transport.write(b"".join(self._out))
        self._out.clear()

    def end_stream(self) -> None:
        self._out.append(b"0\r\n\r\n")
        self.flush()

    async def abort(self) -> None:
        """Break the connection in the middle of the answer; what was written is sent first."""
        if self._out:
            self.flush()
        self._request = None  # it is the server that leaves
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        self._transport.close()
        await self._closed.wait()
