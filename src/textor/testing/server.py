"""`ScriptedServer`: a real HTTP server that speaks the OpenAI protocol and says what it is told.

It runs in a thread of its own on a free port of this machine, so clients meet real sockets: real
streaming, real cuts, real hang-ups. It has no clock; a test that needs "later" puts a `Gate` into
the reply.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from textor.testing.http import Connection
from textor.testing.script import Call, Flag, Gate, Reply, pieces


@dataclass(frozen=True)
class Status:
    """An error in place of a reply: an HTTP status with the body that such servers send."""

    code: int
    message: str = "scripted fault"
    retry_after: str = ""  #: the header `Retry-After`, verbatim; empty: not sent
    kind: str = ""  #: `error.type` in the body
    error_code: str = ""  #: `error.code` in the body
    body: bytes | None = None  #: instead of the usual body


@dataclass(frozen=True)
class Raw:
    """A stream given byte for byte; `sse` makes its usual pieces. `cut`: the connection breaks at
    the end, else the response ends properly."""

    pieces: tuple[bytes | Gate, ...]
    cut: bool = False


Item = Reply | Status | Raw | str


@dataclass
class Request:
    """What the server was asked. `hung_up` is set when the client left before the answer's end;
    `sent` counts the pieces of the answer that were written until then."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    hung_up: Flag = field(default_factory=Flag)
    answered: Flag = field(default_factory=Flag)
    sent: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a chat request."""
        found: list[dict[str, Any]] = self.json["messages"]
        return found


def sse(delta: dict[str, Any] | None = None, finish: str | None = None, **top: Any) -> bytes:
    """One event of a chat stream. `delta` None makes a chunk without choices (as for usage)."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    chunk = {"id": "scripted", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return b"data: " + json.dumps({**chunk, "choices": choices, **top}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


class ScriptedServer:
    """An OpenAI-compatible server with a script.

    `script` is a list of items, one a chat request (the last is not repeated: a request too many
    gets status 400 and says so), or a function from the `Request` to an item. An item is a
    `Reply`, a text, a `Status` or a `Raw` stream. `GET /v1/models` lists `models`. Another protocol
    is spoken by `Raw` items: requests to ".../messages" (Anthropic's) are asked of the script too.
    Use it as a context manager; `url` is the address for clients ("http://127.0.0.1:PORT/v1").
    """

    def __init__(
        self,
        script: Iterable[Item] | Callable[[Request], Item] = (),
        *,
        models: Iterable[str] = ("scripted",),
        port: int = 0,
    ) -> None:
        self._script = script if callable(script) else _in_order(script)
        self._models = tuple(models)
        self._port = port
        self._socket = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.requests: list[Request] = []  #: the chat requests, in the order of their arrival
        self.others: list[Request] = []  #: all other requests

    def listen_at(self, socket: str) -> None:
        """Listen at a unix socket as well, for those who have no network. Said before it begins."""
        self._socket = socket

    # -- life ------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        ready = Flag()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="scripted-server", daemon=True)
        self._thread.start()
        ready.wait_blocking()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def _run(self, ready: Flag) -> None:
        asyncio.run(self._serve(ready))

    async def _serve(self, ready: Flag) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        connections: set[Connection] = set()
        server = await self._loop.create_server(
            lambda: Connection(self._answer, connections), "127.0.0.1", self._port
        )
        self._port = server.sockets[0].getsockname()[1]
        servers = [server]
        if self._socket:
            servers.append(
                await self._loop.create_unix_server(
                    lambda: Connection(self._answer, connections), self._socket
                )
            )
        ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        for connection in tuple(connections):
            await connection.abort()

    # -- answers ---------------------------------------------------------------------------

    async def _answer(self, connection: Connection, request: Request) -> None:
        path = request.path.split("?")[0].rstrip("/")
        if path.endswith(("/chat/completions", "/messages")) and request.method == "POST":
            self.requests.append(request)
            await self._chat(connection, request)
            return
        self.others.append(request)
        if path.endswith("/models") and request.method == "GET":
            data = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in self._models]
            connection.respond(200, json.dumps({"object": "list", "data": data}).encode())
        else:
            unknown = Status(404, f"There is no {request.method} {request.path} here.")
            connection.respond(404, _error_body(unknown))

    async def _chat(self, connection: Connection, request: Request) -> None:
        try:
            item = self._script(request)
        except Exception as error:  # the script is the test's: what it raises reaches the client
            item = Status(400, f"{type(error).__name__}: {error}")
        if isinstance(item, Status):
            headers = {"retry-after": item.retry_after} if item.retry_after else {}
            connection.respond(item.code, item.body if item.body is not None else _error_body(item), headers)
            return
        if isinstance(item, str):
            item = Reply(item)
        asked = request.json
        if isinstance(item, Reply) and not asked.get("stream"):
            await _whole(connection, request, item)
            return
        script = item.pieces if isinstance(item, Raw) else _stream(item, asked)
        cut = item.cut if isinstance(item, Raw) else item.cut is not None
        connection.start_stream()
        for piece in script:
            if isinstance(piece, Gate):
                connection.flush()
                await piece.passed()
            else:
                connection.write_piece(piece)
                request.sent += 1
        if cut:
            await connection.abort()
        else:
            connection.end_stream()


def _in_order(items: Iterable[Item]) -> Callable[[Request], Item]:
    left = iter(items)
    asked = 0

    def following(request: Request) -> Item:
        nonlocal asked
        asked += 1
        for item in left:
            return item
        raise LookupError(f"The script of this server has no reply for request {asked}.")

    return following


def _error_body(status: Status) -> bytes:
    error = {"message": status.message, "type": status.kind or "scripted", "code": status.error_code or None}
    return json.dumps({"error": error}).encode()


def _usage_of(reply: Reply, asked: dict[str, Any]) -> dict[str, Any]:
    if reply.usage is None:
        prompt = len(json.dumps(asked["messages"])) // 4
        calls = sum(len(call.text) + len(call.name) for call in reply.calls)
        written = (len(reply.text) + len(reply.reasoning) + calls) // 4
        return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
    used = reply.usage
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.total,
        "prompt_tokens_details": {"cached_tokens": used.cached},
    }


def _stopped(reply: Reply, asked: dict[str, Any]) -> Reply:
    """`reply` as a server sends it that was given stop strings: cut before the first of them."""
    stops = asked.get("stop") or []
    ends = [reply.text.find(s) for s in ([stops] if isinstance(stops, str) else stops)]
    found = [end for end in ends if end >= 0]
    if not found or (reply.cut is not None and reply.cut <= min(found)):
        return reply
    return Reply(reply.text[: min(found)], reply.reasoning, (), reply.chunk, reply.gates, usage=reply.usage)


def _stream(reply: Reply, asked: dict[str, Any]) -> Iterator[bytes | Gate]:
    reply = _stopped(reply, asked)
    yield sse({"role": "assistant", "content": ""})
    for text in pieces(reply.reasoning, reply.chunk):
        yield sse({"reasoning_content": text})
    for piece in reply.text_pieces():
        if piece is None:
            return
        yield piece if isinstance(piece, Gate) else sse({"content": piece})
    for index, call in enumerate(reply.calls):
        head = {"name": call.name, "arguments": ""}
        first = {"index": index, "id": _id(call, index), "type": "function", "function": head}
        yield sse({"tool_calls": [first]})
        for text in pieces(call.text, reply.chunk):
            yield sse({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    if reply.reason is not None:
        yield sse({}, reply.reason)
    if reply.usage_sent and (asked.get("stream_options") or {}).get("include_usage"):
        yield sse(None, usage=_usage_of(reply, asked))
    yield DONE


def _id(call: Call, index: int) -> str:
    return call.id or f"call_{index + 1}"


async def _whole(connection: Connection, request: Request, reply: Reply) -> None:
    """The answer to a request that does not stream."""
    asked = request.json
    reply = _stopped(reply, asked)
    for piece in reply.text_pieces():
        if isinstance(piece, Gate):
            await piece.passed()
        elif piece is None:
            await connection.abort()
            return
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": _id(c, i), "type": "function", "function": {"name": c.name, "arguments": c.text}}
            for i, c in enumerate(reply.calls)
        ]
    body = {
        "id": "scripted",
        "object": "chat.completion",
        "created": 1,
        "model": asked.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.reason}],
    }
    if reply.usage_sent:
        body["usage"] = _usage_of(reply, asked)
    connection.respond(200, json.dumps(body).encode())
