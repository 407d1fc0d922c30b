"""The picture of the AIlice document, end to end over HTTP; also killed and resumed.

`TEXTOR_GOLDEN=write pytest tests/kernel/test_picture.py` writes the golden journal anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from picture import CATS, PAGE, SESSION, Voices, normalised, play, website_ended

from textor.events import Event
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.journal.sqlite import SqliteJournal
from textor.testing import ScriptedServer

GOLDEN = Path(__file__).with_name("golden") / "ailice_picture.jsonl"


async def open_gate(journal: Journal, voices: Voices) -> None:
    """Let the spider speak once the website is there."""
    async for event in journal.follow(SESSION):
        if website_ended(event):
            voices.website_done.open()
            return


def check(events: list[Event], folder: Path) -> None:
    # a write that a kill interrupted is done again: it may find its own file
    told = normalised(events).replace("Replaced cats", "Made cats")
    if os.environ.get("TEXTOR_GOLDEN") == "write":
        GOLDEN.write_text(told, "utf-8")
    assert told.splitlines() == GOLDEN.read_text("utf-8").splitlines()
    assert (folder / "work" / "cats.html").read_text() == PAGE
    assert (folder / "work" / "cats.js").read_text() == CATS


def test_the_page_gets_built(tmp_path: Path) -> None:
    voices = Voices()

    async def run(url: str) -> list[Event]:
        journal = MemoryJournal()
        gate = asyncio.create_task(open_gate(journal, voices))
        events = await play(tmp_path, url, journal)
        await gate
        return events

    with ScriptedServer(voices) as server:
        events = asyncio.run(run(server.url))
        requests = [request.json for request in server.requests]
    check(events, tmp_path)
    assert len(requests) == 14
    stable_over_the_wire(requests)


def stable_over_the_wire(requests: list[dict[str, Any]]) -> None:
    """Of each agent, a request begins with the one before it, byte for byte, without its status."""
    agents: dict[str, list[dict[str, Any]]] = {}
    for request in requests:
        task = request["messages"][1]["content"].split("\n\n<status>")[0]
        agents.setdefault(task, []).append(request)
    assert len(agents) == 5
    for asked in agents.values():
        for before, after in pairwise(asked):
            assert after["tools"] == before["tools"]
            kept, grown = (json.dumps(without_status(r["messages"])) for r in (before, after))
            assert grown.startswith(kept[:-1])  # without the bracket that closes the list


def without_status(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as sent, without the status at the end of the last, or that is the last."""
    *rest, last = messages
    content, status, _ = last["content"].rpartition("\n\n<status>")
    assert status
    return [*rest, {**last, "content": content}] if content else rest


@contextmanager
def watched(database: Path, voices: Voices) -> Iterator[None]:
    """Follow the journal from outside, as another process does, while hosts come and go."""

    async def follow() -> None:
        journal = SqliteJournal(database)
        await open_gate(journal, voices)
        await journal.close()

    watcher = threading.Thread(target=lambda: asyncio.run(follow()), daemon=True)
    watcher.start()
    yield
    watcher.join(30)


@pytest.mark.parametrize(("at", "side"), [(2, "after"), (8, "before"), (14, "after"), (23, "before")])
def test_killed_and_resumed_it_comes_to_the_same_end(tmp_path: Path, at: int, side: str) -> None:
    voices = Voices()
    program = Path(__file__).with_name("picture.py")

    def run(url: str, at: int) -> int:
        argv = [sys.executable, str(program), str(tmp_path), url, str(at), side]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode

    with ScriptedServer(voices) as server, watched(tmp_path / "journal.db", voices):
        assert run(server.url, at) == -signal.SIGKILL
        assert run(server.url, 0) == 0

    async def read() -> list[Event]:
        journal = SqliteJournal(tmp_path / "journal.db")
        events = [event async for event in journal.read(SESSION)]
        await journal.close()
        return events

    events = asyncio.run(read())
    check(events, tmp_path)
