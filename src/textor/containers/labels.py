"""Whose a container is: the labels on everything that we make in an engine.

A container outlives the process that made it, so what must be known of it later stands on itself:
which data folder and session it belongs to, which action made it, and which process watches it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from textor.values import sha256_of

PREFIX = "textor."
#: On every container of ours, and the filter by which they are found.
INSTANCE = PREFIX + "instance"
HOME = PREFIX + "home"
KIND = PREFIX + "kind"
SESSION = PREFIX + "session"
ACTION = PREFIX + "action"

#: `container`: made by an agent, belongs to its session. `sandbox`: ours, for one command.
CONTAINER, SANDBOX = "container", "sandbox"


@dataclass(frozen=True)
class Owner:
    """The process that makes containers. `home` stands for its data folder; "" when it keeps none,
    so that nobody can take over after it."""

    instance: str
    home: str = ""

    def labels(self, kind: str, session: str = "", action: str = "") -> dict[str, str]:
        return {
            INSTANCE: self.instance,
            HOME: self.home,
            KIND: kind,
            SESSION: session,
            ACTION: action,
        }


def this_process(data: Path | None = None) -> Owner:
    """This process as the owner of containers, over the data folder `data`."""
    home = sha256_of(os.path.realpath(data).encode())[:16] if data is not None else ""
    return Owner(f"{os.getpid()}-{_born(os.getpid())}-{_boot()}", home)


def is_alive(instance: str) -> bool:
    """Whether the process that an instance names still runs on this machine, since this boot.

    The time of its birth is compared, since numbers of processes come again.
    """
    pid, _, rest = instance.partition("-")
    born, _, boot = rest.partition("-")
    if not pid.isdecimal() or boot != _boot():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is somebody else's, and alive
    return born == _born(int(pid)) and not _is_zombie(int(pid))


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` after the program's name, from the state (3) on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []  # no /proc here: then the number alone must do


def _born(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else "0"


def _is_zombie(pid: int) -> bool:
    return _stat(pid)[:1] == ["Z"]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:
        return "0"


def owner_of(labels: Mapping[str, str]) -> Owner:
    return Owner(labels.get(INSTANCE, ""), labels.get(HOME, ""))
