"""A connection of the model in the box that breaks is no end: it may just have been idle too long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textor.messages import Context, TextChunk, said
from textor.models.box import BoxModel, BoxServer
from textor.models.server import Server
from textor.testing import Raw, ScriptedServer


class Elsewhere(BoxServer):
    """A process that lives on, with this address."""

    def __init__(self, url: str) -> None:
        super().__init__(Path("none"))
        self._address = Server("embedded", "scripted", url)

    @property
    def running(self) -> Server | None:
        return self._address

    def ended(self, within: float = 1.0) -> bool:
        return False


def test_a_connection_that_breaks_is_taken_up_once_more() -> None:
    async def reply(url: str) -> str:
        model = BoxModel(server=Elsewhere(url))
        chunks = [chunk async for chunk in model.generate(Context((said("user", "Hello"),)))]
        await model.close()
        return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))

    with ScriptedServer([Raw((), cut=True), "Here."]) as server:
        assert asyncio.run(reply(server.url)) == "Here."
        assert len(server.requests) == 2
