"""What the journal costs: CPU of an append, alone and in groups, and the time to wake a session.

    python benchmarks/journal.py [--events 20000] [--folder DIR]

CPU is that of the whole process, with the writing thread and the kernel's part of it; a synced
write waits for the disk besides. Goal: 0.25 ms CPU for one small event.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textor.events import ActionStarted, Event, NoteSet
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.journal.sqlite import SqliteJournal

SINGLE = 1_000
TOGETHER = 100
ROUNDS = 20


def small(number: int) -> Event:
    return Event(ActionStarted("main", f"action-{number}"), f"event-{number}", 1_700_000_000.0 + number)


async def measured(work: Callable[[], Awaitable[object]], count: int) -> tuple[float, float]:
    """(CPU ms, wall ms) of each of `count` things that `work` does."""
    cpu, wall = time.process_time(), time.perf_counter()
    await work()
    return (time.process_time() - cpu) * 1e3 / count, (time.perf_counter() - wall) * 1e3 / count


async def bench(journal: Journal, events: int) -> list[tuple[str, float, float]]:
    await journal.create("wake", [Event(NoteSet("main", "a", "b"), "first", 0.0)])
    for start in range(0, events, 1000):
        await journal.append("wake", [small(i) for i in range(start, start + 1000)], epoch=0)
    await journal.create("small", [Event(NoteSet("main", "a", "b"), "first", 0.0)])
    ids = iter(range(10_000_000))

    async def single() -> None:
        for _ in range(SINGLE):
            await journal.append("small", [small(next(ids))], epoch=0)

    async def inputs() -> None:
        for _ in range(SINGLE):
            await journal.append("small", [small(next(ids))], epoch=None)

    async def together() -> None:
        for _ in range(ROUNDS):
            await asyncio.gather(
                *(journal.append("small", [small(next(ids))], epoch=0) for _ in range(TOGETHER))
            )

    async def wake() -> None:
        count = 0
        async for _ in journal.read("wake"):
            count += 1
        assert count == events + 1

    rows = [("one event, host", *await measured(single, SINGLE))]
    rows.append(("one event, input", *await measured(inputs, SINGLE)))
    rows.append((f"one of {TOGETHER} at once", *await measured(together, ROUNDS * TOGETHER)))
    rows.append((f"wake, {events:,} events", *await measured(wake, 1)))
    await journal.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where the database lies (default: temporary)"
    )
    options = parser.parse_args()
    print(f"{'':10}{'':26}{'CPU ms':>10}{'wall ms':>10}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:

        async def both() -> None:
            for journal in (SqliteJournal(Path(folder) / "bench.db"), MemoryJournal()):
                for name, cpu, wall in await bench(journal, options.events):
                    kind = type(journal).__name__.removesuffix("Journal").lower()
                    print(f"{kind:10}{name:26}{cpu:10.3f}{wall:10.3f}")

        asyncio.run(both())


if __name__ == "__main__":
    main()
