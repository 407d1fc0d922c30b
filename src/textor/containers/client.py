"""HTTP as container engines speak it, over their unix socket (or plain TCP), streams included.

Small on purpose: the server is one known local program, every request has a connection of its own,
and what a general client lacks (closing only our side of an attached stream, which a program reads
as the end of its input) is here. Docker and Podman answer to the same paths
(https://docs.docker.com/reference/api/engine/).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from textor.errors import TextorError
from textor.values import Json

#: Largest piece that is read at once, in bytes.
PIECE = 1 << 16


class EngineError(TextorError):
    """A container engine refused; `status` is that of HTTP, 0 when it did not answer at all."""

    def __init__(self, message: str, hint: str = "", *, status: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status


class EngineGone(EngineError):
    """The engine does not answer: not installed, stopped, or stopped in the middle of an answer."""


class Missing(EngineError):
    """The engine knows no such container, image or process (404)."""


@dataclass
class Head:
    """The status and the headers of an answer; names in lower case."""

    status: int
    headers: dict[str, str]


@dataclass
class Stream:
    """An open answer. `pieces` gives its body as it comes; `writer` is the way to the other side."""

    head: Head
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body until its end. `EngineGone` when the connection breaks before that."""
        try:
            async for piece in _body(self.head, self.reader):
                yield piece
        except (OSError, EOFError, ValueError) as error:  # IncompleteReadError is an EOFError
            raise EngineGone(f"The container engine broke off its answer ({error or 'end'}).") from None

    async def send(self, data: bytes) -> None:
        """Write to an attached program. `EngineGone` when the connection is broken."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError as error:
            raise EngineGone(f"The container engine takes no more input ({error}).") from None

    def end_input(self) -> None:
        """Close our side only: the program reads the end of its input and can still answer."""
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.write_eof()

    def close(self) -> None:
        self.writer.close()


class Client:
    """Requests to one engine. `address` is `unix:///…` or `tcp://host:port`."""

    def __init__(self, address: str, *, patience: float = 30.0) -> None:
        self.address = address
        self.patience = patience  #: seconds until an answer must have begun

    async def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Json] | None = None,
        body: Json = None,
        *,
        patience: float | None = 0.0,
    ) -> Json:
        """One request; the answer as JSON, None when it has no body.

        `patience` None waits for ever. Raises `EngineError`, `Missing`, `EngineGone`.
        """
        wait = self.patience if patience == 0.0 else patience
        try:
            async with asyncio.timeout(wait):
                stream = await self.open(method, path, query, body, patience=None)
                try:
                    content = b"".join([piece async for piece in stream.pieces()])
                finally:
                    stream.close()
        except TimeoutError:
            raise self._silent(wait) from None
        return _json(content)

    async def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Json] | None = None,
        body: Json = None,
        *,
        upgrade: bool = False,
        patience: float | None = 0.0,
    ) -> Stream:
        """One request whose answer is read by the caller, who closes it. `upgrade` asks for the bare
        connection, as attaching needs. Raises as `call` does."""
        wait = self.patience if patience == 0.0 else patience
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(wait):
                reader, writer = await self._connect()
                writer.write(_request(method, path, query, body, upgrade))
                await writer.drain()
                head = await _head(reader)
                stream = Stream(head, reader, writer)
                if head.status >= 400:
                    content = b"".join([piece async for piece in stream.pieces()])
                    raise _refusal(head.status, content)
                return stream
        except TimeoutError:
            fault: EngineError = self._silent(wait)
        except (OSError, EOFError, ValueError) as error:
            fault = EngineGone(
                f"The container engine at {self.address} does not answer ({error or 'no answer'}).",
                "Is it running? (`textor doctor` says which engines there are.)",
            )
        except BaseException:
            if writer is not None:
                writer.close()
            raise
        if writer is not None:
            writer.close()
        raise fault

    def _silent(self, seconds: float | None) -> EngineGone:
        return EngineGone(f"The container engine at {self.address} did not answer in {seconds:g} s.")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        scheme, _, rest = self.address.partition("://")
        if scheme == "unix":
            return await asyncio.open_unix_connection(rest, limit=1 << 20)
        host, _, port = rest.rstrip("/").rpartition(":")
        return await asyncio.open_connection(host, int(port), limit=1 << 20)


def _request(method: str, path: str, query: Mapping[str, Json] | None, body: Json, upgrade: bool) -> bytes:
    target = quote(path) + (f"?{urlencode({k: _word(v) for k, v in query.items()})}" if query else "")
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
    lines = [f"{method} {target} HTTP/1.1", "Host: engine", f"Content-Length: {len(content)}"]
    if body is not None:
        lines.append(f"Content-Type: {kind}")
    lines += ["Connection: Upgrade", "Upgrade: tcp"] if upgrade else ["Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode() + content


def _word(value: Json) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return value if isinstance(value, str) else json.dumps(value)


async def _head(reader: asyncio.StreamReader) -> Head:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    words = lines[0].split(" ", 2)
    if len(words) < 2 or not words[1].isdecimal():
        raise ValueError(f"{lines[0]!r:.80} is no HTTP")
    return Head(int(words[1]), headers)


async def _body(head: Head, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    if head.status in (204, 304):
        return
    if "chunked" in head.headers.get("transfer-encoding", ""):
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        return
    left = int(head.headers.get("content-length", -1)) if head.status != 101 else -1
    while left and (piece := await reader.read(PIECE if left < 0 else min(PIECE, left))):
        left -= len(piece) if left > 0 else 0
        yield piece
    if left > 0:
        raise EOFError("in the middle of an answer")


def _json(content: bytes) -> Json:
    if not content.strip():
        return None
    try:
        return json.loads(content)
    except ValueError:  # several JSON lines (progress) or plain text ("OK")
        return content.decode("utf-8", "replace")


def _refusal(status: int, content: bytes) -> EngineError:
    told = _json(content)
    message = told.get("message", "") if isinstance(told, dict) else str(told or "")
    sentence = f"The container engine refused: {message.strip() or f'status {status}'}"
    kind = Missing if status == 404 else EngineError
    return kind(sentence.rstrip(".") + ".", status=status)


async def frames(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """(1 for stdout or 2 for stderr, data) from an attached stream or a log.

    Each frame has a head of eight bytes: the stream, three zeros, the length (big endian).
    """
    pending = bytearray()
    async for piece in pieces:
        pending += piece
        start = 0
        while len(pending) - start >= 8:
            end = start + 8 + int.from_bytes(pending[start + 4 : start + 8], "big")
            if end > len(pending):
                break
            yield pending[start], bytes(pending[start + 8 : end])
            start = end
        del pending[:start]
