"""Anthropic, Mistral and Groq by their own protocols, where their extras are installed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from textor.errors import ConfigError, ModelError
from textor.messages import (
    CallChunk,
    Chunk,
    Context,
    FinishChunk,
    Message,
    ReasoningChunk,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    ToolSpec,
    UsageChunk,
    said,
)
from textor.models.remote import RemoteModel
from textor.models.retry import Retry
from textor.models.server import Prices, Protocol, Server
from textor.testing import DONE, Raw, ScriptedServer, Status, sse

TOOL = ToolSpec(
    "files_list", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}}
)
CONTEXT = Context(
    (
        said("system", "S"),
        said("user", "U"),
        Message("assistant", (Text("A"), ToolCall("abcdefghi", "files_list", '{"path": "."}'))),
        Message("tool", (ToolResult("abcdefghi", "files_list", "one"),)),
        said("system", "later"),
    ),
    (TOOL,),
    max_tokens=50,
)


def ask(script: Any, protocol: Protocol, context: Context = CONTEXT) -> tuple[list[Chunk], ScriptedServer]:
    async def everything(model: RemoteModel) -> list[Chunk]:
        try:
            return [chunk async for chunk in model.generate(context)]
        finally:
            await model.aclose()

    with ScriptedServer(script) as stand_in:
        server = Server(
            protocol, "m", stand_in.url.removesuffix("/v1"), "key", protocol, prices=Prices(1.0, 1.0)
        )
        return asyncio.run(everything(RemoteModel(server, retry=Retry(1)))), stand_in


def text_of(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks if isinstance(c, TextChunk))


def call_of(chunks: list[Chunk]) -> tuple[str, str, str]:
    calls = [c for c in chunks if isinstance(c, CallChunk)]
    return calls[0].call_id, "".join(c.name for c in calls), "".join(c.arguments for c in calls)


WHOLE_CALL = {
    "index": 0,
    "id": "bcdefghij",
    "type": "function",
    "function": {"name": "files_list", "arguments": '{"path": "src"}'},
}
USED = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@pytest.mark.parametrize("protocol", ["groq", "mistral"])
def test_groq_and_mistral(protocol: Protocol) -> None:
    pytest.importorskip("groq" if protocol == "groq" else "mistralai")
    stream = Raw(
        (
            sse({"role": "assistant", "content": "I "}),
            sse({"content": "look."}),
            sse({"tool_calls": [WHOLE_CALL]}, "tool_calls", usage=USED),  # they send a call in one piece
            DONE,
        )
    )
    chunks, stand_in = ask([stream], protocol)
    assert text_of(chunks) == "I look."
    assert call_of(chunks) == ("bcdefghij", "files_list", '{"path": "src"}')
    assert chunks[-1] == FinishChunk("tool_calls")
    roles = [m["role"] for m in stand_in.requests[0].messages]
    assert roles[:4] == ["system", "user", "assistant", "tool"]
    assert [m["content"] for m in stand_in.requests[0].messages if m["role"] == "user"][-1] == "later"


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> tuple[bytes, ...]:
    return (
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    )


HEAD = event(
    "message_start",
    message={
        "id": "1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 12, "output_tokens": 1},
    },
)  # fmt: skip
END = (
    event(
        "message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 7}
    ),
    event("message_stop"),
)


def test_anthropic() -> None:
    pytest.importorskip("anthropic")
    stream = Raw(
        (
            HEAD,
            *block(0, {"type": "thinking", "thinking": "", "signature": ""},
                   {"type": "thinking_delta", "thinking": "Hm."},
                   {"type": "signature_delta", "signature": "sig"}),
            *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look."}),
            *block(2, {"type": "tool_use", "id": "t1", "name": "files_list", "input": {}},
                   {"type": "input_json_delta", "partial_json": '{"path":'},
                   {"type": "input_json_delta", "partial_json": ' "src"}'}),
            *END,
        )
    )  # fmt: skip
    chunks, stand_in = ask([stream], "anthropic")
    assert text_of(chunks) == "I look."
    assert "".join(c.text for c in chunks if isinstance(c, ReasoningChunk)) == "Hm."
    assert "".join(c.signature for c in chunks if isinstance(c, ReasoningChunk)) == "sig"
    assert call_of(chunks) == ("t1", "files_list", '{"path": "src"}')
    assert chunks[-1] == FinishChunk("tool_calls")
    usage = next(c.usage for c in chunks if isinstance(c, UsageChunk))
    assert (usage.input, usage.output, usage.estimated) == (12, 7, False)
    asked = stand_in.requests[0].json
    assert asked["max_tokens"] == 50
    assert [m["role"] for m in asked["messages"]] == ["user", "assistant", "user"]
    assert "later" in json.dumps(asked["messages"][-1])
    assert asked["messages"][1]["content"][1]["input"] == {"path": "."}


def test_anthropic_faults() -> None:
    pytest.importorskip("anthropic")
    cut = Raw(
        (HEAD, *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Half"})), cut=True
    )
    for item, fault in ((Status(529, "overloaded"), "server"), (Status(401, "no"), "auth"), (cut, "cut")):
        with pytest.raises(ModelError) as raised:
            ask([item], "anthropic")
        assert raised.value.fault == fault
    with pytest.raises(ModelError) as raised:
        ask([Raw((DONE,))], "anthropic")
    assert raised.value.fault == "cut"


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "groq", None)
    with pytest.raises(ConfigError, match=r"textor\[groq\]"):
        ask(["never"], "groq")
