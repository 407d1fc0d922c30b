"""The client and the port, on the real engine, and on a socket where nobody speaks as one should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.containers.client import Client, EngineError, EngineGone, Missing, frames
from textor.containers.engine import Engine, Spec, find_engine, output_of

from .conftest import BUSYBOX


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12),
    st.lists(st.integers(1, 30), max_size=60),
)
def test_frames_do_not_depend_on_how_they_are_cut(sent: list[tuple[int, bytes]], cuts: list[int]) -> None:
    wire = b"".join(bytes([n, 0, 0, 0]) + len(d).to_bytes(4, "big") + d for n, d in sent)

    async def pieces() -> AsyncIterator[bytes]:
        at = 0
        for size in cuts:
            yield wire[at : at + size]
            at += size
        yield wire[at:]

    async def read() -> list[tuple[int, bytes]]:
        return [frame async for frame in frames(pieces())]

    assert asyncio.run(read()) == sent


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"junk\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_an_engine_that_breaks_off_is_gone(tmp_path: Path, answer: bytes) -> None:
    async def ask() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_unix_server(serve, tmp_path / "s")
        async with server:
            await Client(f"unix://{tmp_path}/s").call("GET", "/version")

    with pytest.raises(EngineGone, match="container engine"):
        asyncio.run(ask())


def test_an_engine_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    async def ask() -> None:
        over = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await over.wait()
            writer.close()

        server = await asyncio.start_unix_server(serve, tmp_path / "s")
        async with server:
            try:
                await Client(f"unix://{tmp_path}/s", patience=0.05).call("GET", "/version")
            finally:
                over.set()

    with pytest.raises(EngineGone, match=r"did not answer in 0\.05 s"):
        asyncio.run(ask())


def test_without_an_engine_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineGone, match=r"does not answer.*Is it running\?"):
        asyncio.run(Engine(f"unix://{tmp_path}/none").info())
    environment = {"DOCKER_HOST": f"unix://{tmp_path}/none"}
    # what the machine has besides is found all the same
    found = asyncio.run(find_engine(environment))
    assert found is None or found.address != environment["DOCKER_HOST"]


def test_what_is_not_there_is_told(engine: Engine) -> None:
    async def ask() -> None:
        assert not await engine.has_image("textor/none:test")
        await engine.remove("textor-none")  # nothing to do
        await engine.kill("textor-none")
        with pytest.raises(Missing, match=r"(?i)no such container"):
            await engine.inspect("textor-none")
        with pytest.raises(EngineError, match="refused"):
            await engine.create(Spec("textor-test-bad name", BUSYBOX))
        with pytest.raises(EngineError, match=r"cannot be fetched|refused"):
            await engine.pull("textor/none:test")

    asyncio.run(ask())


def test_bytes_go_through_as_they_are(engine: Engine) -> None:
    content = bytes(range(256)) * 2000

    async def through() -> tuple[bytes, int]:
        id = await engine.create(Spec("textor-test-cat", BUSYBOX, ["cat"], stdin="once"))
        try:
            stream = await engine.attach(id, stdin=True)
            await engine.start(id)

            async def send() -> None:
                await stream.send(content)
                stream.end_input()

            sending = asyncio.create_task(send())
            received = b"".join([data async for _, data in output_of(stream)])
            await sending
            stream.close()
            return received, await engine.wait(id)
        finally:
            await engine.remove(id)

    assert asyncio.run(through()) == (content, 0)
