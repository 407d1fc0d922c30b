"""Another process that uses a journal: python process.py PATH COMMAND ARGUMENTS. Says on stdout,
at once, what was acknowledged. Not a test: run by those of test_journal_processes.py."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from textor.events import Event, MessagePosted, NoteSet
from textor.journal.lock import HostLock
from textor.journal.sqlite import SqliteJournal


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def batches(journal: SqliteJournal, name: str) -> None:
    """Append batches, several at a time, some with contents above 64 kB, until killed."""
    epoch = await journal.claim("s")
    dice = random.Random(name)

    async def one(batch: str) -> None:
        size = dice.randint(1, 6)
        text = "x" * (100_000 if dice.random() < 0.1 else dice.randint(0, 2000))
        events = [
            Event(NoteSet("main", f"{batch} {i} {size}", text), f"{batch}.{i}", 1.0) for i in range(size)
        ]
        stored = await journal.append("s", events, epoch=epoch)
        say(batch, stored[-1].seq)

    number = 0
    while True:
        await asyncio.gather(*(one(f"{name}-{number + i}") for i in range(3)))
        number += 3


async def inputs(journal: SqliteJournal, name: str, count: str) -> None:
    """Post `count` inputs of our own and as many that every process posts."""
    say("ready")
    sys.stdin.readline()

    async def one(id: str) -> None:
        [stored] = await journal.append("s", [Event(MessagePosted("main", name), id, 1.0)], epoch=None)
        say(stored.id, stored.seq)

    for i in range(int(count)):
        await asyncio.gather(one(f"{name}-{i}"), one(f"shared-{i}"))


async def claim(journal: SqliteJournal) -> None:
    say(await journal.claim("s"))


async def main(path: str, command: str, *arguments: str) -> None:
    if command == "host":
        lock = HostLock(Path(path))
        say(lock.acquire())
        sys.stdin.readline()
        return
    journal = SqliteJournal(Path(path))
    if command == "batches":
        await batches(journal, *arguments)
    elif command == "inputs":
        await inputs(journal, *arguments)
    else:
        await claim(journal)
    await journal.close()


asyncio.run(main(*sys.argv[1:]))
