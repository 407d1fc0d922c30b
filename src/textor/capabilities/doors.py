"""Doors: the single ways that lead into or out of a sandbox on purpose.

A door is a folder of ours that the sandbox sees at `PLACE`. In it lies a relay, which runs inside
and carries between a port there and a unix socket in that folder: no network is needed for it,
neither by bubblewrap nor by a container.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

PLACE = "/run/textor"  #: where a door's folder is inside


class Door:
    """`relays` are (listen, target) as `relay.py` takes them, with paths as they are inside."""

    def __init__(self, relays: Sequence[tuple[str, str]], environment: dict[str, str] | None = None) -> None:
        self.relays = tuple(relays)
        self.environment = environment or {}
        self.folder = Path(tempfile.mkdtemp(prefix="textor-door-"))
        shutil.copy(Path(__file__).with_name("relay.py"), self.folder / "relay.py")

    def socket(self, name: str) -> str:
        """The path, on our side, of a socket in the folder."""
        return str(self.folder / name)

    @property
    def opening(self) -> str:
        """A line of shell that starts the relays and goes on when they listen."""
        lines = [
            shlex.join(["python3", f"{PLACE}/relay.py", listen, target]) + " </dev/null >/dev/null 2>&1;"
            for listen, target in self.relays
        ]
        return " ".join(lines)

    def through(self, argv: Sequence[str]) -> list[str]:
        """`argv` as it is run inside, with the relays beside it."""
        return ["sh", "-c", f'{self.opening} exec "$@"', "sh", *argv]

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
