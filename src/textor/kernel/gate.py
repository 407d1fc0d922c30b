"""The gate: the one place where an action is allowed, asked about or denied (law 8).

What is allowed is decided by a `Policy` (see `textor.policy`); the kernel only asks it, once for
every action, and binds the answer to a digest: an approval covers exactly what was shown.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from textor.actions import Action, Capability
from textor.kernel.state import AgentState, State


class Ruling(msgspec.Struct, frozen=True):
    """`reason` says why it is asked about or denied."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str = ""
    digest: str = ""


class Policy(Protocol):
    def __call__(self, action: Action, capability: Capability, state: State, agent: AgentState) -> Ruling: ...
