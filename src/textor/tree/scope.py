"""What a provider is handed with an action: the port's `Scope`, and for the providers that belong to
the machine itself (the call tree, agent types) the session's state and a way to post to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from textor import events as e
from textor.capabilities.places import Judged
from textor.kernel.runner import Runner
from textor.kernel.state import State
from textor.values import Blobs, Value

T = TypeVar("T")


class Scope:
    """What a provider may know of the action it performs; see `capabilities.port.Scope`."""

    def __init__(self, runner: Runner, agent: str, key: str) -> None:
        self._runner = runner
        self.session = runner.session
        self.agent = agent
        self.key = key
        self.judged: dict[str, Judged] = {}
        created = runner.state.created
        assert created is not None
        self.workspace = Path(created.workspace)

    @property
    def blobs(self) -> Blobs:
        return self._runner.services.registry.masking(self._runner.services.journal.blobs)

    def value(self, handle: str) -> Value:
        """By its handle, or by its name among the agent's variables."""
        known = self._runner.state.agents[self.agent].variables.get(handle.removeprefix("$"))
        return known or self._runner.state.values[handle]

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._runner.services.clock()

    @property
    def state(self) -> State:
        """The session as it is now."""
        return self._runner.state

    async def post(self, body: e.Body, id: str) -> None:
        """Append an input under an id of its own; the same id twice counts once."""
        event = replace(self._runner.services.event(body), id=id)
        await self._runner.services.journal.append(self.session, [event], epoch=None)
        self._runner.wake()

    async def until(self, ready: Callable[[State], T | None]) -> T:
        """Wait until `ready` finds something in the session's state."""
        while (found := ready(self._runner.state)) is None:
            await self._runner.changed()
        return found

    def secret(self, key: str) -> str | None:
        """The secret answer to the question with this key, once."""
        return self._runner.services.hub.secrets.take(f"{self.session} {key}")

    def progress(self, text: str) -> None:
        self._runner.show(self.agent, "progress", text, self.key)
