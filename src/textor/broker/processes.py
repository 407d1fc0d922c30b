"""Which process is which: when it began, whether it lives, and what port it listens on.

What the system lets nobody see of a process (of another user, say) is None, and the callers say what
then counts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

SAME = 0.5  #: seconds by which two readings of one birth may differ: they are floats


def _process(pid: int) -> psutil.Process | None:
    """A process that runs; None for one that is gone, or has ended and only waits to be asked how."""
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return None
    except psutil.AccessDenied:
        return process


def _births(process: psutil.Process) -> tuple[float, float]:
    """When it began, in seconds since 1970 and since the boot. When the clock is set, one of them
    moves: on Linux the first, elsewhere the second."""
    import psutil

    began = process.create_time()
    return began, began - psutil.boot_time()


def born(pid: int) -> str:
    """When a process began; "" where that is not known."""
    import psutil

    process = _process(pid)
    try:
        return "" if process is None else " ".join(f"{each:.2f}" for each in _births(process))
    except psutil.Error:
        return ""


def is_alive(pid: int, began: str) -> bool:
    """Whether this very process still runs: numbers come again, times of birth do not."""
    import psutil

    process = _process(pid)
    if process is None:
        return False
    try:
        now = _births(process)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return not began
    then = began.split()
    return not then or any(abs(float(a) - b) < SAME for a, b in zip(then, now, strict=False))


def members(session: int) -> list[int]:
    """The living processes of a session, as `setsid` makes it: a program and what it started. Where
    there are no sessions, the program and what is below it."""
    import psutil

    if not hasattr(os, "getsid"):
        process = _process(session)
        below = [] if process is None else [process, *process.children(recursive=True)]
        return [each.pid for each in below]
    return [pid for pid in psutil.pids() if _session(pid) == session and _process(pid) is not None]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:  # it is gone, or of somebody who does not tell
        return -1


def listens(pid: int, port: int) -> bool | None:
    """Whether a process has a socket that listens on `port`; None where nobody can tell."""
    import psutil

    process = _process(pid)
    try:
        found = [] if process is None else process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return None
    return any(c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port for c in found)
