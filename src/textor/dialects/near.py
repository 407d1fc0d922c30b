"""What every dialect says of a name that does not exist or of arguments that do not fit."""

from __future__ import annotations

from collections.abc import Iterable

from textor.arguments import ArgumentError, describe
from textor.near import Lines, did_you_mean, excerpt, nearest, position
from textor.values import Json

__all__ = ["Lines", "excerpt", "nearest", "position", "signature", "unknown_name", "wrong_arguments"]

#: So many names are listed whole when none is near.
FEW = 12


def unknown_name(name: str, names: Iterable[str]) -> str:
    """The sentence for a name that is none of `names` (as the dialect writes them)."""
    known = list(names)
    found = nearest(name, known)
    if found:
        return f"There is no {excerpt(name)}. {did_you_mean(found)}"
    if not known:
        return f"There is no {excerpt(name)}: nothing can be called here."
    listed = ", ".join(known[:FEW]) + (", …" if len(known) > FEW else "")
    return f"There is no {excerpt(name)}. There are: {listed}."


def wrong_arguments(name: str, error: ArgumentError) -> str:
    """The sentences for arguments of `name` (as the dialect writes it) that cannot be used."""
    return f"{name} was not run: {error}"


def signature(name: str, parameters: dict[str, Json]) -> str:
    """`files_read(path: string, first?: integer = 1)`: the shortest full form of a capability."""
    properties = parameters.get("properties") or {}
    required = parameters.get("required") or ()
    written: list[str] = []
    for key, schema in properties.items():
        mark = "" if key in required else "?"
        default = schema.get("default") if isinstance(schema, dict) else None
        ending = "" if default is None else f" = {excerpt(default, 30)}"
        written.append(f"{key}{mark}: {describe(schema, parameters, article=False)}{ending}")
    return f"{name}({', '.join(written)})"
