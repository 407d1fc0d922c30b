"""What a runner needs from the floors below and from the assembly, in one place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from textor.actions import Capability, Catalogue
from textor.capabilities.registry import Registry
from textor.dialects.port import Dialect
from textor.events import Body, Definition, Event, new_id
from textor.journal.port import Journal
from textor.kernel.context import Layout
from textor.kernel.gate import Policy
from textor.kernel.state import AgentState, State
from textor.live import Hub
from textor.models.port import Model

if TYPE_CHECKING:
    from textor.capabilities.port import Scope
    from textor.dialects.matching import Compiled
    from textor.kernel.runner import Runner


class Found(Protocol):
    def __call__(self, state: State, agent: AgentState, text: str) -> str: ...
    def findable(self, name: str) -> Capability | None: ...


class Compile(Protocol):
    async def __call__(self, lines: Sequence[str], catalogue: Catalogue) -> Sequence[Compiled]: ...


@dataclass
class Services:
    """The organs as the kernel sees them. `clock` in seconds since 1970; `grace` is how many
    seconds a cancelled step may take to confirm before it is abandoned."""

    journal: Journal
    registry: Registry
    model: Callable[[str], Model]
    dialect: Callable[[Definition, bool], Dialect]  #: (agent type, whether calls are native)
    layout: Callable[[str], Layout]
    found: Found  #: what else an agent may call or use for a message
    policy: Policy
    scope: Callable[[Runner, str, str], Scope]  #: what a provider is handed: (runner, agent, action)
    compile: Compile  #: free lines of a plan by meaning
    context_ratio: float = 0.6  #: share of a model's window that a prompt may fill
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = new_id
    grace: float = 0.7
    hub: Hub = field(default_factory=Hub)

    def event(self, body: Body) -> Event:
        return Event(body, self.new_id(), self.clock())

    def dialect_of(self, agent: AgentState) -> Dialect:
        """The dialect as it was taught: native calls where functions were declared."""
        return self.dialect(agent.definition, bool(agent.tools))

    def offered(self, names: Sequence[str]) -> Catalogue:
        return self.registry.catalogue(names)
