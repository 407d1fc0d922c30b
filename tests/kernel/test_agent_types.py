"""Agent types at run time: listed, written by agents, rehearsed, kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kernel_parts import bodies, kinds, machine, until

from textor import capability
from textor import events as e
from textor.events import Event, Limits
from textor.kernel.state import fold_all
from textor.messages import Context
from textor.testing import Call, Reply, ScriptedModel
from textor.testing.model import ModelItem

READER = """---
name: log-reader
purpose: Finds the cause of a failure in log files.
capabilities: [files.read, files.search, ask]
---
You read log files.
"""
AUTHOR = """---
purpose: Writes agent types.
capabilities: [agents.*, {capabilities}]
---
You write agent types.
"""


def create(markdown: str) -> Reply:
    return Reply(calls=(Call("agents_create", {"markdown": markdown}),))


def main_ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded) and event.body.agent == "main"


def author(folder: Path, capabilities: str) -> None:
    agents = folder / ".textor" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    (agents / "author.md").write_text(AUTHOR.format(capabilities=capabilities))


def outcomes(events: Sequence[Event], agent: str = "main") -> list[str]:
    return [
        f"{b.outcome.state}: {b.outcome.text}" for b in bodies(events, e.ActionFinished) if b.agent == agent
    ]


def play(tmp_path: Path, script: list[ModelItem], capabilities: str, **more: Any) -> list[Event]:
    """The events of one turn of an author with these capabilities besides `agents.*`."""
    author(tmp_path, capabilities)

    async def run() -> list[Event]:
        model = ScriptedModel(script)
        async with machine(model, [sing], tmp=tmp_path, default=model.id) as made:
            session = await made.create("go", workspace=tmp_path, agent="author", **more)
            return await until(session, main_ended)

    return asyncio.run(run())


@capability(effects=("outward",), repeat="once")
async def sing(song: str) -> str:
    """Sing to the world."""
    return song


def test_a_type_is_made_and_called_in_the_same_session(tmp_path: Path) -> None:
    called = Call("call", {"type": "log-reader", "name": "ann", "message": "Why?"})
    script = [create(READER), Reply(calls=(called,)), "The disk was full.", "It was full."]
    events = play(tmp_path, script, "call, ask, files.read, files.search")
    assert outcomes(events)[0].startswith("done: log-reader was tried and can be called")
    assert outcomes(events)[1] == "done: The disk was full."
    (stored,) = bodies(events, e.Stored)
    assert (stored.area, stored.key, stored.value) == ("agent", "log-reader", READER)
    ann = next(b for b in bodies(events, e.AgentCreated) if b.agent == "main/ann")
    assert ann.offered == ("files.read", "files.search", "ask")
    assert ann.prefix[0].text.startswith("You read log files.")
    # the rehearsal left nothing behind, and the state is a fold of what is there
    assert kinds(events).count("agent.created") == 2
    from textor.kernel.state import State

    assert fold_all(State(), events).stored == {("agent", "log-reader"): READER}


def changed(old: str, new: str) -> str:
    assert old in READER
    return READER.replace(old, new)


@pytest.mark.parametrize(
    ("markdown", "says"),
    [
        ("You read.", ["has no name", "`name: wiki-reader`"]),
        (changed("log-reader", "Log Reader"), ["'Log Reader'", "small letters"]),
        (changed("purpose", "purpos"), ["log-reader.md, line 3", "did you mean purpose?"]),
        (changed("files.read,", "files.reed,"), ["line 4", "no capability files.reed", "mean files.read?"]),
        (changed("files.read,", "files.*,"), ["line 4", "a pattern; name each", "files.list, files.read"]),
        (changed("files.read,", "files.write,"), ["line 4", "files.write", "do not have yourself: write"]),
        (changed("files.read,", "shell.run,"), ["line 4", "execute"]),
        (changed("files.read,", "sing,"), ["line 4", "outward"]),
        (changed("files.read,", "call,"), ["line 4", "call has effects", "reaches"]),
        (changed("You read log files.\n", ""), ["the prompt is empty"]),
        (changed("purpose: Finds the cause of a failure in log files.\n", ""), ["purpose is empty"]),
        (changed("log-reader", "coder"), ["already an agent type coder"]),
        (changed("\n---\n", "\nlimits: {iterations: 500}\n---\n"), ["line 5", "is 500; you have 7 yourself"]),
        (changed("\n---\n", "\nmodel: nowhere:x\n---\n"), ['no provider "nowhere"']),
        (changed("\n---\n", "\nlimits: {tokens: 1}\n---\n"), ["Tried once", "limit: tokens"]),
        (changed("\n---\n", "\ntitles: {NOTE: ask}\n---\n"), ["line 5", "dialects must name it"]),
        (changed("You read log files.", "You read. " * 24_100), ["about 6", "may have 60000"]),
        (
            changed("files.read, files.search, ask]", "]\ndialects: [plan]"),
            ["none of its capabilities has a phrase for the dialect plan"],
        ),
    ],
)
def test_what_is_wrong_with_a_type_is_told(tmp_path: Path, markdown: str, says: list[str]) -> None:
    limits = Limits(iterations=7)
    events = play(tmp_path, [create(markdown), "done"], "ask, files.read, files.search", limits=limits)
    (told,) = outcomes(events)
    assert told.startswith("failed: "), told
    for part in says:
        assert part in told
    assert not bodies(events, e.Stored)


@pytest.mark.parametrize("dialect", ["tools", "step", "plan", "script"])
def test_a_type_of_any_dialect_is_rehearsed(tmp_path: Path, dialect: str) -> None:
    markdown = changed("ask]", f"ask]\ndialects: [{dialect}]\nreview: true")
    events = play(tmp_path, [create(markdown), "done"], "ask, files.read, files.search")
    assert outcomes(events)[0].startswith("done: log-reader was tried")


def test_a_type_that_cannot_answer_is_found_out(tmp_path: Path) -> None:
    pytest.importorskip("re2")
    rule = "dialects: [script]\npatterns: [{pattern: '(?P<question>.*)', capability: ask}]"
    events = play(
        tmp_path, [create(changed("ask]", f"ask]\n{rule}")), "done"], "ask, files.read, files.search"
    )
    assert "did not end in a reply (failed: a plain answer did not end the turn" in outcomes(events)[0]


def test_a_name_stands_for_one_text(tmp_path: Path) -> None:
    other = READER + "Quote the line.\n"
    events = play(
        tmp_path, [create(READER), create(READER), create(other), "done"], "ask, files.read, files.search"
    )
    states = [told.partition(":")[0] for told in outcomes(events)]
    assert states == ["done", "done", "failed"]
    assert "already an agent type log-reader. Take another name." in outcomes(events)[2]


def test_a_type_is_kept_for_all_sessions_when_a_person_agrees(tmp_path: Path) -> None:
    author(tmp_path, "ask, files.read, files.search")
    keep = Reply(calls=(Call("agents_keep", {"type": "log-reader"}),))

    async def run() -> None:
        model = ScriptedModel([create(READER), keep, keep, "kept", "Ready."])
        async with machine(model, tmp=tmp_path, default=model.id) as made:
            session = await made.create("go", workspace=tmp_path, agent="author", policy="edits")
            for allow in (False, True):
                asked = (await until(session, _asks, (await session.state()).seq))[-1].body
                assert not made.config.agents.exists()
                await session.answer(asked.action, allow)
            events = await until(session, main_ended)
            assert outcomes(events)[1].startswith("denied")
            assert (made.config.agents / "log-reader.md").read_text() == READER
            another = await made.create("why?", workspace=tmp_path / "elsewhere", agent="log-reader")
            assert (await until(another, main_ended))[-1].body.text == "Ready."

    asyncio.run(run())


def _asks(event: Event) -> bool:
    return isinstance(event.body, e.ActionJudged) and event.body.verdict == "ask"


def test_what_cannot_be_kept_says_why(tmp_path: Path) -> None:
    author(tmp_path, "ask, files.read, files.search")

    async def run() -> None:
        def script(context: Context) -> ModelItem:
            step = len(context.messages) // 2
            if step == 3:  # somebody else was faster
                made.config.agents.mkdir(parents=True)
                (made.config.agents / "log-reader.md").write_text("another")
            keep = [Reply(calls=(Call("agents_keep", {"type": t}),)) for t in ("log-raeder", "log-reader")]
            return [create(READER), *keep, "done"][step - 1]

        model = ScriptedModel(script)
        async with machine(model, tmp=tmp_path, default=model.id) as made:
            session = await made.create("go", workspace=tmp_path, agent="author", policy="yes")
            _, unknown, taken = outcomes(await until(session, main_ended))
            assert unknown.startswith("failed: 'log-raeder' was not made in this session.")
            assert taken.startswith("failed: ") and "is there already, with another text" in taken
            assert (made.config.agents / "log-reader.md").read_text() == "another"

    asyncio.run(run())


def test_types_are_listed_by_what_they_are_for(tmp_path: Path) -> None:
    queries = ["search for something on the web", "", "zzz"]
    asks = [Reply(calls=(Call("agents_list", {"query": q}),)) for q in queries]
    made = changed("log-reader", "abacus")
    events = play(tmp_path, [create(made), *asks, "done"], "ask, files.read, files.search")
    _, by_query, all_, none = [b.outcome.data for b in bodies(events, e.ActionFinished)]
    assert by_query[0]["type"] == "search-engine"
    assert len(by_query) < len(all_)
    names = [row["type"] for row in all_]
    assert names[0] == "abacus" and {"author", "main", "coder"} <= set(names)
    assert none == all_


def test_a_type_of_the_session_hides_a_file(tmp_path: Path) -> None:
    """A type of the session comes before a file of its name that appears later."""
    called = Call("call", {"type": "log-reader", "name": "ann", "message": "Why?"})

    def script(context: Context) -> ModelItem:
        if "You read log files." in str(context.messages[0]):
            return "mine"
        if len(context.messages) < 3:
            return create(READER)
        (tmp_path / ".textor" / "agents" / "log-reader.md").write_text("not mine")
        return Reply(calls=(called,)) if len(context.messages) < 5 else "done"

    author(tmp_path, "call, ask, files.read, files.search")

    async def run() -> None:
        model = ScriptedModel(script)
        async with machine(model, tmp=tmp_path, default=model.id) as made:
            session = await made.create("go", workspace=tmp_path, agent="author")
            assert outcomes(await until(session, main_ended))[1] == "done: mine"

    asyncio.run(run())
