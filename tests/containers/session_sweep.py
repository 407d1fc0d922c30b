"""Kills itself at every point of a session with containers and children, and goes on with it.

    python session_sweep.py FOLDER

Points are the appends of the host, and the requests that change something in the engine; each from
both sides: before it is durable (made), and after. For each a forked child plays `scene` and dies
by SIGKILL there; a second child goes on to the end. One JSON line each, and one at the end of how
often the engine made a container for one action, and started it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from containers import scene
from textor import events as e
from textor.assembly import opening
from textor.containers.client import Client, Stream
from textor.containers.engine import find_engine
from textor.containers.labels import ACTION, SESSION
from textor.events import Event
from textor.journal.sqlite import SqliteJournal
from textor.record.replay import replay

#: Seconds that one child may take; it plays for two or three.
PATIENCE = 100
#: So many points at a time: most of what they do is to wait for the engine.
WORKERS = 4


class Points:
    """Counts points of one kind, and ends this process at the `at`-th, on one side of it."""

    def __init__(self, kind: str, at: int, after: bool) -> None:
        self.kind = kind
        self.at = at
        self.after = after
        self.passed = {"append": 0, "request": 0}

    def reached(self, kind: str) -> bool:
        """One more point, of which this is the side before; True when the side after it is deadly."""
        self.passed[kind] += 1
        deadly = kind == self.kind and self.passed[kind] == self.at
        if deadly and not self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        return deadly


def set_up(points: Points) -> None:
    class Dying(SqliteJournal):
        async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
            deadly = epoch is not None and points.reached("append")
            stored = await super().append(session, events, epoch=epoch)
            if deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            return stored

    usual = Client.open

    async def open(self: Client, method: str, path: str, *args: Any, **more: Any) -> Stream:
        changes = method != "GET" and not path.endswith(("/wait", "/attach"))
        deadly = changes and points.reached("request")
        stream = await usual(self, method, path, *args, **more)
        if deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return stream

    opening.SqliteJournal = Dying  # type: ignore[misc]
    Client.open = open  # type: ignore[method-assign]


async def play(folder: Path, points: Points) -> None:
    """The session from its beginning; says how many points it has when it comes to its end."""
    set_up(points)
    work = scene.lay(folder)
    async with scene.opened(folder, scene.models().values()) as machine:
        session = await scene.begin(machine, work, folder.name)
        async with asyncio.timeout(PATIENCE):
            await scene.ended(session)
    (folder / "finished").write_text(json.dumps(points.passed))


async def go_on(folder: Path) -> None:
    """The session to its end; says what is wrong with it."""
    unknown = 0
    async with scene.opened(folder, scene.models().values()) as machine:
        session = await machine.session(folder.name)
        try:
            async with asyncio.timeout(PATIENCE):
                events = await scene.ended(session)
            found = scene.faults(events, folder / "work")
            if (replayed := await replay(machine.services, session.id)).differences:
                found.append(f"a replay differs: {replayed.differences[:3]}")
            done = [ev.body for ev in events if isinstance(ev.body, e.ActionFinished)]
            unknown = sum(body.outcome.state == "unknown" for body in done)
        except TimeoutError:
            seen = [ev.body async for ev in machine.journal.read(session.id)]
            found = [f"it never ended: {seen[-8:]}"]
    engine = await find_engine()
    assert engine is not None
    found += [f"{state.name} is left" for state in await engine.list({SESSION: folder.name})]
    kept = folder / "data" / "containers"
    found += [f"{path.name} is left" for path in kept.iterdir()] if kept.exists() else []
    say({"point": folder.name, "faults": found, "unknown": unknown})


def say(report: dict[str, object]) -> None:
    os.write(1, f"{json.dumps(report)}\n".encode())  # at once, so that lines of several stay whole


def forked(work: Callable[[], None]) -> int:
    """Run a child to its end or death; the signal that it died by, 0 when it ended well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a child failed with {os.WEXITSTATUS(status)}")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def point(root: Path, kind: str, at: int, after: bool) -> None:
    """Die at a point and go on, if the session comes to it: it takes a step more or less at times."""
    folder = root / f"{root.name}-{kind}-{at}-{'after' if after else 'before'}"
    folder.mkdir()
    if forked(lambda: asyncio.run(play(folder, Points(kind, at, after)))):
        forked(lambda: asyncio.run(go_on(folder)))


def share(root: Path, points: Sequence[tuple[str, int, bool]], worker: int) -> None:
    for each in points[worker::WORKERS]:
        point(root, *each)


def spread(work: Callable[[int], None]) -> None:
    """Have `work` done by several children at a time, each with a number of its own."""
    workers = []
    for worker in range(WORKERS):
        child = os.fork()
        if child == 0:
            try:
                work(worker)
                os._exit(0)
            finally:
                os._exit(1)
        workers.append(child)
    if [child for child in workers if os.waitpid(child, 0)[1]]:
        raise SystemExit("a worker failed")


@contextmanager
def watched(root: Path) -> Iterator[Counter[str]]:
    """What the engine makes and starts for sessions of ours, counted: "create SESSION ACTION"."""
    counted: Counter[str] = Counter()
    filters = ["type=container", "event=create", "event=start", f"label={SESSION}"]
    argv = ["docker", "events", "--format", "{{json .}}", *(f"--filter={f}" for f in filters)]
    watching = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    mark = ["docker", "create", "--label", f"{SESSION}={root.name}", scene.BUSYBOX, "true"]

    def marked() -> None:
        """Read on until a container shows that was made for this."""
        id = subprocess.run(mark, capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["docker", "rm", id], capture_output=True, check=True)
        for line in watching.stdout or ():
            told = json.loads(line)
            labels = told["Actor"]["Attributes"]
            if told["Actor"]["ID"] == id:
                return
            if labels[SESSION].startswith(root.name):
                counted[f"{told['Action']} {labels[SESSION]} {labels[ACTION]}"] += 1

    try:
        # the stream itself must have begun before anything is counted
        subprocess.run(["sleep", "1"], check=True)
        marked()
        yield counted
        marked()
    finally:
        watching.kill()
        watching.wait()


def main(root: Path) -> None:
    dry = root / f"{root.name}-whole"
    dry.mkdir()
    forked(lambda: asyncio.run(play(dry, Points("append", 0, False))))
    counts = json.loads((dry / "finished").read_text())
    points = [
        (kind, at, after) for kind in counts for at in range(1, counts[kind] + 1) for after in (False, True)
    ]
    with watched(root) as counted:
        spread(lambda worker: share(root, points, worker))
    say({"points": counts, "twice": [k for k, n in counted.items() if n > 1], "made": len(counted)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
