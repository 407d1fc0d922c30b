"""Handing over at a step boundary: all that runs comes to rest, and goes on under another version.

It is done from outside, through the journal, with the inputs that a person has: pause and run.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from textor import events as e
from textor.errors import JournalError
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import AgentState, State, fold

#: Actions that the next version takes up where they stood: they wait for an agent, a person or a
#: container, and done again under their key they come to the same.
WAITING = frozenset(["call", "ask", "answer", "wait", "wait_event", "wait_container"]) | frozenset(
    ["start_container", "read_stdout", "read_stderr"]
)
#: How often a session is looked at until it rests, in seconds.
TICK = 0.2


class Handover:
    """The sessions of a data folder, paused and run again. What a person paused stays paused.

    What was paused is noted on disk first: a supervisor that is killed in the middle leaves the next
    one to run it again.
    """

    def __init__(self, data: Path, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._path = data / "journal.db"
        self._note = data / "versions" / "paused.json"
        self._sleep = sleep
        self._paused: dict[str, list[str]] = {}  # by session: the agents that we paused
        self._held: dict[str, list[str]] = {}  # by session: those that a person had paused before

    async def pause(self, seconds: float) -> bool:
        """Pause every agent at work; True when all rest within so many seconds. Whoever begins to
        work meanwhile is paused as well. Raises `JournalError` or `OSError` when it cannot be written;
        what was paused until then is run again by `resume`."""
        journal = SqliteJournal(self._path)
        states: dict[str, State] = {}
        left = seconds
        try:
            while True:
                for info in await journal.sessions():
                    if info.status == "runnable" or info.id in states:
                        states[info.id] = await _follow(journal, info.id, states.get(info.id, State()))
                        await self._pause(journal, info.id, states[info.id])
                if all(_rests(agent) for state in states.values() for agent in state.agents.values()):
                    return True
                if left <= 0:
                    return False
                await self._sleep(TICK)
                left -= TICK
        finally:
            await journal.close()

    async def resume(self) -> None:
        """Run again what `pause` paused, here or in a supervisor that was cut off. Raises `JournalError`
        when that cannot be written (the disk is full); it stays noted then, for the next try."""
        if not self._paused:
            self._read()
        if not self._paused:
            return
        journal = SqliteJournal(self._path)
        try:
            for session, agents in self._paused.items():
                # running goes down the tree, so what a person had paused there is paused once more
                run = [e.Controlled(agent, "run") for agent in agents]
                held = [
                    e.Controlled(agent, "pause") for agent in self._held[session] if _under(agent, agents)
                ]
                await _post(journal, session, [*run, *held])
            self._paused.clear()
            self._held.clear()
            self._note.unlink(missing_ok=True)
        finally:
            await journal.close()

    async def _pause(self, journal: SqliteJournal, session: str, state: State) -> None:
        """Pause the agents that work, with all below them."""
        held = [agent.id for agent in state.agents.values() if agent.level == "pause"]
        self._held.setdefault(session, held)
        working = [a.id for a in state.agents.values() if a.level == "run" and a.turn is not None]
        pauses = [agent for agent in working if not _under(agent, working)]
        if pauses:
            self._paused.setdefault(session, []).extend(pauses)
            self._write()
            await _post(journal, session, [e.Controlled(agent, "pause") for agent in pauses])

    def _write(self) -> None:
        self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._note.with_suffix(".new")
        new.write_text(json.dumps([self._paused, self._held]))
        new.replace(self._note)

    def _read(self) -> None:
        with suppress(FileNotFoundError):
            self._paused, self._held = json.loads(self._note.read_text())


def _under(agent: str, others: Sequence[str]) -> bool:
    """Whether an agent stands below one of the others."""
    return any(agent.startswith(f"{other}/") for other in others)


def _rests(agent: AgentState) -> bool:
    """Whether nothing of an agent is under way, or about to be."""
    if agent.turn is None:
        return not (agent.inbox and agent.level == "run")
    open_work = [work for work in agent.work if work.started and work.outcome is None]
    performing = any(work.action.capability not in WAITING for work in open_work)
    return agent.level != "run" and agent.generation is None and not performing


async def _follow(journal: SqliteJournal, session: str, state: State) -> State:
    async for event in journal.read(session, state.seq):
        state = fold(state, event)
    return state


async def _post(journal: SqliteJournal, session: str, bodies: Sequence[e.Body]) -> None:
    """Append inputs together, so that nothing is done between two of them."""
    try:
        events = [e.Event(body, e.new_id(), time.time()) for body in bodies]
        await journal.append(session, events, epoch=None)
    except JournalError:
        if await journal.session(session) is not None:  # else it was removed meanwhile
            raise
