"""Dialects: how models write actions. One module each, loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from textor.dialects.port import Dialect
from textor.errors import UseError
from textor.near import did_you_mean, nearest

__all__ = ["DIALECTS", "Dialect", "dialect"]

#: Name -> the module and the class in it.
DIALECTS: dict[str, tuple[str, str]] = {
    "tools": ("textor.dialects.tools", "Tools"),
    "script": ("textor.dialects.script", "ScriptDialect"),
    "xml": ("textor.dialects.xml", "Xml"),
    "step": ("textor.dialects.step", "Step"),
    "plan": ("textor.dialects.plan", "Plan"),
}


def dialect(name: str, *, native: bool = True) -> Dialect:
    """The dialect of that name. `native` False: the server takes no function declarations, so
    `tools` and `step` are written as text. Raises `UseError` for a name that is none."""
    if name not in DIALECTS:
        known = did_you_mean(nearest(name, DIALECTS)) or f"There are: {', '.join(DIALECTS)}."
        raise UseError(f"There is no dialect {name!r}.", known)
    module, kind = DIALECTS[name]
    made = getattr(import_module(module), kind)
    return cast(Dialect, made(native=native) if name in ("tools", "step") else made())
