"""Fills the disk in the middle of a session with containers and children, frees it, and goes on.

    unshare --mount python full_disk.py FOLDER [run]

The data folder of each session is a disk of its own (a tmpfs of 3 MB), which is filled at one of
the host's appends, or where it is kept how far an output was read. One JSON line each.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from containers import scene
from containers.session_sweep import PATIENCE, WORKERS, forked, say, spread
from textor import events as e
from textor.assembly import Machine, opening
from textor.containers.labels import SESSION
from textor.containers.positions import Positions
from textor.containers.provider import ContainersProvider
from textor.events import Event
from textor.journal.sqlite import SqliteJournal
from textor.record.replay import replay
from textor.testing import Call, Reply, ScriptedServer
from textor.testing.server import Item, Request

#: Which appends and which writings of a position: about every third of those that there are.
POINTS = [("append", at) for at in range(2, 33, 3)] + [("keep", at) for at in (1, 2, 3)]


class Disk:
    """The disk under `folder`, which is full from the `at`-th point of a kind on until it is freed."""

    def __init__(self, folder: Path, kind: str, at: int) -> None:
        self._filler = folder / "filler"
        self._kind = kind
        self._left = at
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)], check=True)

    def reached(self, kind: str) -> None:
        self._left -= kind == self._kind
        if self._left or self._filler.exists():
            return
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        self._left = -1
        self._filler.unlink()


def set_up(disk: Disk) -> None:
    class Filling(SqliteJournal):
        async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
            if epoch is not None:
                disk.reached("append")
            return await super().append(session, events, epoch=epoch)

    keep = Positions.keep

    def kept(self: Positions, *arguments: Any) -> None:
        disk.reached("keep")
        keep(self, *arguments)

    opening.SqliteJournal = Filling  # type: ignore[misc]
    Positions.keep = kept  # type: ignore[method-assign]


async def play(folder: Path, kind: str, at: int) -> None:
    work = scene.lay(folder)
    disk = Disk(folder / "data", kind, at)
    set_up(disk)
    async with scene.opened(folder, scene.models().values()) as machine:
        session = await scene.begin(machine, work, folder.name)
        deltas = machine.services.hub.subscribe(session.id)
        async with asyncio.timeout(PATIENCE):
            while (told := await deltas.get()).kind != "fault":
                pass
            before, found = await stood(machine, folder)
            cut = bool(_open(before, "short"))  # giving up stops what was to end soon
            disk.free()
            await session.control("run")  # any input has it go on
            events = await scene.ended(session)
        found += scene.faults(events, work, cut=cut)
        if events[: len(before)] != before:
            found.append("what was durable is not what it was")
        if (replayed := await replay(machine.services, session.id)).differences:
            found.append(f"a replay differs: {replayed.differences[:3]}")
    say({"point": f"{kind} {at}", "said": told.text, "faults": found})


async def stood(machine: Machine, folder: Path) -> tuple[list[Event], list[str]]:
    """The events that are durable while the disk is full, and what is wrong then."""
    events = [ev async for ev in machine.journal.read(folder.name)]
    found = [] if [ev.seq for ev in events] == list(range(1, len(events) + 1)) else ["there are gaps"]
    with closing(sqlite3.connect(folder / "data" / "journal.db")) as connection:
        if (told := connection.execute("pragma integrity_check").fetchone()) != ("ok",):
            found.append(f"the journal is torn: {told}")
    provider = next(p for p in machine.providers if isinstance(p, ContainersProvider))
    there = {state.id for state in await provider.engine.list({SESSION: folder.name})}
    found += [f"{c.about.name} is gone" for c in provider._all() if c.id not in there]
    return events, found


def _open(events: Sequence[Event], name: str) -> list[str]:
    """The containers of this name whose start has been asked for and has no outcome."""
    bodies = [event.body for event in events]
    done = {b.action for b in bodies if isinstance(b, e.ActionFinished)}
    asked = [a for b in bodies if isinstance(b, e.GenerationFinished) for a in b.actions]
    return [
        a.id for a in asked if a.arguments.get("name") == name and "image" in a.arguments and a.id not in done
    ]


def share(root: Path, worker: int) -> None:
    for kind, at in POINTS[worker::WORKERS]:
        folder = root / f"{root.name}-{kind}-{at}"
        folder.mkdir()
        forked(lambda folder=folder, kind=kind, at=at: asyncio.run(play(folder, kind, at)))


def run(folder: Path) -> None:
    """The same to `textor run`: what a person reads, and what comes of resuming it."""
    folder.mkdir()
    scene.lay(folder)
    disk = Disk(folder / "data", "request", 2)
    wish = {"image": scene.BUSYBOX, "name": "it", "command": "cat"}
    replies = [Reply(calls=(Call("start_container", wish),)), "Started.", "Started, and gone on."]

    def script(request: Request) -> Item:
        disk.reached("request")
        return replies.pop(0)

    with ScriptedServer(script) as server:
        (folder / "config.toml").write_text(
            f'[models]\ndefault = "mine:scripted"\n[providers.mine]\nbase_url = "{server.url}"\n'
            f'context_window = 32000\n[containers]\nimages = ["{scene.BUSYBOX}"]\n'
        )
        (folder / "config.toml").chmod(0o600)
        places = {"TEXTOR_CONFIG": folder / "config.toml", "TEXTOR_DATA": folder / "data", "HOME": folder}
        env = {**os.environ, **{name: str(path) for name, path in places.items()}}

        def textor(*words: str) -> dict[str, object]:
            command = [sys.executable, "-m", "textor", *words]
            done = subprocess.run(
                command,
                env=env,
                cwd=folder / "work",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            return {"code": done.returncode, "out": done.stdout, "err": done.stderr}

        told = [textor("run", "--agent", "kid", "start it")]
        told.append(textor("run", "another"))
        disk.free()
        session = str(told[0]["err"]).rpartition("`textor sessions resume ")[2].partition("`")[0]
        told.append(textor("sessions", "resume", session))
        told.append(textor("sessions", "list"))
    say({"session": session, "told": told})


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if sys.argv[2:] == ["run"]:
        run(place / "run")
    else:
        spread(lambda worker: share(place, worker))
