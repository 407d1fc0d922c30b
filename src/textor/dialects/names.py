"""One reversible map from the names of capabilities to what a wire allows.

Inside, a name is `area.verb`. Function calls allow `[a-zA-Z0-9_-]` and 64 characters, `script`
writes capitals with hyphens. Where two names would meet on the wire, the one that is written there
as it is keeps it, and the others get a short hash of themselves: the map depends on the set of
names and not on their order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

TOOL_LIMIT = 64

_NOT_TOOL = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_SCRIPT = re.compile(r"[^A-Z0-9_-]")


class Names:
    """A map between capability names and wire names; built by `tool_names` or `script_names`."""

    def __init__(self, names: Iterable[str], plain: Callable[[str], str], limit: int) -> None:
        claims: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            claims.setdefault(plain(name), []).append(name)
        self._wire: dict[str, str] = {}
        for wire, claimants in claims.items():
            owner = _owner(wire, claimants)
            for name in claimants:
                fits = name == owner and 0 < len(wire) <= limit
                self._wire[name] = wire if fits else _marked(wire, name, limit, plain)
        self._name = {wire: name for name, wire in self._wire.items()}

    @property
    def wires(self) -> tuple[str, ...]:
        """All wire names, in the order of the names."""
        return tuple(self._wire.values())

    def wire(self, name: str) -> str:
        """What stands on the wire for `name`. Raises `KeyError` for a name that is not in it."""
        return self._wire[name]

    def __contains__(self, name: str) -> bool:
        return name in self._wire

    def name(self, wire: str) -> str | None:
        """The name that a wire name stands for. The name itself is understood as well, because
        models know it from texts; nothing else is: a misspelt name is told, not guessed."""
        return self._name.get(wire) or (wire if wire in self._wire else None)


def tool_name(name: str) -> str:
    """`files.list` as `files_list`, before collisions and length are looked at."""
    return _NOT_TOOL.sub("_", name)


def script_name(name: str) -> str:
    """`files.list` as `FILES-LIST`, before collisions are looked at."""
    return _NOT_SCRIPT.sub("_", name.replace(".", "-").upper())


def tool_names(names: Iterable[str]) -> Names:
    return Names(names, tool_name, TOOL_LIMIT)


def script_names(names: Iterable[str]) -> Names:
    return Names(names, script_name, TOOL_LIMIT)


def _owner(wire: str, claimants: list[str]) -> str | None:
    """Who may have the plain form: its only claimant, or the one that is spelt so already."""
    if len(claimants) == 1:
        return claimants[0]
    return wire if wire in claimants else None


def _marked(wire: str, name: str, limit: int, plain: Callable[[str], str]) -> str:
    mark = plain(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8])
    return f"{wire[: limit - 9]}_{mark}"
