"""A rehearsal of an agent: one turn with a stand-in model, where no action takes effect.

It shows that the prefix builds, that the dialect reads a reply and that a turn ends "replied".
Nothing of it reaches the session: it has a journal of its own, in memory, and capabilities that do
nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from msgspec.structs import replace

from textor import events as e
from textor.actions import Action, Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.registry import Registry
from textor.errors import CapabilityError, ModelError, UseError
from textor.journal.memory import MemoryJournal
from textor.kernel.gate import Ruling
from textor.kernel.runner import Runner
from textor.kernel.services import Services
from textor.kernel.state import State
from textor.live import Hub
from textor.messages import NO_STOP, Chunk, Context, FinishChunk, Grammar, Stop, TextChunk, message_size
from textor.models.port import Model
from textor.tree.finding import Nothing
from textor.values import Json

_SAMPLES: dict[str, Json] = {"string": "x", "boolean": True, "array": [], "object": {}, "null": None}


async def rehearse(services: Services, made: e.AgentCreated) -> None:
    """One turn of an agent. Raises `CapabilityError` that says why it did not end in a reply."""
    real = services.model(made.model)
    size = sum(message_size(message) for message in made.prefix) // 4
    if 0 < made.room <= size:
        raise CapabilityError(
            f"Its prompt has about {size} tokens; with {made.model} it may have {made.room}.", "Shorten it."
        )
    offered = tuple(services.offered(made.offered))
    registry = Registry()
    await registry.add(_Inert(offered))
    stand_in = _StandIn(real, _reply(services, made, offered))
    journal = MemoryJournal()
    stage = dataclasses.replace(
        services,
        journal=journal,
        registry=registry,
        model=lambda _: stand_in,
        found=Nothing(),
        policy=lambda action, capability, state, agent: Ruling("allow"),
        hub=Hub(),
    )
    definition = replace(made.definition, review=False)  # nobody is there to look at it
    agent = replace(made, agent="main", caller="", definition=definition)
    bodies = (e.SessionCreated("/"), agent, e.MessagePosted("main", "Are you ready?"))
    await journal.create("rehearsal", [stage.event(body) for body in bodies])
    runner = Runner("rehearsal", stage, State(), await journal.claim("rehearsal"))
    await runner.run()
    ended = runner.state.agents["main"].ended
    if ended is None or ended.reason != "replied":
        why = f"{ended.reason}: {ended.detail or ended.text}" if ended else "no end"
        raise CapabilityError(f"Tried once with a stand-in model, its turn did not end in a reply ({why}).")


class _StandIn:
    """Says one thing, once; in all else like the model it stands in for."""

    grammars = False

    def __init__(self, real: Model, reply: str) -> None:
        self.id = real.id
        self.window = real.window
        self.native_tools = real.native_tools
        self._reply = reply

    def count(self, text: str) -> int:
        return len(text) // 4

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        return 0.0

    async def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        if not self._reply:
            raise ModelError("a plain answer did not end the turn", fault="refused")
        reply, self._reply = self._reply, ""
        yield TextChunk(reply)
        yield FinishChunk("stop")


class _Inert:
    """Offers what the agent is offered, and does nothing."""

    name = "rehearsal"

    def __init__(self, capabilities: Sequence[Capability]) -> None:
        self._capabilities = capabilities

    async def capabilities(self) -> Sequence[Capability]:
        return self._capabilities

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        return Outcome("done", "Ready.")

    async def close(self) -> None:
        """Nothing is held."""


def _reply(services: Services, made: e.AgentCreated, offered: Sequence[Capability]) -> str:
    """An answer in the agent's dialect. Raises `CapabilityError` when it cannot write one."""
    dialects = made.definition.dialects
    if dialects == ("step",):
        return '{"thought": "I am asked whether I am ready.", "response": "Ready."}'
    if dialects != ("plan",):
        return "Ready."
    dialect = services.dialect(made.definition, False)
    for capability in sorted(offered, key=lambda c: not c.ends_turn):  # of the rest any will do
        sample = Action("", capability.name, _arguments(capability.parameters))
        try:
            return dialect.write([sample], offered)
        except UseError:
            continue
    raise CapabilityError(
        "It cannot act: none of its capabilities has a phrase for the dialect plan.",
        "Give it `respond`, or another dialect.",
    )


def _arguments(schema: dict[str, Any]) -> dict[str, Json]:
    """The least arguments that a flat schema takes."""
    properties: dict[str, Any] = schema.get("properties", {})
    return {name: _sample(properties.get(name, {})) for name in schema.get("required", ())}


def _sample(schema: dict[str, Any]) -> Json:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    return schema.get("minimum", 1) if kind in ("integer", "number") else _SAMPLES.get(kind, "x")
