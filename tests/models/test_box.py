"""The model in the box as it is: its process, its replies, and how they end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from textor.errors import ModelError, UseError
from textor.messages import (
    Chunk,
    Context,
    FinishChunk,
    Grammar,
    ProgressChunk,
    TextChunk,
    Usage,
    UsageChunk,
    WaitChunk,
    said,
)
from textor.models import box_fetch
from textor.models.box import ID, BoxModel, BoxServer, free_cores

pytestmark = [pytest.mark.box, pytest.mark.timeout(300)]

LINE = Grammar(gbnf='root ::= "list files in [" ("." | "src") "]"')


@pytest.fixture(scope="module")
def server() -> Iterator[BoxServer]:
    box_fetch.fetch()
    server = BoxServer()
    yield server
    server.close()


def context(*turns: str, max_tokens: int = 24) -> Context:
    messages = [said("system", "You list files.")]
    messages += [said("assistant" if i % 2 else "user", turn) for i, turn in enumerate(turns)]
    return Context(tuple(messages), max_tokens=max_tokens)


async def reply(model: BoxModel, prompt: Context, grammar: Grammar | None = None) -> list[Chunk]:
    return [chunk async for chunk in model.generate(prompt, grammar=grammar)]


def text_of(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, TextChunk))


def usage_of(chunks: list[Chunk]) -> Usage:
    (chunk,) = (c for c in chunks if isinstance(c, UsageChunk))
    return chunk.usage


def test_a_reply_under_a_grammar_then_one_from_the_cache(server: BoxServer) -> None:
    model = BoxModel(server=server)
    first_turn = "what files are here?"

    async def talk() -> tuple[list[Chunk], list[Chunk]]:
        first = await reply(model, context(first_turn), LINE)
        second = await reply(model, context(first_turn, text_of(first), "and in src?"), LINE)
        return first, second

    estimate = model.count("list files in [.]")
    first, second = asyncio.run(talk())
    assert [c for c in first if isinstance(c, ProgressChunk)] == [
        ProgressChunk("loading the model in the box")
    ]
    assert text_of(first) in ("list files in [.]", "list files in [src]")
    assert isinstance(first[-1], FinishChunk) and first[-1].reason == "stop"
    assert isinstance(second[0], TextChunk)  # it was loaded already
    used, again = usage_of(first), usage_of(second)
    assert used.cost == again.cost == 0.0 and not used.estimated
    # All but the last tokens of the first prompt and reply were in the cache.
    assert again.cached >= used.input
    assert model.count("list files in [.]") == 5 >= estimate  # exact, now that the process runs
    assert model.count("") == 0


def test_the_same_prompt_gives_the_same_text(server: BoxServer) -> None:
    model = BoxModel(server=server)
    one, two = (text_of(asyncio.run(reply(model, context("Hello!")))) for _ in range(2))
    assert one == two != ""


def test_a_reply_is_bounded(server: BoxServer) -> None:
    chunks = asyncio.run(reply(BoxModel(server=server), context("Count to a thousand.", max_tokens=5)))
    assert isinstance(chunks[-1], FinishChunk) and chunks[-1].reason == "length"
    assert usage_of(chunks).output == 5


def test_a_bad_grammar_is_refused_with_a_sentence(server: BoxServer) -> None:
    with pytest.raises(ModelError) as caught:
        asyncio.run(reply(BoxModel(server=server), context("hi"), Grammar(gbnf="root ::= nowhere")))
    assert not caught.value.transient
    assert server.pid is not None


def test_a_stopped_reply_frees_the_process(server: BoxServer) -> None:
    """With one conversation at a time, the next reply can only come if the endless one has ended."""
    alone = BoxServer(conversations=1, threads=1)
    model = BoxModel(server=alone)
    endless = Grammar(gbnf='root ::= "a" root')

    async def talk() -> str:
        async with aclosing(model.generate(context("go", max_tokens=1000), grammar=endless)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    break
        return text_of(await reply(model, context("files?"), LINE))

    try:
        assert asyncio.run(talk()).startswith("list files in [")
    finally:
        alone.close()


def test_a_process_that_died_is_started_again(server: BoxServer) -> None:
    model = BoxModel(server=server)

    async def talk() -> list[Chunk]:
        chunks: list[Chunk] = []
        async for chunk in model.generate(context("Tell a long story.", max_tokens=60)):
            if isinstance(chunk, TextChunk) and not chunks:
                assert server.pid is not None
                os.kill(server.pid, signal.SIGKILL)
            chunks.append(chunk)
        return chunks

    server.start()
    first = server.pid
    chunks = asyncio.run(talk())
    wait = next(i for i, c in enumerate(chunks) if isinstance(c, WaitChunk))
    assert text_of(chunks[wait:])
    assert isinstance(chunks[-1], FinishChunk)
    assert server.pid not in (None, first)


def test_nobody_else_gets_in(server: BoxServer) -> None:
    address = server.start()
    assert address.base_url.startswith("http://127.0.0.1:")
    for path, key, status in (("/models", "", None), ("/chat/completions", "wrong", 401), ("/../", "", None)):
        request = urllib.request.Request(
            address.base_url + path,
            data=b"{}" if "chat" in path else None,
            headers={"Authorization": f"Bearer {key}", "Origin": "http://evil.example"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                headers, code = answer.headers, answer.status
        except urllib.error.HTTPError as error:
            headers, code = error.headers, error.code
        assert headers.get("Access-Control-Allow-Origin") in (None, "")
        assert status is None or code == status
    assert address.api_key not in Path(f"/proc/{server.pid}/cmdline").read_text()


CHILD = """
import sys
from textor.models.box import BoxServer
server = BoxServer()
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_it_dies_with_its_parent(server: BoxServer, end: signal.Signals | None) -> None:
    parent = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None and parent.stdout is not None
    handle = os.pidfd_open(int(parent.stdout.readline()))
    if end is None:
        parent.stdin.close()
    else:
        parent.send_signal(end)
    parent.wait(30)
    import select

    assert select.select([handle], [], [], 30)[0], "the process outlived its parent"
    os.close(handle)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF nonsense")
    with pytest.raises(ModelError, match="did not start") as caught:
        BoxServer(path).start()
    assert not caught.value.transient


def test_threads_and_names() -> None:
    assert 1 <= free_cores() <= (os.cpu_count() or 1)
    with pytest.raises(UseError, match="in the box"):
        BoxModel("embedded:llama")
    assert BoxModel().id == ID
