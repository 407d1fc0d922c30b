"""`textor run --stdio`: an agent at work on a pipe, headless, until nothing is left to do."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from textor.cli import DONE, INTERRUPTED
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.assembly import Machine
    from textor.events import TurnEnded
    from textor.kernel.state import State
    from textor.layouts.monitor import Monitor
    from textor.layouts.stdio import Stdio
    from textor.session import Session

AGENT = "sia"
#: The exit code of a program that was told to end.
TERMINATED = 128 + signal.SIGTERM
#: Limits of one turn: they end it, and not this program.
OF_A_TURN = ("iterations", "seconds", "loop")
#: Seconds of rest after such a limit, unless something changes before.
REST = 60.0


async def run(args: argparse.Namespace) -> int:
    from textor.assembly import monitor_of, open_machine
    from textor.cli.opening import configuration

    config = configuration(models__default=args.model)
    async with open_machine(config) as machine:
        if machine.host is None:
            raise UseError(
                "Another Textor works on this data folder, and a pipe needs its own process as the host.",
                "End the other one, or set TEXTOR_DATA to another folder.",
            )
        monitor = monitor_of(machine.providers)
        assert monitor is not None  # `core_providers` always gives one
        session = await _session(args, machine)
        monitor.stdio.attach(session.id, _write)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        threading.Thread(target=_read, args=(monitor.stdio, loop), name="stdin", daemon=True).start()
        assert task is not None
        told = asyncio.Event()

        def end() -> None:
            told.set()
            task.cancel()

        with suppress(NotImplementedError):  # Windows has no such signal
            loop.add_signal_handler(signal.SIGTERM, end)
        try:
            return await _Pipe(session, monitor).work()
        except asyncio.CancelledError:
            print(f"textor: `textor run --stdio --session {session.id}` goes on with it.", file=sys.stderr)
            if not told.is_set():
                raise
            task.uncancel()
            return TERMINATED


async def _session(args: argparse.Namespace, machine: Machine) -> Session:
    from textor.cli.opening import workspace

    if args.session:
        return await machine.session(args.session)
    return await machine.create(
        " ".join(args.text) or None,
        workspace=workspace(args),
        agent=args.agent or AGENT,
        model=args.model or "",
        policy="yes" if args.yes else machine.config.gate.policy,
        attended=False,
    )


class _Pipe:
    """Turn after turn of the agent `main`; between two of them nothing runs but the waiting."""

    def __init__(self, session: Session, monitor: Monitor) -> None:
        from textor.cli.terminal import Terminal

        self.session = session
        self.monitor = monitor
        self.terminal = Terminal(out=sys.stderr)

    async def work(self) -> int:
        from textor.cli.attend import Attendant
        from textor.cli.run import code_of, why

        after, limits = 0, 0  # turns in a row that ended at a limit of theirs
        ended: TurnEnded | None = None
        while True:
            state = await self.session.state()
            main = state.agents["main"]
            if main.turn is None and not main.inbox:
                if self._is_over(state) and limits != 1:
                    return code_of(ended) if ended and limits else DONE
                await self.session.tell(await self._changed(state, ended.detail if ended and limits else ""))
            attendant = Attendant(self.session, self.terminal, attended=False)
            ended = await attendant.until_end(after=after)
            after = (await self.session.state()).seq
            if ended.reason in ("replied", "asked"):
                limits = 0
                continue
            self.terminal.say(f"textor: {why(ended)}", "bad")
            if ended.reason != "limit" or ended.detail not in OF_A_TURN:
                return INTERRUPTED if attendant.interrupted else code_of(ended)
            limits += 1

    async def _changed(self, state: State, limit: str) -> str:
        """Wait for what begins the next turn. After a `limit` of one turn it comes by itself: an agent
        at work is not to lie there for ever because it has worked for long."""
        changed = self.monitor.change(lambda: state, "main")
        if not limit:
            return "; ".join(await changed) + "."
        told = f"The turn before has ended at its limit ({limit}). Go on with what is still to be done."
        try:
            return "; ".join(await asyncio.wait_for(changed, REST)) + f". {told}"
        except TimeoutError:
            return told

    def _is_over(self, state: State) -> bool:
        """Whether nothing can wake the agent any more that it has not been told."""
        alive = any(row.status != "finished" for row in self.monitor.rows(self.session.id))
        return self.monitor.stdio.ended and not alive and not self.monitor.news(state, "main")


def _write(text: str) -> None:
    """Past `sys.stdout`, whose lock a reader that does not read would hold for ever."""
    left = memoryview(text.encode("utf-8", "replace"))
    while left:
        left = left[os.write(1, left) :]


def _read(stdio: Stdio, loop: asyncio.AbstractEventLoop) -> None:
    """Hand on what comes on stdin, in a thread: it may be a file, which no loop can wait for."""
    taken = threading.Event()
    data = b"."
    while data:
        stdio.room.wait()
        try:
            data = os.read(0, 65_536)
        except OSError:
            data = b""
        taken.clear()
        try:
            loop.call_soon_threadsafe(_take, stdio, data, taken)
        except RuntimeError:  # the loop has ended, and with it this program
            return
        taken.wait()


def _take(stdio: Stdio, data: bytes, taken: threading.Event) -> None:
    stdio.feed(data) if data else stdio.end()
    taken.set()
