"""The local host: this process runs the sessions of its journal."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator

from textor.errors import Fenced, JournalError
from textor.hosts.folds import Folds
from textor.journal.port import MACHINE
from textor.kernel.runner import Runner
from textor.kernel.services import Services
from textor.kernel.state import State
from textor.live import Delta

#: Folded states that are kept for sessions that will soon wake again.
KEPT = 32

log = logging.getLogger("textor.host")


class LocalHost:
    """Wakes sessions when inputs arrive and lets them go when nothing is due.

    `faults` holds why a session had to be given up (disk full); the next input tries again.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        self.faults: dict[str, str] = {}
        self._active: dict[str, asyncio.Task[None]] = {}
        self._runners: dict[str, Runner] = {}
        self._states: OrderedDict[str, State] = OrderedDict()
        self._folds = Folds(services.journal)
        self._epochs: dict[str, int] = {}
        self._again: set[str] = set()
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what an earlier host left, then watch for inputs."""
        changes = self.services.journal.changes()  # subscribed from here on, so that nothing is missed
        self._watcher = asyncio.create_task(self._watch(changes), name="host")
        for info in await self.services.journal.sessions():
            if info.status == "runnable":
                self.wake(info.id)

    async def close(self) -> None:
        """Stop all activations; what was under way is taken up at the next start."""
        tasks = [*self._active.values(), *([self._watcher] if self._watcher else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, session: str) -> None:
        """Something may be due in this session."""
        if session == MACHINE:
            return
        self._again.add(session)
        if runner := self._runners.get(session):
            runner.wake()
        if session not in self._active:
            task = asyncio.create_task(self._activate(session), name=f"session {session}")
            self._active[session] = task
            task.add_done_callback(lambda _: self._passive(session))

    async def _watch(self, changes: AsyncIterator[str]) -> None:
        async for session in changes:
            self.wake(session)

    def _passive(self, session: str) -> None:
        self._active.pop(session, None)
        self._runners.pop(session, None)
        if session in self._again and session not in self.faults:
            self.wake(session)

    async def _activate(self, session: str) -> None:
        self.faults.pop(session, None)
        self.services.hub.well(session)
        try:
            while session in self._again:
                self._again.discard(session)
                await self._run(session)
        except Fenced:
            log.warning("session %s was taken over by another host", session)
            self._forget(session)
        except JournalError as error:
            self._give_up(session, str(error))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a fault of ours must not take the other sessions down
            log.exception("session %s", session)
            self._give_up(session, f"Textor itself failed in this session: {type(error).__name__}: {error}")

    async def _run(self, session: str) -> None:
        journal = self.services.journal
        if session not in self._epochs:
            self._epochs[session] = await journal.claim(session)
        epoch = self._epochs[session]
        state = self._states.get(session) or await self._folds.state(session)
        runner = Runner(session, self.services, state, epoch)
        self._runners[session] = runner
        try:
            await runner.run()
        finally:
            self._states[session] = runner.state
            self._states.move_to_end(session)
            if len(self._states) > KEPT:  # an idle session costs nothing; it is folded again when it wakes
                self._states.popitem(last=False)
        await self._folds.keep(session, runner.state)
        if not await journal.set_status(session, "idle", epoch=epoch, head=runner.state.seq):
            self._again.add(session)

    def _give_up(self, session: str, fault: str) -> None:
        self.faults[session] = fault
        self._forget(session)
        self.services.hub.send(session, Delta("", "fault", fault))

    def _forget(self, session: str) -> None:
        self._again.discard(session)
        self._states.pop(session, None)
        self._epochs.pop(session, None)
