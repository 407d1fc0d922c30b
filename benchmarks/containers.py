"""A warm sandboxed `true` against a fresh `docker run` of it, in one run.

Goals (issues 5 and 7): the warm one at most a fifth of the fresh one. Needs an engine with the
images that `scripts/engine.sh` makes. Exits with 1 when the goal is missed.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from textor.capabilities.processes import Limits
from textor.capabilities.sandbox import find_sandbox
from textor.containers.engine import find_engine
from textor.containers.labels import this_process
from textor.containers.sandbox import ContainerSandbox

IMAGE = "textor/sandbox:test"
RUNS = 15
GOAL = 0.2


def fresh(engine: str, folder: Path) -> float:
    """Milliseconds of one `docker run`, with the limits that a person would set by hand."""
    limits = ["--network", "none", "--memory", "2g", "--pids-limit", "256", "-v", f"{folder}:{folder}"]
    begun = time.perf_counter()
    subprocess.run([engine, "run", "--rm", *limits, IMAGE, "true"], check=True)
    return 1000 * (time.perf_counter() - begun)


async def main() -> int:
    engine = await find_engine()
    if engine is None or not await engine.has_image(IMAGE):
        print("Not measured: no engine with the image; scripts/engine.sh makes both.")
        return 0
    limits, times = Limits(), {"fresh": [], "first": [], "warm": [], "bubblewrap": []}
    bubblewrap = find_sandbox()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sandbox = ContainerSandbox(engine, IMAGE, this_process())

        async def run(box: object, kind: str) -> None:
            begun = time.perf_counter()
            ended = await box.run(["true"], folder, timeout=60, limits=limits)
            times[kind].append(1000 * (time.perf_counter() - begun))
            assert ended.exit_status == 0

        await run(sandbox, "first")
        for _ in range(RUNS):
            times["fresh"].append(await asyncio.to_thread(fresh, engine.kind, folder))
            await run(sandbox, "warm")  # the next one was started while the fresh one ran
            if bubblewrap is not None:
                await run(bubblewrap, "bubblewrap")
        begun = time.perf_counter()
        for _ in range(RUNS):
            await sandbox.run(["true"], folder, timeout=60, limits=limits)
        row = 1000 * (time.perf_counter() - begun) / RUNS
        await sandbox.close()
    for kind, values in times.items():
        if values:
            print(f"{kind:12} p50 {statistics.median(values):7.1f} ms")
    print(f"{'in a row':12} each {row:6.1f} ms (no time to warm the next one)")
    share = statistics.median(times["warm"]) / statistics.median(times["fresh"])
    print(f"{'warm/fresh':12} {share:11.3f}   goal {GOAL:g}")
    return int(share > GOAL)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
