"""All capabilities of a machine by name, and the one door through which they are invoked."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.capabilities.port import Provider, Scope
from textor.errors import TextorError


class Registry:
    """Providers and what they offer. The first provider of a name keeps it."""

    def __init__(self) -> None:
        self._capabilities: dict[str, Capability] = {}
        self._providers: dict[str, Provider] = {}
        self._owners: dict[str, Provider] = {}

    async def add(self, provider: Provider) -> Sequence[Capability]:
        """Take a provider in and return the capabilities that are new by it."""
        new = [c for c in await provider.capabilities() if c.name not in self._capabilities]
        self._providers[provider.name] = provider
        for capability in new:
            self._capabilities[capability.name] = capability
            self._owners[capability.name] = provider
        return new

    def get(self, name: str) -> Capability | None:
        return self._capabilities.get(name)

    def catalogue(self, patterns: Iterable[str]) -> Catalogue:
        """The capabilities that match names or patterns ("files.*"), in the order of these."""
        found: dict[str, Capability] = {}
        for pattern in patterns:
            for name, capability in self._capabilities.items():
                if fnmatch.fnmatchcase(name, pattern):
                    found.setdefault(name, capability)
        return Catalogue(found.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._capabilities)

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        """Perform one action; whatever its provider does, there is one outcome."""
        provider = self._owners.get(action.capability)
        if provider is None:
            return Outcome.failed(f"There is no capability {action.capability!r} now; its provider is gone.")
        try:
            return await provider.invoke(action, scope)
        except TextorError as error:
            return Outcome.failed(str(error))
        except Exception as error:  # the model reads what a stranger's code raised
            return Outcome.failed(f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()
