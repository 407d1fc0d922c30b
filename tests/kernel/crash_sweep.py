"""Kills itself at every append of a task of ten actions, resumes, and prints what came of it.

    python crash_sweep.py FOLDER

For each append and each side of it (before it is durable, after it is durable) a forked child
runs the task and dies by SIGKILL there; a second child resumes it to its end. One JSON line each.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kernel_parts import begin, ended, machine, until

from textor import capability
from textor import events as e
from textor.events import Event
from textor.journal.sqlite import SqliteJournal
from textor.messages import Context, ToolResult
from textor.session import Session
from textor.testing import Call, Reply, ScriptedModel

ACTIONS = 10


class Dying(SqliteJournal):
    """A journal that takes its process down at the n-th append of the host."""

    def __init__(self, path: Path, at: int, after: bool) -> None:
        super().__init__(path)
        self._left = at
        self._after = after

    async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
        if epoch is None:
            return await super().append(session, events, epoch=epoch)
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        stored = await super().append(session, events, epoch=epoch)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return stored


def next_step(context: Context) -> Reply | str:
    """Ten actions, alternating between one that may be repeated and one that may not."""
    done = sum(isinstance(p, ToolResult) for m in context.messages for p in m.parts)
    if done == ACTIONS:
        return "All ten are dealt with."
    name = "again" if done % 2 else "once"
    return Reply(calls=(Call(name, {"number": done}, id=f"call_{done}"),))


async def task(folder: Path, at: int, after: bool, resume: bool) -> None:
    def effect(kind: str, number: int) -> None:
        with (folder / "effects").open("a") as file:
            file.write(f"{kind}{number}\n")

    @capability(repeat="idempotent")
    async def again(number: int) -> str:
        """May be repeated."""
        effect("again", number)
        return f"again {number}"

    @capability(repeat="once")
    async def once(number: int) -> str:
        """Must not be repeated."""
        effect("once", number)
        return f"once {number}"

    model = ScriptedModel(next_step)
    journal = Dying(folder / "journal.db", 0 if resume else at, after)
    async with machine(model, [again, once], journal=journal, tmp=folder) as made:
        if resume:
            session = Session((await journal.sessions())[0].id, made.services)
        else:
            session = await begin(made, model, "do ten things", workspace=folder)
        events = await until(session, ended)
        if resume:
            print(json.dumps(report(events, folder, at, after)), flush=True)
        else:
            (folder / "finished").touch()
    await journal.close()


def report(events: list[Event], folder: Path, at: int, after: bool) -> dict[str, object]:
    """What a resumed run came to."""
    bodies = [event.body for event in events]
    effects = Counter((folder / "effects").read_text().split()) if (folder / "effects").exists() else {}
    outcomes = [b for b in bodies if isinstance(b, e.ActionFinished)]
    return {
        "at": at,
        "after": after,
        "reply": bodies[-1].text if isinstance(bodies[-1], e.TurnEnded) else "",
        "repeated": sorted(k for k, n in effects.items() if n > 1),
        "effects": len(effects),
        "outcomes": len(outcomes),
        "distinct": len({b.action for b in outcomes}),
        "unknown": [b.action for b in outcomes if b.outcome.state == "unknown"],
        "gaps": [ev.seq for ev in events] != list(range(1, len(events) + 1)),
    }


def forked(folder: Path, at: int, after: bool, resume: bool) -> bool:
    """Run a child to its death or end; True when it died by SIGKILL."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(task(folder, at, after, resume))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"the child failed at {at} (after: {after}, resume: {resume})")
    return os.WIFSIGNALED(status)


def main(root: Path) -> None:
    for after in (False, True):
        at = 0
        killed = True
        while killed:
            at += 1
            folder = root / f"{at}-{'after' if after else 'before'}"
            folder.mkdir()
            killed = forked(folder, at, after, resume=False)
            if killed:
                forked(folder, at, after, resume=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
