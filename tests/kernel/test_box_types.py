"""The agent types in the box: their files, a typical turn of each, and what they send a model."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kernel_parts import bodies, ended, machine, until

from textor import events as e
from textor.definitions import BOX, list_definitions, load_definition
from textor.events import Event, Limits
from textor.messages import Context, Message, Text
from textor.testing import Call, Reply, ScriptedModel
from textor.testing.model import ModelItem

#: All but those without a stable prefix, which have their own tests.
TYPES = [d.type for d in list_definitions([BOX]) if d.layout != "regenerated"]

#: Capabilities that are named already and come with the web and documents.
COMING = {"web.*", "search.*", "docs.*"}


def act(name: str, /, **arguments: Any) -> Reply:
    return Reply(calls=(Call(name, arguments),))


def call(type: str, name: str, message: str) -> Reply:
    return act("call", type=type, name=name, message=message)


#: What a person says, and what the model of the type, and those of the agents it calls, say then.
TURNS: dict[str, tuple[str, list[ModelItem]]] = {
    "main": (
        "Since when is there a GIL?",
        [call("researcher", "gil", "Since when has CPython a GIL?"), "Since 1992.", "Since 1992 (gil)."],
    ),
    "researcher": (
        "What does the log say of the crash?",
        [
            act("notes_set", key="proof", text="a line with its time"),
            act("files_search", query="crash"),
            'It crashed at 12:03: "12:03 crash" (log.txt:1).',
        ],
    ),
    "search-engine": ("The manual of a tool.", [act("ask", question="Of which one?"), "None was found."]),
    "doc-reader": ("When did it crash?", [act("files_read", path="log.txt"), "At 12:03 (line 1)."]),
    "coder": (
        "Write a greeter.",
        [
            act("ask", question="In which language does it greet?"),
            act("files_write", path="greet.py", text="print('Salut')\n"),
            "greet.py; `python greet.py` should print Salut.",
        ],
    ),
    "coder-proxy": (
        "Get me a greeter.",
        [
            call("coder", "coder_greeter", "Write greet.py."),
            act("files_write", path="greet.py", text="import sys\nsys.exit(3)\n"),
            "greet.py",
            act("shell_run", command="python3 greet.py"),
            "It failed: exit status 3.",
        ],
    ),
    "module-coder": (
        "A module that adds.",
        [act("files_write", path="modules/add.py", text="x = 1\n"), "modules/add.py, not tried."],
    ),
    "chat": ("Hello", ["Hello."]),
    "starter": ("hi", ["respond to user with [Hello!]"]),
}


@pytest.mark.parametrize("type", TYPES)
def test_what_its_file_names_is_there_or_announced(tmp_path: Path, type: str) -> None:
    made = load_definition(type, [BOX])
    assert made.purpose.endswith(".") and len(made.purpose) < 120
    assert set(made.agents) <= set(TYPES)
    assert not made.agents or "call" in made.capabilities

    async def run() -> None:
        async with machine(ScriptedModel([]), tmp=tmp_path) as machine_:
            for pattern in made.capabilities:
                assert len(machine_.services.offered([pattern])) or pattern in COMING, pattern

    asyncio.run(run())


@pytest.mark.parametrize("type", TYPES)
def test_a_typical_turn(tmp_path: Path, type: str) -> None:
    text, script = TURNS[type]
    (tmp_path / "log.txt").write_text("12:03 crash\n")

    async def run() -> None:
        model = ScriptedModel(script)
        async with machine(model, tmp=tmp_path, default=model.id) as made:
            session = await made.create(text, workspace=tmp_path, agent=type, policy="yes")
            events = await until(session, lambda ev: _main_ended(ev) or isinstance(ev.body, e.Asked))
            if isinstance(question := events[-1].body, e.Asked):
                await session.reply(question.key, "French")
                events = await until(session, _main_ended)
            last = script[-1]
            assert events[-1].body.reason == "replied"
            assert events[-1].body.text == (re.sub(r".*\[(.*)\]", r"\1", last) if type == "starter" else last)
            assert len(model.asked) == len(script)
            assert {b.outcome.state for b in bodies(events, e.ActionFinished)} <= {"done"}
            if type == "coder-proxy":  # L3: the status stands beside what the model claims
                (ran,) = [b for b in bodies(events, e.ActionFinished) if b.outcome.exit_status is not None]
                assert ran.outcome.exit_status == 3
                assert "exit status 3" in str(model.contexts[-1].messages[-1])

    asyncio.run(run())


def _main_ended(event: Event) -> bool:
    return ended(event) and event.body.agent == "main"  # type: ignore[attr-defined]


def without_status(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without the status, which is the last block of the last of them."""
    *rest, last = messages
    parts = last.parts
    if parts and isinstance(parts[-1], Text) and parts[-1].text.startswith("\n\n<status>"):
        parts = parts[:-1]
    return (*rest, Message(last.role, parts))


class Busy:
    """A model that does something else each time, and answers every tenth time."""

    def __init__(self, type: str) -> None:
        self.type = type
        self.count = 0

    def __call__(self, context: Context) -> ModelItem:
        self.count += 1
        n = self.count
        if self.type == "starter":
            return f"respond to user with [answer {n}]"
        if self.type == "chat" or n % 10 == 0:
            return f"answer {n}"
        if n % 3 == 0 and any(tool.name == "notes_set" for tool in context.tools):
            return act("notes_set", key="n", text=str(n))
        return act("values_read", handle=f"value {n}")


@pytest.mark.parametrize("type", TYPES)
def test_the_prefix_is_stable_over_fifty_iterations(tmp_path: Path, type: str) -> None:
    async def run() -> None:
        model = ScriptedModel(Busy(type), native_tools=type != "starter")
        async with machine(model, tmp=tmp_path, default=model.id) as made:
            session = await made.create(workspace=tmp_path, agent=type)
            while len(model.asked) < 51:
                assert (await session.ask(f"message {len(model.asked)}")).reason == "replied"
        contexts = model.contexts
        for before, after in pairwise(contexts):
            kept, grown = without_status(before.messages), without_status(after.messages)
            assert grown[: len(kept)] == kept
            assert after.tools == before.tools

    asyncio.run(run())


@pytest.mark.parametrize("type", TYPES)
def test_the_status_is_short_when_nothing_is_watched(tmp_path: Path, type: str) -> None:
    async def run() -> None:
        model = ScriptedModel(Busy(type), native_tools=type != "starter")
        async with machine(model, tmp=tmp_path, default=model.id) as made:
            limits = Limits(iterations=100, tokens=100_000, money=12.5, seconds=3600)
            session = await made.create("go", workspace=tmp_path, agent=type, limits=limits)
            events = await until(session, lambda ev: isinstance(ev.body, e.GenerationStarted))
            status = events[-1].body.status
            assert model.count(status) < 100, status
            assert ("budget" in status) is (type != "starter")

    asyncio.run(run())


def test_the_prompt_says_whom_it_can_call(tmp_path: Path) -> None:
    folder = tmp_path / ".textor" / "agents"
    folder.mkdir(parents=True)
    (folder / "all.md").write_text("---\npurpose: Calls.\ncapabilities: [call]\nagents: ['*']\n---\nCall.")
    (folder / "deaf.md").write_text("---\npurpose: No calls.\nagents: ['*']\n---\nDo not.")

    async def run() -> None:
        async with machine(ScriptedModel([]), tmp=tmp_path, default="scripted:model") as made:
            prefixes = []
            for type in ("main", "all", "deaf"):
                session = await made.create(workspace=tmp_path, agent=type)
                prefixes.append((await session.state()).agents["main"].prefix[0].text)
        main, all_, deaf = prefixes
        told = load_definition("researcher", [BOX]).purpose
        assert f"* researcher: {told}" in main and "* chat" not in main
        assert [f"* {t}:" in all_ for t in (*TYPES, "deaf", "all")] == [True] * (len(TYPES) + 1) + [False]
        assert deaf == "Do not."

    asyncio.run(run())


def test_the_example_of_the_module_coder_is_a_module(tmp_path: Path) -> None:
    """It starts, offers its function with what the prompt says of it, and answers."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.types import TextContent

    (program,) = re.findall(r"```python\n(.*?)```", load_definition("module-coder", [BOX]).prompt, re.DOTALL)
    (tmp_path / "words.py").write_text(program)

    async def run() -> None:
        here = StdioServerParameters(command=sys.executable, args=["words.py"], cwd=tmp_path)
        async with stdio_client(here) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            (tool,) = (await session.list_tools()).tools
            assert tool.name == "lookup"
            assert tool.annotations is not None and tool.annotations.read_only_hint
            assert tool.input_schema["properties"]["count"]["maximum"] == 100
            lost = await session.call_tool("lookup", {"start": "a"})
            (tmp_path / "words.txt").write_text("bee ant apple")
            found = await session.call_tool("lookup", {"start": "a"})
            assert lost.is_error and isinstance(lost.content[0], TextContent)
            assert "no words.txt" in lost.content[0].text
            assert found.structured_content == {"result": ["ant", "apple"]}

    asyncio.run(run())
    quiet = subprocess.run([sys.executable, "-c", "import words"], cwd=tmp_path, capture_output=True)
    assert (quiet.stdout, quiet.stderr) == (b"", b"")
