"""`textor iterations`, after a session that really ran."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textor.assembly import open_machine
from textor.config import load
from textor.journal.sqlite import SqliteJournal
from textor.testing import Call, Reply

from .conftest import Program

Scripted = Callable[..., Any]


def test_iterations_are_listed_shown_and_exported(textor: Program, scripted: Scripted) -> None:
    with scripted([Reply("I look.", calls=(Call("files_list", {"folder": "."}),)), "Nothing is here."]):
        session = json.loads(textor("run", "--json", "what is here?").stdout)["session"]
    listed = textor("iterations", "list", session)
    assert listed.returncode == 0, listed.stderr
    first, _ = (line.split() for line in listed.stdout.splitlines()[1:])
    assert first[1] == "main" and "files.list" in first and "Nothing is here." in listed.stdout
    shown = textor("iterations", "show", session, first[0]).stdout
    assert "what is here?" in shown and "I look." in shown and "--- files.list" in shown
    done = textor("iterations", "export", session, "--to", "out")
    assert (done.returncode, done.stdout) == (0, "2 iterations in out\n")
    folders = sorted(p.name for p in (textor.folder / "out").iterdir())
    assert [f.split("-")[1:] for f in folders] == [["main", "1"], ["main", "2"]]
    assert "I look." in (textor.folder / "out" / folders[0] / "reply.txt").read_text()


def test_what_is_not_there_is_told(textor: Program, scripted: Scripted) -> None:
    with scripted(["Hello."]):
        session = json.loads(textor("run", "--json", "hello").stdout)["session"]
    done = textor("iterations", "show", session, "999")
    assert done.returncode == 2 and f"`textor iterations list {session}`" in done.stderr


def test_who_reads_a_session_does_not_go_on_with_it(textor: Program, scripted: Scripted) -> None:
    """It was left in the middle: what is due there is done by who resumes it."""

    async def begun() -> str:
        async with open_machine(load(env=textor.env), host=False) as machine:
            session = await machine.create("hello", workspace=textor.folder, agent="main")
            return session.id

    async def count(session: str) -> int:
        journal = SqliteJournal(Path(textor.env["TEXTOR_DATA"]) / "journal.db")
        events = [event async for event in journal.read(session)]
        await journal.close()
        return len(events)

    with scripted(["Hello."]) as server:
        session = asyncio.run(begun())
        before = asyncio.run(count(session))
        for words in (["iterations", "list"], ["iterations", "export"], ["sessions", "show"]):
            assert textor(*words, session).returncode == 0
        assert textor("sessions").returncode == textor("sessions", "replay", session).returncode == 0
        assert (asyncio.run(count(session)), len(server.requests)) == (before, 0)
        assert textor("sessions", "resume", session).stdout == "Hello.\n"
