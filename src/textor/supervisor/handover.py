"""Handing over at a step boundary: all that runs comes to rest, and goes on under another version.

It is done from outside, through the journal, with the inputs that a person has: pause and run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textor import events as e
from textor.errors import JournalError
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import AgentState, State, fold

#: Actions that only wait, and that the next version takes up where they stood.
WAITING = frozenset(["call", "ask", "answer", "wait", "wait_event", "wait_container"])
#: How often a session is looked at until it rests, in seconds.
TICK = 0.2


class Handover:
    """The sessions of a data folder, paused and run again. What a person paused stays paused."""

    def __init__(self, data: Path, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._path = data / "journal.db"
        self._sleep = sleep
        self._paused: list[tuple[str, str]] = []

    async def pause(self, seconds: float) -> bool:
        """Pause every agent at work; True when all rest within so many seconds."""
        journal = SqliteJournal(self._path)
        try:
            open_ones = [info.id for info in await journal.sessions() if info.status == "runnable"]
            states = {session: State() for session in open_ones}
            for session in open_ones:
                states[session] = await _follow(journal, session, states[session])
                await self._control(journal, session, states[session], "pause")
            left = seconds
            while open_ones and left > 0:
                for session in open_ones:
                    states[session] = await _follow(journal, session, states[session])
                if all(_rests(agent) for s in states.values() for agent in s.agents.values()):
                    return True
                await self._sleep(TICK)
                left -= TICK
            return not open_ones
        finally:
            await journal.close()

    async def resume(self) -> None:
        """Run again what `pause` paused."""
        if not self._paused:
            return
        journal = SqliteJournal(self._path)
        try:
            for session, agent in self._paused:
                await _post(journal, session, e.Controlled(agent, "run"))
            self._paused.clear()
        finally:
            await journal.close()

    async def _control(self, journal: SqliteJournal, session: str, state: State, level: e.Level) -> None:
        for agent in state.agents.values():
            if (
                agent.level == "run"
                and agent.turn is not None
                and not _under(agent.id, self._paused, session)
            ):
                await _post(journal, session, e.Controlled(agent.id, level))
                self._paused.append((session, agent.id))


def _under(agent: str, paused: list[tuple[str, str]], session: str) -> bool:
    """Whether an agent was paused with one above it."""
    return any(s == session and agent.startswith(f"{a}/") for s, a in paused)


def _rests(agent: AgentState) -> bool:
    """Whether nothing of an agent is under way."""
    open_work = [work for work in agent.work if work.started and work.outcome is None]
    performing = any(work.action.capability not in WAITING for work in open_work)
    return agent.turn is None or (agent.level != "run" and agent.generation is None and not performing)


async def _follow(journal: SqliteJournal, session: str, state: State) -> State:
    async for event in journal.read(session, state.seq):
        state = fold(state, event)
    return state


async def _post(journal: SqliteJournal, session: str, body: e.Body) -> None:
    import time

    try:
        await journal.append(session, [e.Event(body, e.new_id(), time.time())], epoch=None)
    except JournalError:  # removed meanwhile
        return
