"""CPU of the model client: what one streaming request of a 20-step task costs this process.

    python benchmarks/model_client.py [--steps 20] [--tasks 10] [--profile]

The server is a `ScriptedServer` in another process, so only the client is measured; the prompt
grows by a call and its result in each step, as a dialogue does. Prints one line a client: ours,
the OpenAI SDK used plainly, and raw HTTP as the floor. CPU seconds, not wall time.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import multiprocessing
import pstats
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

from textor.messages import (
    CallChunk,
    Context,
    Message,
    Text,
    TextChunk,
    ToolCall,
    ToolResult,
    ToolSpec,
    said,
)
from textor.models.remote import RemoteModel
from textor.models.server import FREE, Server
from textor.testing import Call, Reply, ScriptedServer

SYSTEM = "You are an agent. " + "Follow the rules of this place. " * 60
RESULT = "README.md\npyproject.toml\nsrc\ntests\n" * 5
TOOLS = tuple(
    ToolSpec(
        f"area_verb{i}",
        "Does something useful with a path, and says what came of it.",
        {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}},
    )
    for i in range(8)
)
REPLY = Reply("I look at the folder now, then I answer.", calls=(Call("area_verb1", {"path": "src"}),))


def serve(pipe: Connection) -> None:
    with ScriptedServer(lambda request: REPLY) as server:
        pipe.send(server.url)
        pipe.recv()


async def ours(url: str, steps: int) -> None:
    model = RemoteModel(Server("bench", "scripted", url, "key", prices=FREE))
    messages: list[Message] = [said("system", SYSTEM), said("user", "Do it.")]
    for step in range(steps):
        text, name, arguments = "", "", ""
        async for chunk in model.generate(Context(tuple(messages), TOOLS)):
            if isinstance(chunk, TextChunk):
                text += chunk.text
            elif isinstance(chunk, CallChunk):
                name, arguments = name + chunk.name, arguments + chunk.arguments
        call = ToolCall(f"c{step}", name, arguments)
        messages.append(Message("assistant", (Text(text), call)))
        messages.append(Message("tool", (ToolResult(call.call_id, name, RESULT),)))
    await model.aclose()


def wire(step: int) -> list[dict[str, Any]]:
    function = {"name": "area_verb1", "arguments": '{"path": "src"}'}
    call = {"id": f"c{step}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": REPLY.text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{step}", "content": RESULT},
    ]


def request(messages: list[dict[str, Any]]) -> dict[str, Any]:
    functions = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in TOOLS]
    return {
        "model": "scripted",
        "messages": messages,
        "tools": [{"type": "function", "function": f} for f in functions],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def beginning() -> list[dict[str, Any]]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Do it."}]


async def sdk(url: str, steps: int) -> None:
    import openai

    messages = beginning()
    async with openai.AsyncOpenAI(base_url=url, api_key="key") as client:
        for step in range(steps):
            async for _ in await client.chat.completions.create(**request(messages)):
                pass
            messages += wire(step)


async def raw(url: str, steps: int) -> None:
    import httpx2

    messages = beginning()
    async with httpx2.AsyncClient() as client:
        for step in range(steps):
            async with client.stream("POST", f"{url}/chat/completions", json=request(messages)) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data: {"):
                        json.loads(line[6:])
            messages += wire(step)


def measure(client: Callable[[str, int], Awaitable[None]], url: str, steps: int, tasks: int) -> float:
    """CPU milliseconds a request, in one event loop; the first task is not counted."""

    async def run() -> float:
        await client(url, steps)
        begin = time.process_time()
        for _ in range(tasks):
            await client(url, steps)
        return (time.process_time() - begin) / (steps * tasks) * 1000

    return asyncio.run(run())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--tasks", type=int, default=10)
    options.add_argument("--profile", action="store_true")
    asked = options.parse_args()
    ours_end, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    url = ours_end.recv()
    try:
        if asked.profile:
            profile = cProfile.Profile()
            measure(ours, url, asked.steps, 1)
            profile.enable()
            measure(ours, url, asked.steps, asked.tasks)
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
            return
        for name, client in (("RemoteModel", ours), ("openai SDK", sdk), ("raw httpx2", raw)):
            print(f"{name:12} {measure(client, url, asked.steps, asked.tasks):6.2f} ms CPU a request")
    finally:
        ours_end.send(None)
        process.join()


if __name__ == "__main__":
    main()
