"""Where an action acts: inside the session's workspace, or elsewhere on the host.

A parameter is a path when its schema says `"format": "path"`. A path is inside when its real
place is, with every symbolic link followed, also for a file that does not exist yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from textor.actions import Action, Capability
from textor.errors import CapabilityError
from textor.values import Json

if TYPE_CHECKING:
    from textor.capabilities.port import Scope

Place = Literal["workspace", "host"]


def place(action: Action, capability: Capability, workspace: Path) -> Place:
    """`"workspace"` when all that the action names by path lies inside, and all that it executes
    runs in a sandbox; else `"host"`. Reads the file system (links), changes nothing."""
    if capability.outside or ("execute" in capability.effects and not capability.sandboxed):
        return "host"
    outside: list[str] = []

    def look(path: str) -> str:
        if not is_inside(path, workspace):
            outside.append(path)
        return path

    map_paths(action.arguments, capability.parameters, look)
    return "host" if outside else "workspace"


def resolve(path: str, workspace: Path) -> Path:
    """The real place of `path`: relative ones are in the workspace, `~` is the home folder, links
    are followed. `CapabilityError` for what no file system can hold."""
    try:
        return Path(os.path.realpath(workspace / os.path.expanduser(path)))  # noqa: PTH111
    except (ValueError, OSError) as error:
        raise CapabilityError(f"{path!r:.200} is no path: {error}.") from None


@dataclass(frozen=True)
class Judged:
    """Where a path led when the gate looked at it, and what the file there held, where that counts."""

    place: Path
    content: str = ""  #: the hash of it


def judged(path: str, scope: Scope) -> Path:
    """The real place of a path of an action: as the gate saw it, so that a link that was changed
    since then does not matter; as it is now where no gate looked."""
    known = scope.judged.get(path)
    return known.place if known is not None else resolve(path, scope.workspace)


def is_inside(path: str, workspace: Path) -> bool:
    """Whether the real place of `path` is the workspace or below it."""
    try:
        return resolve(path, workspace).is_relative_to(os.path.realpath(workspace))
    except CapabilityError:
        return False


def map_paths(value: Json, schema: dict[str, Json], change: Callable[[str], str]) -> Json:
    """`value` with each string that `schema` calls a path replaced by `change(path)`.

    Looks through properties, items, unions and references. Where a schema offers several forms,
    a string that is a path in any of them counts as one: the gate must not be talked around.
    """
    defs = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    return _mapped(value, schema, change, defs)


def _mapped(value: Json, schema: Any, change: Callable[[str], str], defs: dict[str, Any]) -> Json:
    if not isinstance(schema, dict):
        return value
    if isinstance(value, str):
        return change(value) if _says_path(schema, defs, frozenset()) else value
    for part in _forms(schema, defs, frozenset()):
        if isinstance(value, dict):
            properties = part.get("properties") or {}
            other = part.get("additionalProperties")
            for pattern in (part.get("patternProperties") or {}).values():
                value = {k: _mapped(v, pattern, change, defs) for k, v in value.items()}
            value = {k: _mapped(v, properties.get(k, other), change, defs) for k, v in value.items()}
        elif isinstance(value, list):
            first = part.get("prefixItems") or []
            rest = part.get("items")
            value = [
                _mapped(v, first[i] if i < len(first) else rest, change, defs) for i, v in enumerate(value)
            ]
    return value


def _says_path(schema: dict[str, Any], defs: dict[str, Any], seen: frozenset[str]) -> bool:
    return any(part.get("format") in PATH_FORMATS for part in _forms(schema, defs, seen))


#: What pydantic writes for Path, FilePath and DirectoryPath.
PATH_FORMATS = frozenset({"path", "file-path", "directory-path"})


def _forms(schema: Any, defs: dict[str, Any], seen: frozenset[str]) -> list[dict[str, Any]]:
    """The schema and all that it refers to or offers, flat. `seen` ends circles of references."""
    if not isinstance(schema, dict):
        return []
    found = [schema]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target = defs.get(reference.rpartition("/")[2])
        found += _forms(target, defs, seen | {reference})
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key) or ():
            found += _forms(part, defs, seen)
    return found
