"""CPU per iteration of the kernel, with an instant scripted model and a durable journal.

    python benchmarks/kernel.py [--iterations 400] [--http]

Goals: 2 ms with the in-process `ScriptedModel`, 8 ms over HTTP with the client library. For
comparison, measured in the same way (20 tool calls, instant server over HTTP, none durable):
LangGraph 12.6 ms, pydantic-ai 21, openai-agents 24.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from textor import capability
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.functions import FunctionProvider
from textor.config import Config
from textor.events import Definition, Limits
from textor.hosts.local import LocalHost
from textor.journal.sqlite import SqliteJournal
from textor.messages import Context, ToolResult
from textor.processors import Models
from textor.settings import ProviderSettings
from textor.testing import Call, Reply, ScriptedModel, ScriptedServer

TASK = 20  #: calls in one turn


@capability(repeat="idempotent")
async def double(number: int) -> int:
    """Twice a number."""
    return number * 2


def script(context: Context) -> Reply | str:
    done = sum(isinstance(p, ToolResult) for m in context.messages for p in m.parts)
    if done == TASK:
        return "done"
    return Reply(calls=(Call("double", {"number": done}),), chunk=0)


def serve() -> None:
    """The other process: an instant OpenAI-compatible server."""

    def answer(request: object) -> Reply | str:
        messages = request.json["messages"]  # type: ignore[attr-defined]
        done = sum(m["role"] == "tool" for m in messages)
        if done == TASK:
            return "done"
        return Reply(calls=(Call("double", {"number": done}),), chunk=0)

    with ScriptedServer(answer) as server:
        print(server.url, flush=True)
        sys.stdin.read()


async def measure(folder: Path, turns: int, url: str) -> float:
    providers = {"scripted": ProviderSettings(base_url=url, api_key="none")} if url else {}
    config = Config(path=folder / "config.toml", data=folder, providers=providers)
    models = Models(config)
    model = ScriptedModel(script)
    models.add(model)
    journal = SqliteJournal(folder / "journal.db")
    services = await make_services(
        config, journal, models, [FunctionProvider([double]), *await core_providers()]
    )
    made = Machine(config, services, models)
    made.host = LocalHost(services)
    await made.host.start()
    definition = Definition("bench", capabilities=("double",), prompt="You double numbers.")
    name = "scripted:model" if not url else "scripted:m"

    async def tasks(count: int) -> None:
        for _ in range(count):
            session = await made.create(
                workspace=folder, definition=definition, model=name, limits=Limits(iterations=TASK + 1)
            )
            ended = await session.ask("double them")
            assert ended.reason == "replied", ended

    await tasks(1)  # imports, connections
    began = time.process_time()
    await tasks(turns)
    spent = time.process_time() - began
    await made.close()
    return spent / (turns * (TASK + 1)) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    turns = max(options.iterations // (TASK + 1), 1)
    with tempfile.TemporaryDirectory() as folder:
        if not options.http:
            ms = asyncio.run(measure(Path(folder), turns, ""))
            print(f"in process: {ms:.2f} ms CPU an iteration (goal 2)")
            return
        argv = [sys.executable, __file__, "--serve"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            ms = asyncio.run(measure(Path(folder), turns, url))
            print(f"over HTTP: {ms:.2f} ms CPU an iteration (goal 8)")
            assert server.stdin is not None
            server.stdin.close()


if __name__ == "__main__":
    os.environ.setdefault("TEXTOR_CONFIG", os.devnull)
    main()
