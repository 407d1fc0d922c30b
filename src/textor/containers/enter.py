"""A program of its own: one command in a container, as if it ran on this machine.

`python -m textor.containers.enter JSON` makes the container, carries its input and output, ends
with its exit status and removes it. It is two processes: the first waits for the second, which does
the work, and removes the container whatever became of that one. So whoever kills the second, or
the process that started both, leaves no container behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from typing import Any

from textor.values import Json

#: Exit statuses as those of `docker run`: the engine's own fault.
ENGINE_FAULT = 125


def main() -> int:
    told = json.loads(sys.argv[1])
    worker = os.fork()
    if worker == 0:
        _die_with_parent(signal.SIGKILL)
        os._exit(_work(told))
    _die_with_parent(signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.kill(worker, signal.SIGKILL))
    _, status = os.waitpid(worker, 0)
    _leave(told)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _die_with_parent(number: int) -> None:
    """Be sent a signal when the parent ends (Linux); elsewhere reaping has to do."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


def _engine(told: Json) -> Any:
    from textor.containers.engine import Engine

    return Engine(told["address"], told["kind"])


def _work(told: Json) -> int:
    from textor.errors import TextorError

    try:
        return asyncio.run(_run(told))
    except TextorError as error:
        print(error, file=sys.stderr)
        return ENGINE_FAULT


async def _run(told: Json) -> int:
    from pathlib import Path

    from textor.containers.engine import Allowance, Mount, Spec, output_of

    spec = told["spec"]
    mounts = [Mount(Path(m["source"]), m["target"], m["writable"]) for m in spec["mounts"]]
    engine = _engine(told)
    id = await engine.create(Spec(**{**spec, "mounts": mounts, "allowance": Allowance(**spec["allowance"])}))
    stream = await engine.attach(id, stdin=True)
    await engine.start(id)
    threading.Thread(target=_feed, args=(stream, asyncio.get_running_loop()), daemon=True).start()
    async for number, data in output_of(stream):
        out = sys.stdout.buffer if number == 1 else sys.stderr.buffer
        out.write(data)
        out.flush()
    return int(await engine.wait(id))


def _feed(stream: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Carry our input inside. In a thread: it may be a pipe, a file or a terminal."""
    from textor.containers.client import EngineGone

    def call(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    with contextlib.suppress(EngineGone, OSError):  # a program that has ended takes no more
        while data := os.read(0, 1 << 16):
            call(stream.send(data))
        loop.call_soon_threadsafe(stream.end_input)


def _leave(told: Json) -> None:
    """Remove the container by its name, and say so when that fails."""
    from textor.errors import TextorError

    try:
        asyncio.run(_engine(told).remove(told["spec"]["name"]))
    except TextorError as error:
        print(error, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
