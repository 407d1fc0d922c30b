"""Ctrl-C in steps: what runs is first stopped at its next boundary, then ended now."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from textor.cli.terminal import Terminal


async def interrupts(
    terminal: Terminal, stop: Callable[[], Awaitable[None]], kill: Callable[[], Awaitable[None]]
) -> None:
    """Runs until it is cancelled. The first Ctrl-C calls `stop`, the second `kill`; a third ends this
    program. Where there are no handlers of signals (Windows) the first one does."""
    loop = asyncio.get_running_loop()
    hits: asyncio.Queue[None] = asyncio.Queue()
    try:
        loop.add_signal_handler(signal.SIGINT, hits.put_nowait, None)
    except NotImplementedError:
        await asyncio.Event().wait()
    try:
        await hits.get()
        terminal.say("Stopping at the next boundary; Ctrl-C again ends it now.", "warn")
        await stop()
        await hits.get()
        terminal.say("Ending it now.", "warn")
        await kill()
        await hits.get()
        raise KeyboardInterrupt
    finally:
        loop.remove_signal_handler(signal.SIGINT)
