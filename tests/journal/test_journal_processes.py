"""Several processes on one journal, and processes that are killed."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from conformance import event, ids, posted, soon

from textor.errors import Fenced
from textor.events import NoteSet
from textor.journal.lock import HostLock
from textor.journal.sqlite import SqliteJournal

PROCESS = Path(__file__).with_name("process.py")


def start(path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROCESS), str(path), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(process: subprocess.Popen[str]) -> None:
    """Wait until it is ready, then let it run."""
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"

    async def make() -> None:
        journal = SqliteJournal(path)
        await journal.create("s", [event("first")])
        await journal.close()

    asyncio.run(make())
    return path


def killed_after(process: subprocess.Popen[str], lines: int) -> list[str]:
    """All that it had acknowledged until it was killed, some way into its work."""
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    said += process.stdout.read().splitlines(keepends=True)
    process.wait()
    assert all(said), "it ended by itself"
    return said


def test_after_kill_9_all_that_was_acknowledged_is_there(path: Path) -> None:
    dice = random.Random(7)
    acknowledged: dict[str, int] = {}
    for round in range(10):
        for line in killed_after(start(path, "batches", f"p{round}"), dice.randint(0, 60)):
            batch, seq = line.split()
            acknowledged[batch] = int(seq)

        async def check() -> None:
            journal = SqliteJournal(path)
            read = [e async for e in journal.read("s")]
            info = await journal.session("s")
            assert info is not None and [e.seq for e in read] == list(range(1, info.head + 1))
            batches: dict[str, list[tuple[int, int]]] = defaultdict(list)
            for e in read[1:]:
                assert isinstance(e.body, NoteSet)
                batch, i, size = e.body.key.split()
                batches[batch].append((int(i), int(size)))
                if int(i) == int(size) - 1 and batch in acknowledged:
                    assert e.seq == acknowledged[batch]
            for parts in batches.values():
                assert parts == [(i, len(parts)) for i in range(len(parts))]
            assert acknowledged.keys() <= batches.keys()
            await journal.close()

        asyncio.run(check())
    assert len(acknowledged) > 100


def test_two_processes_post_to_one_session_at_once(path: Path) -> None:
    processes = [start(path, "inputs", name, "40") for name in ("p", "q")]
    for process in processes:
        go(process)
    said = [line.split() for process in processes for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in processes] == [0, 0]

    async def check() -> None:
        journal = SqliteJournal(path)
        read = [e async for e in journal.read("s")]
        assert [e.seq for e in read] == list(range(1, 122))
        seq_of = {e.id: e.seq for e in read}
        assert len(said) == 160 and all(seq_of[id] == int(seq) for id, seq in said)
        info = await journal.session("s")
        assert info is not None and (info.head, info.status) == (121, "runnable")
        await journal.close()

    asyncio.run(check())


def test_two_processes_make_one_journal_at_once(tmp_path: Path) -> None:
    processes = [start(tmp_path / "new.db", "claim") for _ in range(3)]
    for process in processes:
        process.wait()

    async def check() -> None:
        journal = SqliteJournal(tmp_path / "new.db")
        await journal.create("s", [event("a")])
        await journal.close()

    asyncio.run(check())


def test_followers_and_watchers_notice_other_processes(path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(path)
        changes = journal.changes()
        process = await asyncio.to_thread(start, path, "inputs", "p", "20")
        await asyncio.to_thread(go, process)
        seen: list[tuple[int, str]] = []
        own = iter(range(1000))
        async for e in journal.follow("s"):
            seen.append((e.seq, e.id))
            if e.id.startswith("p"):  # in between we append ourselves
                await journal.append("s", [event(f"own-{next(own)}")], epoch=0)
            if e.id == "own-19":
                break
        assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
        assert [id for _, id in seen] == (await ids(journal))[: len(seen)]
        assert len({id for _, id in seen}) == len(seen)
        assert await anext(changes) == "s"
        await asyncio.to_thread(process.communicate)
        await journal.close()

    asyncio.run(soon(run()))


def test_a_change_by_another_process_is_noticed_while_nothing_is_appended_here(path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(path)
        await journal.create("quiet", [event("a")])
        changes = journal.changes()
        process = await asyncio.to_thread(start, path, "inputs", "p", "1")
        await asyncio.to_thread(go, process)
        assert await anext(changes) == "s"
        await asyncio.to_thread(process.communicate)
        await journal.close()

    asyncio.run(soon(run()))


def test_a_claim_by_another_process_fences_this_one(path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(path)
        epoch = await journal.claim("s")
        await journal.append("s", [event("mine")], epoch=epoch)
        output, _ = await asyncio.to_thread(start(path, "claim").communicate)
        assert int(output) == epoch + 1
        with pytest.raises(Fenced, match="epoch"):
            await journal.append("s", [event("late")], epoch=epoch)
        assert not await journal.set_status("s", "idle", epoch=epoch, head=2)
        await journal.append("s", [posted("input")], epoch=None)
        assert await ids(journal) == ["first", "mine", "input"]
        await journal.close()

    asyncio.run(run())


def test_one_host_and_the_system_releases_its_lock_when_it_is_killed(path: Path) -> None:
    process = start(path, "host")
    assert process.stdout is not None and process.stdout.readline() == "True\n"
    lock = HostLock(path)
    assert not lock.acquire()
    assert lock.holder == process.pid
    process.kill()
    process.wait()
    assert lock.acquire() and lock.acquire()
    assert lock.holder == os.getpid()
    second = HostLock(path)
    assert not second.acquire()
    lock.release()
    assert second.acquire()
    second.release()
