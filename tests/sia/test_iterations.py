"""Iterations read back: exactly what the model was shown and said, and in how many bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sia_parts import ended, machine, until

from textor import capability
from textor import events as e
from textor.assembly import Machine
from textor.events import Definition, Limits
from textor.journal.memory import MemoryJournal
from textor.journal.sqlite import SqliteJournal
from textor.kernel.summary import REQUEST
from textor.messages import Context, said
from textor.models.registry import resolve
from textor.models.remote import RemoteModel
from textor.record.iterations import Iteration, files_of, iterations, write_files
from textor.record.provider import line
from textor.settings import ProviderSettings
from textor.testing import Call, Reply, ScriptedModel, ScriptedServer

CALL = Reply("Looking.", calls=(Call("time_now", {}),))
XML = "Looking.\n<actions><time.now/></actions>"
SCRIPT = "Looking. !TIME-NOW<!||!>"
STEP = '{"thought": "look", "command": {"name": "time.now", "arguments": {}}}'
ANSWER = '{"thought": "done", "response": "Done."}'

KINDS: list[tuple[Sequence[str], str, list[str | Reply]]] = [
    (("tools",), "stable", [CALL, CALL, "Done.", "Again."]),
    (("xml",), "stable", [XML, XML, "Done.", "Again."]),
    (("xml",), "regenerated", [XML, XML, "Done.", "Again."]),
    (("script",), "stable", [SCRIPT, SCRIPT, "Done.", "Again."]),
    (("step",), "bare", [ANSWER, ANSWER]),
    (("tools", "xml"), "stable", [CALL, XML, "Done.", "Again."]),
]


async def read(made: Machine, session: str) -> list[Iteration]:
    return [i async for i in iterations(made.journal, session, made.services.layout)]


@pytest.mark.parametrize(
    ("dialects", "layout", "replies"), KINDS, ids=lambda v: "-".join(v) if isinstance(v, tuple) else ""
)
def test_the_rebuilt_prompt_is_what_the_model_was_shown(
    tmp_path: Path, dialects: Sequence[str], layout: str, replies: list[str | Reply]
) -> None:
    definition = Definition(
        "t", dialects=tuple(dialects), layout=layout, capabilities=("time.now",), prompt="P"
    )

    async def play() -> tuple[list[Context], list[Iteration]]:
        model = ScriptedModel(replies, native_tools="tools" in dialects)
        async with machine(model, tmp=tmp_path, journal=SqliteJournal(tmp_path / "j.db")) as made:
            session = await made.create("first", workspace=tmp_path, definition=definition, model=model.id)
            seen = await until(session, ended)
            await session.post("second")
            await until(session, ended, seen[-1].seq)
            found = await read(made, session.id)
            await made.journal.close()
            return model.contexts, found

    shown, found = asyncio.run(play())
    assert [i.context for i in found] == shown and len(shown) == len(replies)
    assert all(
        i.raw is not None and i.usage.total and i.version and i.over >= i.replied >= i.began for i in found
    )
    acted = [i for i in found if i.deeds]
    assert len(acted) == len(replies) - 2
    assert all(d.outcome and d.outcome.state == "done" for i in acted for d in i.deeds)


def test_also_with_summaries_and_reviews_in_between(tmp_path: Path) -> None:
    definition = Definition("t", dialects=("xml",), capabilities=("print",), prompt="P", review=True)
    long = "x" * 3000

    def answer(context: Context) -> str:
        last = context.messages[-1].text
        if last == REQUEST:
            return "It was about x."
        if "better" in last:
            return "Better."
        return f'<actions><print text="{long if "print" in last else "Bad."}"/></actions>'

    async def play() -> tuple[list[Context], list[Iteration]]:
        model = ScriptedModel(answer, native_tools=False, window=3000)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create(workspace=tmp_path, definition=definition, model=model.id)
            after = 0

            async def reviewed(verdict: Any, **more: Any) -> None:
                nonlocal after
                seen = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished), after)
                after = seen[-1].seq
                await session.review("main", verdict, **more)

            for _ in range(4):
                await session.post("print")
                await reviewed("accept")
                await reviewed("edit", message=said("assistant", "Edited."), reply="Edited.")
                after = (await until(session, ended, after))[-1].seq
            await session.post("talk")
            await reviewed("again", remark="say it better")
            await reviewed("accept")
            await until(session, ended, after)
            assert [ev async for ev in made.journal.read(session.id) if isinstance(ev.body, e.Summarised)]
            return model.contexts, await read(made, session.id)

    shown, found = asyncio.run(play())
    assert [i.context for i in found] == [c for c in shown if c.messages[-1].text != REQUEST]
    edited = [i for i in found if i.edited is not None]
    assert len(edited) == 4
    assert all(i.raw != i.edited and i.edited == said("assistant", "Edited.") for i in edited)
    again, better = found[-2:]
    assert (again.verdict, again.remark) == ("again", "say it better")
    assert line(again).endswith("[again]: print not done")
    assert (better.verdict, better.reply) == ("accept", "Better.")
    assert files_of(edited[0])["reply.txt"] != files_of(edited[0])["edited.txt"]


def test_over_http_the_rebuilt_prompt_gives_the_same_bytes(tmp_path: Path) -> None:
    definition = Definition("t", capabilities=("time.now",), prompt="P")

    def remote(server: ScriptedServer) -> RemoteModel:
        provider = ProviderSettings(base_url=server.url, context_window=32_000)
        return RemoteModel(resolve("mine:scripted", {"mine": provider}))

    async def play(server: ScriptedServer, second: ScriptedServer) -> None:
        model = remote(server)
        async with machine(model, tmp=tmp_path) as made:  # type: ignore[arg-type]
            session = await made.create("Zeit? 🕑", workspace=tmp_path, definition=definition, model=model.id)
            await until(session, ended)
            found = await read(made, session.id)
        again = remote(second)
        for iteration in found:
            async for _ in again.generate(iteration.context):
                pass

    with ScriptedServer([CALL, CALL, "Done."]) as server, ScriptedServer(["a", "b", "c"]) as second:
        asyncio.run(play(server, second))
        assert [r.body for r in second.requests] == [r.body for r in server.requests]
        assert len(server.requests) == 3


def test_storage_grows_with_what_was_said_and_not_with_its_square(tmp_path: Path) -> None:
    """300 iterations of 2 kB; benchmarks/iterations.py measures 1,000."""

    @capability
    def fetch(n: int) -> str:
        """Fetch a text."""
        return f"{n} " + "y" * 1000

    async def size(layout: str, count: int) -> int:
        from textor.capabilities.functions import FunctionProvider

        folder = tmp_path / f"{layout}{count}"
        folder.mkdir()
        replies = [f'{"z" * 1000}\n<actions><fetch n="{n}"/></actions>' for n in range(count)]
        model = ScriptedModel([*replies, "Done."], native_tools=False, window=10_000_000)
        definition = Definition("t", dialects=("xml",), layout=layout, capabilities=("fetch",), prompt="P")
        journal = SqliteJournal(folder / "j.db")
        providers = [FunctionProvider([fetch])]
        async with machine(model, tmp=folder, journal=journal, providers=providers) as made:
            session = await made.create(
                "go", workspace=folder, definition=definition, model=model.id, limits=Limits()
            )
            await until(session, ended)
            assert len(await read(made, session.id)) == count + 1
        await journal.close()
        return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())

    for layout in ("stable", "regenerated"):
        small, big = (asyncio.run(size(layout, count)) for count in (100, 300))
        assert big < 5 * small  # three times as many; their square would be nine times
        assert big < 300 * 50_000


def test_an_iteration_as_files(tmp_path: Path) -> None:
    async def play() -> list[Iteration]:
        model = ScriptedModel([CALL, "Done."])
        definition = Definition("t", capabilities=("time.now",), prompt="P")
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("go", workspace=tmp_path, definition=definition, model=model.id)
            await until(session, ended)
            return await read(made, session.id)

    first, last = asyncio.run(play())
    for iteration in (first, last):
        write_files(iteration, tmp_path / "out", MemoryJournal().blobs)
    places = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert places == [f"{first.seq:06d}-main-1", f"{last.seq:06d}-main-2"]
    place = tmp_path / "out" / places[0]
    assert json.loads((place / "actions.json").read_text())[0]["outcome"]["state"] == "done"
    told = json.loads((place / "iteration.json").read_text())
    assert (told["model"], told["number"], told["agent"]) == ("scripted:model", 1, "main")
    assert "--- system ---\nP" in (place / "context.txt").read_text()
    assert (place / "reply.txt").read_text().startswith("Looking.")


def test_an_agent_reads_its_own_past_and_no_other(tmp_path: Path) -> None:
    def acting(action: str) -> str:
        return f"<actions>{action}</actions>"

    replies = [
        "The cat is called Tom.\n" + acting('<print text="x"/>'),
        acting('<iterations.list/><iterations.search text="CALLED TOM"/><iterations.read number="1"/>'),
        acting('<iterations.read number="9"/><iterations.list agent="other"/>'),
        "Done.",
    ]

    async def play() -> list[str]:
        model = ScriptedModel(replies, native_tools=False)
        definition = Definition("t", dialects=("xml",), capabilities=("print", "iterations.*"), prompt="P")
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("go", workspace=tmp_path, definition=definition, model=model.id)
            seen = await until(session, ended)
        return [ev.body.outcome.text for ev in seen if isinstance(ev.body, e.ActionFinished)]

    _, listed, found, whole, none, other = asyncio.run(play())
    assert listed.startswith("1: scripted:model: print done")
    assert "called Tom" in found
    assert "--- system ---\nP" in whole and "--- print" in whole
    assert "no iteration 9" in none and "One below you is written main/NAME." in other
