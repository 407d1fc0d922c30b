"""The call that the present task makes, for those below that see its bytes leave."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from textor.capabilities.port import Scope


@dataclass(eq=False)
class Call:
    """`sent` is whether any of it may have reached the module."""

    scope: Scope
    sent: bool = False


CALL: ContextVar[Call | None] = ContextVar("textor_module_call", default=None)
