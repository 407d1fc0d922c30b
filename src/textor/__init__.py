"""Textor, a text computer. See README.md; the public names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Agent", "Outcome", "Reply", "TextorError", "Value", "__version__", "capability"]

if TYPE_CHECKING:
    from textor.actions import Outcome
    from textor.api import Agent, Reply, capability
    from textor.errors import TextorError
    from textor.values import Value

_HOMES = {
    "Agent": "textor.api",
    "Reply": "textor.api",
    "capability": "textor.api",
    "Outcome": "textor.actions",
    "TextorError": "textor.errors",
    "Value": "textor.values",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'textor' has no attribute {name!r}")
