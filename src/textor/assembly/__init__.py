"""The assembly: the one place that wires providers, organs and kernel into a machine."""

from __future__ import annotations

from textor.assembly.machine import Machine, new_session_id
from textor.assembly.opening import follow_modules, open_machine
from textor.assembly.services import core_providers, make_services, monitor_of

__all__ = [
    "Machine",
    "core_providers",
    "follow_modules",
    "make_services",
    "monitor_of",
    "new_session_id",
    "open_machine",
]
