"""The stand-ins themselves: what they promise to those who test with them."""

from __future__ import annotations

import asyncio
import itertools
import json
import urllib.error
import urllib.request
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.errors import ModelError
from textor.messages import (
    CallChunk,
    Chunk,
    Context,
    FinishChunk,
    ReasoningChunk,
    Stop,
    TextChunk,
    UsageChunk,
    said,
)
from textor.models.port import Model
from textor.models.stops import Stops
from textor.models.thinking import Thinking
from textor.testing import Call, Gate, Reply, ScriptedModel, ScriptedServer, Status

ASK = Context((said("user", "Hello"),))


async def everything(model: Model, context: Context = ASK, **more: Any) -> list[Chunk]:
    return [chunk async for chunk in model.generate(context, **more)]


def test_a_scripted_model_says_its_script_and_records_what_it_was_asked() -> None:
    model = ScriptedModel([Reply("Hi", calls=(Call("f", {"a": 1}),), reasoning="hm"), "Bye"])
    chunks = asyncio.run(everything(model))
    assert chunks[0] == ReasoningChunk("hm")
    assert chunks[1] == TextChunk("Hi")
    assert chunks[2] == CallChunk(0, "call_1_1", "f")
    assert "".join(c.arguments for c in chunks if isinstance(c, CallChunk)) == '{"a": 1}'
    assert isinstance(chunks[-2], UsageChunk) and chunks[-2].usage.cost == 0.0
    assert chunks[-1] == FinishChunk("tool_calls")
    asyncio.run(everything(model))
    assert model.contexts == [ASK, ASK]
    assert not model.asked[0].hung_up.is_set()
    with pytest.raises(ModelError, match="generation 3"):
        asyncio.run(everything(model))


def test_a_scripted_model_may_be_a_function_and_may_fail() -> None:
    model = ScriptedModel(lambda context: context.messages[-1].text.upper())
    assert TextChunk("HELLO") in asyncio.run(everything(model))
    with pytest.raises(ModelError, match="away"):
        asyncio.run(everything(ScriptedModel([ModelError("away", fault="server")])))
    with pytest.raises(ModelError) as raised:
        asyncio.run(everything(ScriptedModel([Reply("Hello", cut=2)])))
    assert raised.value.fault == "cut"


def test_a_scripted_model_ends_at_a_stop_string() -> None:
    chunks = asyncio.run(everything(ScriptedModel(["one;two;"]), stop=Stop((";",))))
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == "one;"


def test_a_scripted_model_waits_at_a_gate_and_notices_a_hang_up() -> None:
    async def run() -> None:
        gate = Gate()
        model = ScriptedModel([Reply("Hello", chunk=2, gates={2: gate}), Reply("Hello", chunk=2)])
        task = asyncio.create_task(everything(model))
        await gate.reached.wait()
        assert model.asked[0].chunks == 1
        gate.open()
        assert TextChunk("ll") in await task
        async with aclosing(model.generate(ASK)) as chunks:
            async for _ in chunks:
                break
        assert model.asked[1].hung_up.is_set()

    asyncio.run(run())


def post(url: str, **body: Any) -> Any:
    data = json.dumps({"model": "scripted", "messages": [{"role": "user", "content": "x"}], **body}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", data)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_a_scripted_server_answers_without_streaming() -> None:
    with ScriptedServer([Reply("Hello", calls=(Call("f", {"a": 1}),)), "a;b"], models=("m",)) as server:
        answer = post(server.url)["choices"][0]
        assert answer["message"]["content"] == "Hello"
        assert answer["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
        assert answer["finish_reason"] == "tool_calls"
        assert post(server.url, stop=[";"])["choices"][0]["message"]["content"] == "a"
        with urllib.request.urlopen(f"{server.url}/models", timeout=30) as models:
            assert [m["id"] for m in json.loads(models.read())["data"]] == ["m"]
        with pytest.raises(urllib.error.HTTPError) as raised:
            post(server.url)
        assert raised.value.code == 400
        assert b"request 3" in raised.value.read()
        raised.value.close()


def test_a_scripted_server_tells_what_its_script_raised() -> None:
    def broken(request: object) -> Status:
        raise ValueError("my script is broken")

    with ScriptedServer(broken) as server, pytest.raises(urllib.error.HTTPError) as raised:
        post(server.url)
    assert b"my script is broken" in raised.value.read()
    raised.value.close()


@given(st.text("ab<>/think \n", max_size=40), st.lists(st.integers(0, 40)))
def test_thinking_does_not_depend_on_where_the_stream_is_cut(text: str, cuts: list[int]) -> None:
    for whole in (text, f"<think>{text}", f" <think>{text}</think>{text}"):
        assert _thought(whole, cuts) == _thought(whole, [])


def _thought(text: str, cuts: list[int]) -> tuple[str, str]:
    thinking = Thinking()
    found = {TextChunk: "", ReasoningChunk: ""}
    for piece in _cut(text, cuts):
        for chunk in thinking.feed(piece):
            found[type(chunk)] += chunk.text
    for chunk in thinking.end():
        found[type(chunk)] += chunk.text
    return found[TextChunk], found[ReasoningChunk]


@given(
    st.text("ab;", max_size=30),
    st.lists(st.integers(0, 30)),
    st.lists(st.text("ab;", min_size=1, max_size=4)),
)
def test_stops_do_not_depend_on_where_the_stream_is_cut(text: str, cuts: list[int], stops: list[str]) -> None:
    ends = [at + len(s) for s in stops if (at := text.find(s)) >= 0]
    expected = text[: min(ends)] if ends else text
    looked = Stops(tuple(stops))
    assert "".join(looked.feed(piece) for piece in _cut(text, cuts)) == expected
    assert bool(looked.found) == bool(ends)


def _cut(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(c for c in cuts if c < len(text))})
    return [text[a:b] for a, b in itertools.pairwise(places)] or [text]
