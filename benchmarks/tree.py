"""Many live trees in one process: memory of a session, and what the machine adds to an iteration.

    python benchmarks/tree.py [--sessions 1000] [--rate 100] [--seconds 20]

Each session is a tree of three: `main` waits for two agents, and each of these performs a
capability, `tick`, that ends when the load says so. An iteration is from there to its next `tick`:
outcome and reply durable, the model (in process, instant) asked, read, judged, begun. Its time is
what the machine adds, from when it was due, so a queue counts. Then all turns end, and what is
still held of an idle session is measured.

Goals on 2 cores: at most 1 MB a live session, under 1 kB an idle one, p95 under 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from textor import capability
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.functions import FunctionProvider
from textor.config import Config
from textor.hosts.local import LocalHost
from textor.journal.sqlite import SqliteJournal
from textor.messages import Context
from textor.processors import Models
from textor.testing import Call, Reply, ScriptedModel

BOSS = "---\npurpose: Calls.\nmodel: scripted:model\ncapabilities: [call]\n---\nYou call two agents.\n"
WORKER = "---\npurpose: Ticks.\nmodel: scripted:model\ncapabilities: [tick]\n---\nYou tick.\n"


class Load:
    """The agents at work by key, and the times that their iterations took, in seconds."""

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[str]] = {}
        self.due: dict[str, float] = {}
        self.times: list[float] = []
        self.arrived = asyncio.Event()

    async def tick(self, key: str) -> str:
        if due := self.due.pop(key, None):
            self.times.append(time.perf_counter() - due)
        self.waiting[key] = asyncio.get_running_loop().create_future()
        self.arrived.set()
        return await self.waiting[key]

    def release(self, key: str, word: str, due: float | None = None) -> None:
        if due is not None:
            self.due[key] = due
        self.waiting.pop(key).set_result(word)

    async def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            self.arrived.clear()
            await self.arrived.wait()


def reply(context: Context) -> Reply | str:
    told = [part for message in context.messages for part in message.parts]
    text = next(m.text for m in context.messages if m.role == "user")
    last = getattr(told[-2] if len(told) > 1 else told[-1], "text", "")  # before the status
    number = (re.search(r"(\d+[ab]?)", text) or [""])[0]
    if "You tick" not in context.messages[0].text:
        if context.messages[-1].role == "tool":
            return "done"
        calls = [{"type": "worker", "name": x, "message": f"number {number}{x}"} for x in "ab"]
        return Reply(calls=tuple(Call("call", c) for c in calls), chunk=0)
    return "over" if last == "end" else Reply(calls=(Call("tick", {"key": number}),), chunk=0)


async def open_machine(folder: Path, load: Load) -> Machine:
    """A machine with two agent types, a durable journal and a model that answers at once."""
    agents = folder / ".textor" / "agents"
    agents.mkdir(parents=True)
    (agents / "boss.md").write_text(BOSS)
    (agents / "worker.md").write_text(WORKER)

    @capability(repeat="idempotent")
    async def tick(key: str) -> str:
        """Wait for the next tick."""
        return await load.tick(key)

    config = Config(path=folder / "config.toml", data=folder)
    models = Models(config)
    model = ScriptedModel(lambda context: model.asked.clear() or reply(context))  # type: ignore[func-returns-value]
    models.add(model)
    journal = SqliteJournal(folder / "journal.db")
    providers = [FunctionProvider([tick]), *await core_providers()]
    made = Machine(config, await make_services(config, journal, models, providers), models)
    made.host = LocalHost(made.services)
    await made.host.start()
    return made


async def open_trees(made: Machine, load: Load, folder: Path, count: int) -> None:
    """Sessions until all of them wait in `tick`, twice each; some at a time."""
    for at in range(count):
        await made.create(f"tree {at}", workspace=folder, agent="boss")
        await load.until(lambda: len(load.waiting) >= 2 * at - 40)  # noqa: B023 - awaited at once
    await load.until(lambda: len(load.waiting) == 2 * count)


async def offer(load: Load, rate: float, seconds: float) -> None:
    """Iterations at a fixed rate, whether or not the machine keeps up."""
    began, chance = time.perf_counter(), random.Random(7)
    for number in range(int(rate * seconds)):
        due = began + number / rate
        await asyncio.sleep(max(due - time.perf_counter(), 0))
        await load.until(lambda: bool(load.waiting))
        load.release(chance.choice([*load.waiting]), f"tick {number}", due)
    await load.until(lambda: not load.due)


async def close_trees(load: Load, count: int) -> None:
    """End every turn, and wait until no session is at work."""
    await load.until(lambda: len(load.waiting) == 2 * count)
    for key in [*load.waiting]:
        load.release(key, "end")
    while busy := [task for task in asyncio.all_tasks() if task.get_name().startswith("session ")]:
        await asyncio.wait(busy)


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def latency(folder: Path, count: int, rate: float, seconds: float) -> None:
    load = Load()
    made = await open_machine(folder, load)
    before, began = resident(), time.perf_counter()
    await open_trees(made, load, folder, count)
    live = (resident() - before) / count
    print(f"{count} sessions of 3 agents opened in {time.perf_counter() - began:.1f} s")
    print(f"live: {live / 1000:.0f} kB of resident memory a session (goal 1000)")
    spent = time.process_time()
    await offer(load, rate, seconds)
    spent = time.process_time() - spent
    times = sorted(load.times)
    p50, p95, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.95, 0.99))
    print(f"{len(times)} iterations at {rate:g} a second, {spent / len(times) * 1000:.1f} ms CPU each")
    print(f"added latency: p50 {p50:.1f} ms, p95 {p95:.1f} ms (goal 50), p99 {p99:.1f} ms")
    await close_trees(load, count)
    await made.close()


async def memory(folder: Path, count: int) -> None:
    """Bytes that Python holds, exactly: traced, and therefore in a process of its own. The
    lesser of the last two of three rounds counts: what is made once is no session's."""
    load = Load()
    made = await open_machine(folder, load)
    tracemalloc.start()
    held, live = 0, 0
    kept: list[int] = []
    for _ in range(3):
        before = held
        await open_trees(made, load, folder, count)
        live = traced() - before
        await close_trees(load, count)
        held = traced()
        kept.append(held - before)
    print(f"traced: {live / count / 1000:.1f} kB a live session (goal 1000)")
    print(f"traced: {min(kept[1:]) / count / 1000:.2f} kB an idle session (goal 1)")
    await made.close()


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100, help="iterations a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.memory:
            asyncio.run(memory(Path(folder), options.sessions))
            return
        asyncio.run(latency(Path(folder), options.sessions, options.rate, options.seconds))
    some = min(options.sessions, 200)  # tracing is slow
    subprocess.run([sys.executable, __file__, "--memory", "--sessions", str(some)], check=True)


if __name__ == "__main__":
    os.environ.setdefault("TEXTOR_CONFIG", os.devnull)
    main()
