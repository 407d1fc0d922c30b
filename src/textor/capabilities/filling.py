"""A bound on what a program writes into a folder of this machine that it may write to."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from textor.capabilities.processes import Ended

#: Seconds between two looks.
LOOK = 1.0


async def unless_full(work: Coroutine[Any, Any, Ended], folder: Path, most: int) -> Ended:
    """How a program ended; its run is cancelled, and it tells so, when all that lies below `folder`
    takes more than `most` bytes. Between two looks it may write more than that."""
    running = asyncio.create_task(work)
    watching = asyncio.create_task(_fills(folder, most))
    try:
        await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
    finally:
        running.cancel()  # what it began is ended for certain
        watching.cancel()
        await asyncio.gather(running, watching, return_exceptions=True)
    return running.result()


async def _fills(folder: Path, most: int) -> None:
    while await asyncio.to_thread(used, folder) <= most:  # noqa: ASYNC110 - a disk tells nobody
        await asyncio.sleep(LOOK)


def used(folder: Path) -> int:
    """Bytes on the disk of all that lies below a folder; links are not followed."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                total += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118
    return total
