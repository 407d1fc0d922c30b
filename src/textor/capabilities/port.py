"""The port of providers: where capabilities come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from textor.actions import Action, Capability, Outcome
from textor.capabilities.places import Judged
from textor.values import Blobs, Value


class Scope(Protocol):
    """What a provider may know and use while it performs one action.

    Cancelling is the cancelling of the task: a provider that catches `asyncio.CancelledError`,
    ends its work for certain and returns `Outcome("cancelled", …)` has confirmed it; one that
    lets it pass leaves the outcome of a `once` action unknown.
    """

    @property
    def session(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def key(self) -> str:
        """The action's id: idempotency key, container name."""
        ...

    @property
    def workspace(self) -> Path: ...
    @property
    def blobs(self) -> Blobs: ...

    @property
    def judged(self) -> Mapping[str, Judged]:
        """Where the paths among the arguments lead, as the gate saw it; see `places.judged`."""
        ...

    def value(self, handle: str) -> Value:
        """A value of this session by its handle, with its labels; `KeyError` when there is none."""
        ...

    def progress(self, text: str) -> None:
        """Show a person how far it is (ephemeral)."""
        ...


class Provider(Protocol):
    """A source of capabilities. `name` is unique."""

    @property
    def name(self) -> str: ...

    async def capabilities(self) -> Sequence[Capability]: ...

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        """Perform one action. A `TextorError` becomes a failed outcome with its text; any other
        exception a failed outcome that names its type."""
        ...

    async def close(self) -> None: ...
