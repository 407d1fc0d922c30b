"""Snapshots: a long session wakes from one, and without any it comes to the same state."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from kernel_parts import begin, machine

from textor import capability
from textor import events as e
from textor.hosts import folds
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import State, fold_all
from textor.session import Session
from textor.testing import Call, Reply, ScriptedModel
from textor.values import text_value


@capability
def double(number: int) -> int:
    """Twice a number."""
    return number * 2


def test_a_session_wakes_from_its_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "EVERY", 10)

    async def run(replies: list[Reply | str], text: str) -> tuple[State, State]:
        model = ScriptedModel(replies)
        journal = SqliteJournal(tmp_path / "journal.db")
        async with machine(model, [double], journal=journal, tmp=tmp_path) as made:
            known = await journal.sessions()
            session = Session(known[0].id, made.services) if known else await begin(made, model)
            for body in (
                e.VariableSet("main", "a", text_value("x", journal.blobs, name="a")),
                e.Stored("area", text, {"k": [1, None]}),
            ):
                await journal.append(session.id, [made.services.event(body)], epoch=None)
            assert (await session.ask(text)).reason == "replied"
            assert made.host is not None
            await asyncio.gather(*made.host._active.values())  # until it rests
            woken = await folds.Folds(journal).state(session.id)
            whole = fold_all(State(), [ev async for ev in journal.read(session.id)])
            rest = [ev async for ev in journal.read(session.id, woken.seq)]
            await journal.close()
            assert woken.seq > 0
            return fold_all(woken, rest), whole

    call = Reply(calls=(Call("double", {"number": 4}),))
    for text in ("first", "second"):
        woken, whole = asyncio.run(run([call, "8"], text))
        assert woken == whole
    # a cache: deleted, or of other code, it is not missed
    with sqlite3.connect(tmp_path / "journal.db") as database:
        database.execute("delete from snapshot")
    monkeypatch.setattr(folds, "code", lambda: "other code")
    woken, whole = asyncio.run(run([call, "8"], "third"))
    assert woken == whole
