"""Which process is which: when it began, whether it lives, and what port it listens on.

From `/proc`. Where there is none, nothing is known (None), and the callers say what then counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
_LISTENS = "0A"  #: the state LISTEN in /proc/net/tcp


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` after the program's name, from the state (3) on."""
    try:
        return (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def born(pid: int) -> str:
    """When a process began, in ticks since the boot; "" where that is not known."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def is_alive(pid: int, began: str) -> bool:
    """Whether this very process still runs: numbers come again, times of birth do not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OSError):
        pass  # it is somebody else's, or this system cannot say
    fields = _stat(pid)
    return not fields or (fields[0] != "Z" and (not began or fields[19] == began))


def members(session: int) -> list[int]:
    """The living processes of a session, as `setsid` makes it: a program and what it started."""
    found = []
    for pid in _pids():
        fields = _stat(pid)
        if len(fields) > 3 and fields[3] == str(session) and fields[0] != "Z":
            found.append(pid)
    return found


def _pids() -> Iterator[int]:
    try:
        found = list(PROC.iterdir())
    except OSError:
        return
    yield from (int(path.name) for path in found if path.name.isdecimal())


def listens(pid: int, port: int) -> bool | None:
    """Whether a process has a socket that listens on `port`; None where nobody can tell."""
    sockets = _sockets(port)
    if sockets is None:
        return None
    try:
        for link in (PROC / str(pid) / "fd").iterdir():
            try:
                if str(link.readlink()) in sockets:
                    return True
            except OSError:
                continue  # it was closed meanwhile
    except FileNotFoundError:
        return False
    except OSError:
        return None  # of another user
    return False


def _sockets(port: int) -> set[str] | None:
    """The sockets that listen on a port, as the links in `/proc/PID/fd` name them."""
    wanted = f":{port:04X}"
    found: set[str] = set()
    seen = False
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        seen = True
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENS and fields[1].endswith(wanted):
                found.add(f"socket:[{fields[9]}]")
    return found if seen else None
