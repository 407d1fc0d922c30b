"""What is known of a module before it runs, and where that is kept.

The modules of a machine are state of no session: `events.Stored(area="module")` in the journal of
the reserved session `machine`, one entry a module, with one or several implementations of it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from textor.actions import Effect
from textor.errors import JournalError, UseError
from textor.events import Event, Stored, new_id
from textor.journal.port import MACHINE, Journal

AREA = "module"
FIRST = "default"  #: the implementation of a module that has only one

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_ADDRESS = re.compile(r"https?://[^\s/]+\S*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")

#: Areas of our own that a module must not pose as.
TAKEN = frozenset({"core", "files", "shell", "values", "time", "modules", "functions", "textor", "use"})

#: First words of a command that stand for a module in the box, wherever Textor is installed.
BOX = ("textor:shell", "textor:files")

PROTOCOLS = ("auto", "legacy", "2026-07-28")


class Login(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How we log in at an address (OAuth). Where no `client_id` is known, we register ourselves, or
    name the document at `metadata_url`. `${NAME}` in id and secret stands for a variable."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    metadata_url: str = ""


class ModuleSpec(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How one module is reached.

    `command` alone: it speaks MCP over stdin and stdout. `address` alone: a server that runs
    somewhere (streamable HTTP). Both: the command is started, and then serves that address.
    `${NAME}` in `env` and `headers` stands for a variable of our environment, so that no secret
    need be stored. `placement` is `local` or `container:IMAGE`. `start`, `deadline` (of a call) and
    `idle` (after which it is ended until it is needed; None: never) are seconds.
    """

    name: str
    command: tuple[str, ...] = ()
    address: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    cwd: str = ""
    placement: str = "local"
    trusted: bool = False  #: its word on what its tools do is taken, and its results carry no label
    idempotent: tuple[str, ...] = ()  #: tools that a person says may be repeated, by their own names
    effects: dict[str, tuple[Effect, ...]] = {}  #: what a person says that a tool does
    start: float = 30.0
    deadline: float = 600.0
    idle: float | None = 900.0
    protocol: str = "auto"
    login: Login | None = None

    @property
    def place(self) -> str:
        """Where it runs, for people: `local`, `container:IMAGE` or `remote`."""
        return self.placement if self.command else "remote"

    @property
    def target(self) -> str:
        """What is started or reached, on one line."""
        words = [*self.command] if self.command else []
        return " ".join([*words, *([self.address] if self.address else [])])


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One module with its implementations, of which `use` names the one in force."""

    use: str = FIRST
    implementations: dict[str, ModuleSpec] = {}

    @property
    def spec(self) -> ModuleSpec:
        return self.implementations[self.use]


def checked(spec: ModuleSpec) -> ModuleSpec:
    """The spec itself; `UseError` for one that cannot work."""
    if not _NAME.fullmatch(spec.name):
        raise UseError(
            f"{spec.name!r} is no name for a module.",
            "A letter, then at most 31 letters, digits, hyphens or underscores.",
        )
    if spec.name in TAKEN:
        raise UseError(f"The name {spec.name!r} is that of a part of Textor.", "Give the module another one.")
    if spec.command and spec.command[0].startswith("textor:") and spec.command[0] not in BOX:
        raise UseError(f"There is no {spec.command[0]} in the box.", f"There is: {', '.join(BOX)}.")
    if not spec.command and not spec.address:
        raise UseError(f"The module {spec.name} has neither a command nor an address.")
    if spec.address and not _ADDRESS.fullmatch(spec.address):
        raise UseError(f"{spec.address!r} is no address.", "It must begin with http:// or https://.")
    if spec.placement != "local" and not re.fullmatch(r"container:\S+", spec.placement):
        raise UseError(f"There is no placement {spec.placement!r}.", "Use local or container:IMAGE.")
    if spec.placement != "local" and (not spec.command or spec.address):
        raise UseError(f"The module {spec.name} cannot run in a container: that takes a command alone.")
    if spec.login is not None and not spec.address:
        raise UseError(f"The module {spec.name} has no address to log in at.")
    if spec.protocol not in PROTOCOLS:
        raise UseError(f"There is no protocol {spec.protocol!r}.", f"Use one of: {', '.join(PROTOCOLS)}.")
    for what in ("start", "deadline", "idle"):
        seconds = getattr(spec, what)
        if seconds is not None and not seconds > 0:
            raise UseError(f"{what} of the module {spec.name} must be more than 0 seconds, not {seconds}.")
    return spec


def filled(values: Mapping[str, str], module: str) -> dict[str, str]:
    """`values` with each `${NAME}` replaced; `UseError` where our environment lacks it."""

    def variable(found: re.Match[str]) -> str:
        try:
            return os.environ[found[1]]
        except KeyError:
            raise UseError(
                f"The module {module} needs the environment variable {found[1]}.", "Set it and try again."
            ) from None

    return {name: _VARIABLE.sub(variable, text) for name, text in values.items()}


def folder_of(data: Path) -> Path:
    """Where logs, lists of tools and logins are kept, in the data folder."""
    return data / "modules"


async def read_entries(journal: Journal) -> dict[str, Entry]:
    """All modules of the machine, by name in the order in which they came.

    An entry that this program cannot read is left out; a newer one may have written it.
    """
    if await journal.session(MACHINE) is None:
        return {}
    stored: dict[str, Any] = {}
    async for event in journal.read(MACHINE):
        if isinstance(event.body, Stored) and event.body.area == AREA:
            if event.body.value is None:
                stored.pop(event.body.key, None)
            else:
                stored[event.body.key] = event.body.value
    entries: dict[str, Entry] = {}
    for name, value in stored.items():
        try:
            entry = msgspec.convert(value, Entry)
        except msgspec.ValidationError:
            continue
        if entry.use in entry.implementations:
            entries[name] = entry
    return entries


async def write_entry(journal: Journal, name: str, entry: Entry | None) -> None:
    """Keep an entry; None removes it."""
    value = None if entry is None else msgspec.to_builtins(entry)
    event = Event(Stored(AREA, name, value), new_id(), time.time())
    if await journal.session(MACHINE) is None:
        try:
            await journal.create(MACHINE, [event])
            return
        except JournalError:  # another process made it in the same moment
            if await journal.session(MACHINE) is None:
                raise
    await journal.append(MACHINE, [event], epoch=None)
