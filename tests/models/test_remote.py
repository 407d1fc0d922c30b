"""`RemoteModel` over real HTTP against a `ScriptedServer`."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import aclosing
from typing import Any

import pytest

from textor.errors import ModelError
from textor.messages import (
    NO_STOP,
    CallChunk,
    Chunk,
    Context,
    FinishChunk,
    Grammar,
    Media,
    Message,
    ProgressChunk,
    Reasoning,
    ReasoningChunk,
    Stop,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UsageChunk,
    WaitChunk,
    said,
)
from textor.models.remote import RemoteModel
from textor.models.retry import Retry
from textor.models.server import Prices, Server
from textor.testing import DONE, Call, Gate, Raw, Reply, ScriptedServer, Status, sse
from textor.values import Value

ASK = Context((said("system", "You are Textor."), said("user", "Hello")))
LIST = ToolSpec(
    "files_list", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}}
)


class Waits:
    """Stands in for the clock: notes the waits and does not wait."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def retry(self, attempts: int = 5) -> Retry:
        return Retry(attempts, sleep=self.sleep, random=lambda: 1.0)


def server_of(stand_in: ScriptedServer, **more: Any) -> Server:
    return Server("test", "scripted", stand_in.url, "secret-key", **more)


def ask(
    script: Any,
    context: Context = ASK,
    *,
    attempts: int = 1,
    stop: Stop = NO_STOP,
    grammar: Grammar | None = None,
    **more: Any,
) -> tuple[list[Chunk], ScriptedServer, list[float]]:
    """All chunks of one generation, the server, and the waits."""
    waits = Waits()

    async def all_of_it(model: RemoteModel) -> list[Chunk]:
        chunks = [chunk async for chunk in model.generate(context, stop=stop, grammar=grammar)]
        await model.aclose()
        return chunks

    with ScriptedServer(script) as stand_in:
        model = RemoteModel(server_of(stand_in, **more), retry=waits.retry(attempts))
        chunks = asyncio.run(all_of_it(model))
    return chunks, stand_in, waits.seconds


def text_of(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, TextChunk))


def kept(chunks: list[Chunk]) -> list[Chunk]:
    """The chunks after the last that makes the others void."""
    last = max((i for i, c in enumerate(chunks) if isinstance(c, WaitChunk)), default=-1)
    return chunks[last + 1 :]


def calls_of(chunks: list[Chunk]) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call."""
    found: dict[int, list[str]] = {}
    for chunk in chunks:
        if isinstance(chunk, CallChunk):
            call = found.setdefault(chunk.index, ["", "", ""])
            call[0] += chunk.call_id
            call[1] += chunk.name
            call[2] += chunk.arguments
    return [(c[0], c[1], c[2]) for _, c in sorted(found.items())]


def failure(script: Any, **more: Any) -> ModelError:
    with pytest.raises(ModelError) as raised:
        ask(script, **more)
    return raised.value


# -- what comes ----------------------------------------------------------------------------


def test_a_reply_is_streamed_with_usage_and_price() -> None:
    used = Usage(1000, 100, 400)
    chunks, stand_in, _ = ask(
        [Reply("  Hello there,\n you! ", chunk=3, usage=used)], prices=Prices(2.0, 10.0, 1.0)
    )
    assert text_of(chunks) == "  Hello there,\n you! "
    assert sum(isinstance(c, TextChunk) for c in chunks) == 7
    assert chunks[-1] == FinishChunk("stop")
    usage = next(c.usage for c in chunks if isinstance(c, UsageChunk))
    assert (usage.input, usage.output, usage.cached, usage.estimated) == (1000, 100, 400, False)
    assert usage.cost == pytest.approx((600 * 2 + 400 * 1 + 100 * 10) / 1e6)
    assert stand_in.requests[0].headers["authorization"] == "Bearer secret-key"


def test_an_unknown_price_is_unknown() -> None:
    chunks, _, _ = ask(["Hello"])
    assert next(c.usage for c in chunks if isinstance(c, UsageChunk)).cost is None


def test_parallel_calls_come_in_pieces() -> None:
    script = [
        Reply("I look.", calls=(Call("files_list", '{"path": "."}'), Call("time_now", {}, "x")), chunk=4)
    ]
    chunks, stand_in, _ = ask(script, Context(ASK.messages, (LIST,)))
    assert calls_of(chunks) == [("call_1", "files_list", '{"path": "."}'), ("x", "time_now", "{}")]
    assert chunks[-1] == FinishChunk("tool_calls")
    assert stand_in.requests[0].json["tools"][0]["function"]["name"] == "files_list"


def test_reasoning_is_kept_apart_whether_in_a_field_or_in_the_text() -> None:
    chunks, _, _ = ask([Reply("Yes.", reasoning="Let me see.")])
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningChunk)) == "Let me see."
    assert text_of(chunks) == "Yes."
    chunks, _, _ = ask([Reply("<think>\nrun it</think>Yes <think>", chunk=2)])
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningChunk)) == "\nrun it"
    assert text_of(chunks) == "Yes <think>"


def test_a_refusal_is_text_with_the_reason_content_filter() -> None:
    chunks, _, _ = ask([Raw((sse({"refusal": "I will not."}), sse({}, "stop"), DONE))])
    assert text_of(chunks) == "I will not."
    assert chunks[-1] == FinishChunk("content_filter")


def test_a_cut_call_ends_with_length() -> None:
    chunks, _, _ = ask([Reply(calls=(Call("files_list", '{"path": "/ho'),), finish="length")])
    assert calls_of(chunks)[0][2] == '{"path": "/ho'
    assert chunks[-1] == FinishChunk("length")


def test_an_empty_reply_is_an_end_and_no_error() -> None:
    chunks, _, _ = ask([Reply("")])
    assert text_of(chunks) == ""
    assert chunks[-1] == FinishChunk("stop")


# -- what goes -----------------------------------------------------------------------------


def test_the_history_goes_verbatim() -> None:
    arguments = '{ "path" : "a/é" ,\n"n":1.0}'
    messages = (
        said("system", "S"),
        said("user", "U \ud800\x00"),
        Message(
            "assistant", (Reasoning("hm"), Text(" A"), Text("\n B "), ToolCall("c1", "files_list", arguments))
        ),
        Message("tool", (ToolResult("c1", "files_list", "one\ntwo"),)),
        Message("assistant", (ToolCall("c2", "files_list", "{broken"),)),
        Message("tool", (ToolResult("c2", "files_list", "no JSON"),)),
    )
    _, stand_in, _ = ask(["ok"], Context(messages))
    wired = stand_in.requests[0].messages
    assert [m["role"] for m in wired] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert set(wired[1]["content"][2:]) == {"\ufffd"}
    assert wired[2]["content"] == " A\n B "
    assert wired[2]["tool_calls"][0]["function"]["arguments"] == arguments
    assert wired[3] == {"role": "tool", "tool_call_id": "c1", "content": "one\ntwo"}
    assert json.loads(wired[4]["tool_calls"][0]["function"]["arguments"]) == {"INVALID_JSON": "{broken"}


def test_settings_grammar_and_args_go_along() -> None:
    schema = {"type": "object"}
    grammar = Grammar(gbnf='root ::= "a"', json_schema=schema)
    context = Context(ASK.messages, max_tokens=7, temperature=0.5)
    _, stand_in, _ = ask(["a"], context, grammar=grammar, args={"seed": 3})
    asked = stand_in.requests[0].json
    assert asked["response_format"]["json_schema"]["schema"] == schema
    assert (asked["max_tokens"], asked["temperature"], asked["seed"], asked["model"]) == (
        7,
        0.5,
        3,
        "scripted",
    )
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True}
    _, stand_in, _ = ask(["a"], context, grammar=grammar, gbnf=True, completion_tokens=True)
    asked = stand_in.requests[0].json
    assert asked["grammar"] == 'root ::= "a"'
    assert "response_format" not in asked
    assert asked["max_completion_tokens"] == 7


def test_media_go_by_their_data() -> None:
    parts = (
        Text("Look:"),
        Media(Value("image", "image/png", blob="h1"), "the cat"),
        Media(Value("audio", "audio/wav", blob="h2")),
        Media(Value("file", "application/pdf", blob="h3", name="a.pdf")),
    )
    context = Context((Message("user", parts),), media={"h1": b"PNG", "h2": b"WAV", "h3": b"PDF"})
    _, stand_in, _ = ask(["A cat."], context)
    assert stand_in.requests[0].messages[0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "text", "text": "the cat"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}},
        {"type": "input_audio", "input_audio": {"data": "V0FW", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}},
    ]


def test_two_requests_share_the_prefix_byte_for_byte() -> None:
    longer = Context((*ASK.messages, said("assistant", "Hi {  }"), said("user", "Go on")))
    bodies = []
    for context in (ASK, longer):
        _, stand_in, _ = ask(["ok"], context)
        bodies.append(json.dumps(stand_in.requests[0].messages))
    assert bodies[1].startswith(bodies[0][:-1])


# -- the end of a generation from our side -------------------------------------------------


def test_closing_the_iterator_hangs_up_and_the_server_notices() -> None:
    gate = Gate()

    async def some_of_it(model: RemoteModel) -> str:
        async with aclosing(model.generate(ASK)) as chunks:
            async for chunk in chunks:
                assert isinstance(chunk, TextChunk)
                return chunk.text
        return ""

    with ScriptedServer([Reply("One two three", chunk=4, gates={4: gate}), "Next"]) as stand_in:
        model = RemoteModel(server_of(stand_in))
        assert asyncio.run(some_of_it(model)) == "One "
        stand_in.requests[0].hung_up.wait_blocking()
        assert stand_in.requests[0].sent == 2  # the head and one piece: nothing was sent after it
        assert text_of(asyncio.run(everything(model))) == "Next"  # and the model is as good as before


async def everything(model: RemoteModel, context: Context = ASK) -> list[Chunk]:
    return [chunk async for chunk in model.generate(context)]


def test_cancelling_the_task_hangs_up() -> None:
    gate = Gate()

    async def cancelled(model: RemoteModel) -> None:
        task = asyncio.create_task(everything(model))
        await gate.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ScriptedServer([Reply("One", gates={0: gate})]) as stand_in:
        asyncio.run(cancelled(RemoteModel(server_of(stand_in))))
        stand_in.requests[0].hung_up.wait_blocking()


def test_usage_of_what_was_hung_up_on_is_an_estimate() -> None:
    model = RemoteModel(Server("test", "estimates", "http://127.0.0.1:9/v1", prices=Prices(1.0, 1.0)))
    usage = model.estimated_usage(ASK, "12345678")
    assert usage.estimated
    assert usage.output == 2
    assert usage.input > 4
    assert usage.cost == pytest.approx(usage.total / 1e6)


def test_no_reported_usage_is_estimated() -> None:
    chunks, _, _ = ask([Reply("12345678", usage_sent=False)])
    usage = next(c.usage for c in chunks if isinstance(c, UsageChunk))
    assert usage.estimated
    assert usage.output == 2


@pytest.mark.parametrize("chunk", [1, 3, 0])
def test_a_stop_string_ends_the_reply_and_is_kept(chunk: int) -> None:
    text = "Do <a>x</a> and more"
    # a server that knows stop strings cuts before it
    chunks, stand_in, _ = ask([Reply(text, chunk=chunk)], stop=Stop(("</a>",)))
    assert stand_in.requests[0].json["stop"] == ["</a>"]
    assert text_of(chunks) == "Do <a>x</a>"
    # several are looked for here, and the connection is closed
    chunks, stand_in, _ = ask([Reply(text, chunk=chunk)], stop=Stop(("</a>", "</b>")))
    assert "stop" not in stand_in.requests[0].json
    assert text_of(chunks) == "Do <a>x</a>"
    assert chunks[-1] == FinishChunk("stop")


# -- faults --------------------------------------------------------------------------------


def test_502_then_429_then_well() -> None:
    script = [Status(502), Status(429, "slow down", retry_after="7"), "Hello"]
    chunks, stand_in, waits = ask(script, attempts=5)
    shown = [c for c in chunks if isinstance(c, WaitChunk)]
    assert [c.seconds for c in shown] == waits
    assert waits[0] == 1.0
    assert 7.0 <= waits[1] <= 7.7
    assert "502" in shown[0].reason
    assert "test:scripted" in shown[1].reason and "slow down" in shown[1].reason
    assert text_of(chunks) == "Hello"
    assert len(stand_in.requests) == 3


def test_attempts_are_bounded_and_the_wait_grows() -> None:
    waits: list[float] = []

    async def run(model: RemoteModel) -> None:
        await everything(model)

    with ScriptedServer(lambda request: Status(503)) as stand_in:
        clock = Waits()
        model = RemoteModel(server_of(stand_in), retry=clock.retry())
        with pytest.raises(ModelError) as raised:
            asyncio.run(run(model))
        waits = clock.seconds
        assert len(stand_in.requests) == 5
    assert waits == [1.0, 2.0, 4.0, 8.0]
    assert raised.value.fault == "server"
    assert "tried 5 times" in str(raised.value) and stand_in.url in str(raised.value)


def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    fault = failure([Status(429, retry_after="3600")], attempts=5)
    assert (fault.fault, fault.retry_after) == ("rate", 3600.0)


def test_nobody_listens() -> None:
    with ScriptedServer() as gone:
        url = gone.url
    model = RemoteModel(Server("lm-studio", "x", url), retry=Waits().retry(1))
    with pytest.raises(ModelError) as raised:
        asyncio.run(everything(model))
    assert raised.value.fault == "server"
    assert "lm-studio:x" in str(raised.value) and url in str(raised.value)


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (Status(401, "Incorrect API key provided: secret-key"), "auth"),
        (Status(404, "no such model", error_code="model_not_found"), "refused"),
        (Status(400, "bad argument"), "refused"),
        (Status(429, "no credit", error_code="insufficient_quota"), "refused"),
        (Status(400, "This model's maximum context length is 4096 tokens"), "context"),
        (Status(500, body=b"<html>oops</html>"), "server"),
    ],
)
def test_refusals_are_mapped_and_not_tried_again(status: Status, fault: str) -> None:
    error = failure([status, "never"], attempts=1 if fault == "server" else 5)
    assert error.fault == fault
    assert "test:scripted" in str(error)
    assert "secret-key" not in str(error)


def test_a_cut_stream_makes_void_what_came_and_is_tried_again() -> None:
    broken = Reply("I delete /home", cut=9, chunk=3)
    chunks, _, waits = ask([broken, "All well."], attempts=3)
    assert len(waits) == 1
    assert text_of(kept(chunks)) == "All well."
    error = failure([broken])
    assert error.fault == "cut"


def test_a_stream_without_finish_reason_is_cut_even_when_it_ends_politely() -> None:
    script = [Reply(calls=(Call("shell_run", {"command": "rm"}),), finish=None), Reply("Better not.")]
    chunks, _, _ = ask(script, attempts=2)
    assert calls_of(kept(chunks)) == []
    assert failure([Reply("Half", finish=None)]).fault == "cut"
    assert failure([Raw((DONE,))]).fault == "cut"


JUNK = [
    b"data: {not json\n\n",
    b"data: \xff\xfe\n\n",
    b'data: {"choices": "no"}\n\n',
    b'data: {"choices": [{"index": 0, "delta": "text"}]}\n\n',
    b"data: [1, 2]\n\n",
    b"data: 5\n\n",
]


@pytest.mark.parametrize("junk", JUNK)
def test_junk_in_the_stream_is_tried_again(junk: bytes) -> None:
    script = [Raw((sse({"content": "Hal"}), junk, sse({}, "stop"), DONE)), "Whole"]
    chunks, _, _ = ask(script, attempts=2)
    assert text_of(kept(chunks)) == "Whole"


def test_lines_that_are_no_events_and_chunks_without_choices_do_no_harm() -> None:
    script = Raw(
        (
            b": keep-alive\n\n",
            sse(None),
            sse({"content": "Hello"}),
            sse(None, usage={"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}),
            sse({}, "stop"),
            DONE,
        )
    )
    chunks, _, _ = ask([script])
    assert text_of(chunks) == "Hello"
    assert next(c.usage for c in chunks if isinstance(c, UsageChunk)).input == 5


def test_an_error_inside_the_stream() -> None:
    event = b'data: {"error": {"message": "overloaded", "code": 503}}\n\n'
    chunks, _, _ = ask([Raw((sse({"content": "Hal"}), event)), "Whole"], attempts=2)
    assert text_of(kept(chunks)) == "Whole"


def _delta(name: str | None = None, arguments: Any = None, **call: Any) -> bytes:
    fields = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return sse({"tool_calls": [{**call, "function": fields}]})


GOOD_CALLS = {
    "no index, one call": (
        [_delta("f", "", id="a"), _delta(None, "{}")],
        [("a", "f", "{}")],
    ),
    "all the same index, told by id": (
        [_delta("f", "{}", index=0, id="a"), _delta("g", "{}", index=0, id="b")],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "the name with every piece": (
        [_delta("f", "{", index=0, id="a"), _delta("f", "}", index=0, id="a")],
        [("a", "f", "{}")],
    ),
    "arguments before the name": (
        [_delta(None, '{"x"', index=0, id="a"), _delta("f", ":1}", index=0)],
        [("a", "f", '{"x":1}')],
    ),
}

BAD_CALLS = {
    "never a name": [_delta(None, "{}", index=0, id="a")],
    "the name changes": [_delta("read", "{", index=0, id="a"), _delta("delete", "}", index=0)],
    "a piece of one of two": [_delta("f", "{", id="a"), _delta("g", "{", id="b"), _delta(None, "}")],
    "an index that is none": [_delta("f", "{}", index="first", id="a")],
    "arguments that are no text": [_delta("f", {"a": 1}, index=0, id="a")],
}


@pytest.mark.parametrize("name", GOOD_CALLS)
def test_odd_calls_that_can_be_understood(name: str) -> None:
    pieces, expected = GOOD_CALLS[name]
    chunks, _, _ = ask([Raw((*pieces, sse({}, "tool_calls"), DONE))])
    assert calls_of(chunks) == expected


@pytest.mark.parametrize("name", BAD_CALLS)
def test_odd_calls_that_cannot_are_junk_and_tried_again(name: str) -> None:
    odd = Raw((*BAD_CALLS[name], sse({}, "tool_calls"), DONE))
    assert failure([odd]).fault == "junk"
    chunks, _, _ = ask([odd, "Well."], attempts=2)
    assert calls_of(kept(chunks)) == []


def test_no_first_event_in_time() -> None:
    error = failure([Reply("late", gates={0: Gate()})], first_event_timeout=0.05)
    assert error.fault == "timeout"
    assert "first_event_timeout" in str(error)


# -- manners of servers --------------------------------------------------------------------


LATER = Context((said("system", "S"), said("user", "U"), said("assistant", "A"), said("system", "results")))


def strict(request: Any) -> Any:
    """A server that takes a system message only at the beginning."""
    if any(m["role"] == "system" for m in request.messages[1:]):
        return Status(400, "System message must be at the beginning.")
    return "ok"


def test_later_system_messages_are_refused_found_out_and_remembered() -> None:
    with ScriptedServer(strict) as stand_in:
        server = server_of(stand_in, system_role="all")
        chunks = asyncio.run(everything(RemoteModel(server), LATER))
        assert any(isinstance(c, ProgressChunk) and "beginning" in c.text for c in chunks)
        assert text_of(chunks) == "ok"
        assert stand_in.requests[-1].messages[-1] == {"role": "user", "content": "results"}
        assert len(stand_in.requests) == 2
        asyncio.run(everything(RemoteModel(server), LATER))  # another model on the same server knows
        assert len(stand_in.requests) == 3


def test_by_default_nothing_is_lost_where_later_system_messages_are_dropped() -> None:
    _, stand_in, _ = ask(["ok"], LATER)
    assert [m["role"] for m in stand_in.requests[0].messages] == ["system", "user", "assistant", "user"]


def test_no_system_messages_at_all_and_turns_must_alternate() -> None:
    def gemma(request: Any) -> Any:
        roles = [m["role"] for m in request.messages]
        if "system" in roles:
            return Status(500, "Jinja Exception: System role not supported")
        if any(a == b for a, b in itertools.pairwise(roles)):
            return Status(500, "Conversation roles must alternate user/assistant/user/assistant/...")
        return "ok"

    chunks, stand_in, waits = ask(gemma, LATER)
    assert waits == []
    assert text_of(chunks) == "ok"
    assert [m["content"] for m in stand_in.requests[-1].messages] == ["S\n\nU", "A", "results"]


CALLED = Context(
    (
        said("system", "S"),
        said("user", "U"),
        Message("assistant", (ToolCall("c1", "look", "{}"),)),
        Message("tool", (ToolResult("c1", "look", "seen"),)),
        said("user", "status"),
    )
)


def test_templates_that_take_nothing_but_user_and_assistant_and_no_user_behind_an_outcome() -> None:
    def mistral(request: Any) -> Any:
        roles = [m["role"] for m in request.messages]
        if "system" in roles:
            return Status(400, "Only user and assistant roles are supported!")
        if ("tool", "user") in itertools.pairwise(roles):
            return Status(400, "Unexpected role 'user' after role 'tool'")
        return "ok"

    chunks, stand_in, _ = ask(mistral, CALLED)
    assert text_of(chunks) == "ok"
    last = stand_in.requests[-1].messages[-1]
    assert (last["role"], last["tool_call_id"]) == ("tool", "c1")
    assert last["content"].startswith("seen") and last["content"].endswith("status")


def test_a_refusal_about_something_else_teaches_nothing() -> None:
    assert failure([Status(400, "temperature must be below 2"), "never"], context=LATER).fault == "refused"


def test_a_server_that_cuts_the_prompt_is_told_of_once() -> None:
    long = Context((said("system", "word " * 8_000), said("user", "Go")))

    async def both(model: RemoteModel) -> list[Chunk]:
        return await everything(model, long) + await everything(model, long)

    with ScriptedServer([Reply("ok", usage=Usage(2_048, 2))] * 2) as stand_in:
        model = RemoteModel(server_of(stand_in, context_window=32_768))
        before = model.count("word " * 100)
        notices = [c.text for c in asyncio.run(both(model)) if isinstance(c, ProgressChunk)]
    assert len(notices) == 1
    assert "2048" in notices[0] and "context_window" in notices[0] and "32768" in notices[0]
    assert model.count("word " * 100) == before  # and the estimate does not learn from it


def test_the_estimate_learns_from_reported_usage() -> None:
    text = "word " * 4_000
    context = Context((said("user", text),))
    with ScriptedServer([Reply("ok", usage=Usage(4_000, 2))]) as stand_in:
        model = RemoteModel(server_of(stand_in))
        assert model.count(text) == 5_000
        asyncio.run(everything(model, context))
    assert model.count(text) == pytest.approx(4_000, rel=0.01)
