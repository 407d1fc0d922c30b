"""A small client for the tests: plain requests whose every header can be chosen, and frames."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from server_parts import TOKEN
from websockets.asyncio.client import ClientConnection, connect


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


async def ask(address: str, path: str, body: Any = None, **headers: str) -> Answer:
    """GET, or POST where there is a body (bytes as they are, anything else as JSON). The token is
    sent unless `authorization` is given; "" sends none."""
    return await asyncio.to_thread(_ask, address, path, body, headers)


def _ask(address: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
    sent = {"authorization": f"Bearer {TOKEN}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    method = sent.pop("method", "GET" if body is None else "POST")
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request(method, path, content, {k: v for k, v in sent.items() if v})
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, told, answer.read().decode("utf-8", "replace"))
    finally:
        connection.close()


class Tab:
    """The WebSocket of a tab. `items` are what came, one by one, whatever the frames were."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames = 0
        self._left: list[dict[str, Any]] = []

    async def say(self, session: str, after: int = 0, **more: Any) -> None:
        await self.socket.send(json.dumps({"session": session, "after": after, **more}))

    async def next(self) -> dict[str, Any]:
        while not self._left:
            frame = json.loads(await asyncio.wait_for(self.socket.recv(), 20))
            self.frames += 1
            self._left = frame if isinstance(frame, list) else [frame]
        return self._left.pop(0)

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """The items up to and with the first event of this kind."""
        seen = []
        while True:
            seen.append(await self.next())
            if seen[-1].get("event", {}).get("kind") == kind:
                return seen


@asynccontextmanager
async def tab(address: str, session: str = "", after: int = 0, token: str = TOKEN) -> AsyncIterator[Tab]:
    async with connect(address.replace("http", "ws", 1) + "/api/stream", max_size=None) as socket:
        opened = Tab(socket)
        await opened.say(session, after, token=token)
        yield opened
