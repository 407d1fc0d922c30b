"""Answers at the gate: what they are bound to, how long they hold, and how they are taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_parts import EVIL, Case, World, do, make_folder, open_world

from textor import events as e
from textor.assembly import Machine
from textor.cli import main
from textor.errors import UseError
from textor.events import Definition, Event
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.journal.sqlite import SqliteJournal
from textor.policy.rules import kept
from textor.session import Session
from textor.testing import Call, Reply, ScriptedModel


def run(command: str, id: str = "") -> Reply:
    return Reply(calls=(Call("host_run", {"command": command}, id),))


async def begin(made: Machine, model: ScriptedModel, folder: Path, policy: str = "ask") -> Session:
    definition = Definition("tester", capabilities=("*",), prompt="Work.")
    return await made.create(workspace=folder / "work", definition=definition, model=model.id, policy=policy)


async def until(session: Session, wanted: Callable[[Event], bool], after: int = 0) -> Event:
    async def read() -> Event:
        async for event in session.follow(after):
            if wanted(event):
                return event
        raise AssertionError

    return await asyncio.wait_for(read(), 20)


def asks(event: Event) -> bool:
    return isinstance(event.body, e.ActionJudged) and event.body.verdict == "ask"


async def close(made: Machine, journal: Journal) -> None:
    assert made.host is not None
    await made.host.close()
    await journal.close()


def test_an_approval_of_x_is_none_of_y_after_a_restart(tmp_path: Path) -> None:
    """Case H3: the same id, other arguments, another process: asked again."""

    def write(path: str) -> Reply:
        return Reply(calls=(Call("files_write", {"path": path, "text": "hi"}, "call_1"),))

    first = Case("", [write("x.txt"), "written"])
    second = Case("", [write("y.txt"), write("x.txt"), "written"])
    make_folder(tmp_path, first)
    path = tmp_path / "journal.db"

    async def before() -> tuple[str, str, str]:
        made, [model, _] = await open_world(World(), first, tmp_path, journal := SqliteJournal(path))
        session = await begin(made, model, tmp_path)
        await session.post("Write.")
        judged = (await until(session, asks)).body
        assert isinstance(judged, e.ActionJudged)
        await session.answer(judged.action, True, scope="session", digest=judged.digest)
        await until(session, lambda ev: isinstance(ev.body, e.TurnEnded))
        await close(made, journal)
        return session.id, judged.action, judged.digest

    async def after(id: str, digest: str) -> None:
        made, _ = await open_world(World(), second, tmp_path, journal := SqliteJournal(path))
        session = await made.session(id)
        seen = (await session.state()).seq
        await session.post("Write again.")
        asked = await until(session, asks, seen)
        assert isinstance(asked.body, e.ActionJudged)
        # the approval of x, sent again for the id of y, is void
        await session.answer(asked.body.action, True, digest=digest)
        work = (await session.state()).agents["main"].work[0]
        assert (work.verdict, work.action.arguments["path"]) == ("ask", "y.txt")
        assert not (tmp_path / "work" / "y.txt").exists()
        await session.answer(asked.body.action, False, digest=asked.body.digest)
        # and x itself, under the same id of the call once more, needs no second yes
        await until(session, lambda ev: isinstance(ev.body, e.TurnEnded), seen)
        verdicts = [
            ev.body.verdict async for ev in journal.read(id, seen) if isinstance(ev.body, e.ActionJudged)
        ]
        assert verdicts == ["ask", "allow"]
        await close(made, journal)

    id, _, digest = asyncio.run(before())
    asyncio.run(after(id, digest))


def test_always_covers_this_call_in_all_sessions_and_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case("", [run("make"), "made", run("make"), run("make all"), "made"])
    make_folder(tmp_path, case)

    async def play() -> list[str]:
        journal = SqliteJournal(tmp_path / "own" / "journal.db")
        made, [model, _] = await open_world(World(), case, tmp_path, journal)
        session = await begin(made, model, tmp_path)
        await session.post("Make.")
        judged = (await until(session, asks)).body
        assert isinstance(judged, e.ActionJudged)
        await session.answer(judged.action, True, scope="always")
        await until(session, lambda ev: isinstance(ev.body, e.TurnEnded))
        await close(made, journal)
        # another session, after a restart
        journal = SqliteJournal(tmp_path / "own" / "journal.db")
        case2 = Case("", [*case.script[2:]])
        made, [model, _] = await open_world(World(), case2, tmp_path, journal)
        session = await begin(made, model, tmp_path)
        await session.post("Make.")
        asked = await until(session, asks)
        seen = [ev.body async for ev in journal.read(session.id) if isinstance(ev.body, e.ActionJudged)]
        assert isinstance(asked.body, e.ActionJudged)
        await close(made, journal)
        return [body.verdict for body in seen]

    assert asyncio.run(play()) == ["allow", "ask"]
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "own"))
    assert main(["rules"]) == 0
    shown = capsys.readouterr().out
    assert "host_run" in shown
    assert '{"command":"make"}' in shown
    key = next(line.split()[0] for line in shown.splitlines() if "host_run" in line)
    assert main(["rules", "remove", "nothing"]) == 2
    assert key in capsys.readouterr().err
    assert main(["rules", "remove", key]) == 0
    capsys.readouterr()
    assert main(["rules", "list"]) == 0
    assert "There are no rules" in capsys.readouterr().out


def test_a_pattern_covers_what_it_says_in_this_session(tmp_path: Path) -> None:
    commands = ["git status", "git log -3", "git status && rm -rf x", "env sh -c 'git log'"]
    case = Case("", [*map(run, commands), "done"])
    make_folder(tmp_path, case)

    async def play() -> None:
        made, [model, _] = await open_world(World(), case, tmp_path, journal := MemoryJournal())
        session = await begin(made, model, tmp_path)
        await session.post("Go.")
        judged = (await until(session, asks)).body
        assert isinstance(judged, e.ActionJudged)
        with pytest.raises(UseError, match="does not cover"):
            await session.answer(judged.action, True, scope="session", command="git push *")
        await session.answer(judged.action, True, scope="session", command="git *")
        asked: list[int] = [0]
        for _ in range(2):
            event = await until(session, asks, asked[-1] or (await session.state()).seq - 1)
            while isinstance(event.body, e.ActionJudged) and event.body.digest == judged.digest:
                event = await until(session, asks, event.seq)
            assert isinstance(event.body, e.ActionJudged)
            await session.answer(event.body.action, False)
            asked.append(event.seq)
        await until(session, lambda ev: isinstance(ev.body, e.TurnEnded))
        verdicts = [
            ev.body.verdict async for ev in journal.read(session.id) if isinstance(ev.body, e.ActionJudged)
        ]
        assert verdicts == ["ask", "allow", "ask", "ask"]
        assert kept((await session.state()).stored)[0][1].command == "git *"
        await close(made, journal)

    asyncio.run(play())


def test_sending_asks_even_after_always(tmp_path: Path) -> None:
    send = do("mail_send", to="boss@firm.example", body="hi")
    case = Case("", [send, send, "sent"])
    make_folder(tmp_path, case)

    async def play() -> None:
        world = World()
        made, [model, _] = await open_world(world, case, tmp_path, journal := MemoryJournal())
        session = await begin(made, model, tmp_path, policy="yes")
        await session.post("Send.")
        first = await until(session, asks)
        assert isinstance(first.body, e.ActionJudged)
        assert first.body.reason == "it sends, publishes or changes something of others"
        await session.answer(first.body.action, True, scope="always")
        second = await until(session, asks, first.seq)
        assert isinstance(second.body, e.ActionJudged)
        await session.answer(second.body.action, False)
        await until(session, lambda ev: isinstance(ev.body, e.TurnEnded))
        assert len(world.done) == 1
        await close(made, journal)

    asyncio.run(play())


def test_always_is_followed_while_the_machine_runs(tmp_path: Path) -> None:
    case = Case("", [run("make"), "made", run("make"), "made"])
    make_folder(tmp_path, case)

    async def play() -> None:
        made, [model, _] = await open_world(World(), case, tmp_path, journal := MemoryJournal())
        first = await begin(made, model, tmp_path)
        await first.post("Make.")
        judged = (await until(first, asks)).body
        assert isinstance(judged, e.ActionJudged)
        await first.answer(judged.action, True, scope="always")
        await until(first, lambda ev: isinstance(ev.body, e.TurnEnded))
        other = await begin(made, model, tmp_path)
        await other.post("Make.")
        event = await until(other, lambda ev: isinstance(ev.body, e.ActionJudged))
        assert isinstance(event.body, e.ActionJudged)
        assert event.body.verdict == "allow"
        await close(made, journal)

    asyncio.run(play())


def test_edited_arguments_are_judged_anew_as_the_persons_own(tmp_path: Path) -> None:
    case = Case("", [do("web_read", url=EVIL), run("curl evil"), "ran"])
    make_folder(tmp_path, case)

    async def play() -> None:
        world = World()
        made, [model, _] = await open_world(world, case, tmp_path, journal := MemoryJournal())
        session = await begin(made, model, tmp_path, policy="yes")
        await session.post("Go.")
        judged = (await until(session, asks)).body
        assert isinstance(judged, e.ActionJudged)
        assert judged.reason == (
            "it runs a program on this machine; what it goes by came from outside (web:evil.example)"
        )
        await session.answer(judged.action, True, arguments={"command": "make"})
        await until(session, lambda ev: isinstance(ev.body, e.TurnEnded))
        again = [
            ev.body
            async for ev in journal.read(session.id)
            if isinstance(ev.body, e.ActionJudged) and ev.body.action == judged.action
        ]
        assert [body.verdict for body in again] == ["ask", "allow"]
        assert again[0].digest != again[1].digest
        assert world.done[-1] == ("ran", "make")
        await close(made, journal)

    asyncio.run(play())
