"""All capabilities of a machine by name, and the one door through which they are invoked."""

from __future__ import annotations

import fnmatch
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec.structs import replace

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.capabilities.port import Provider, Scope
from textor.errors import TextorError
from textor.secrets import KNOWN, Secrets
from textor.values import Blobs, Value

Invoke = Callable[[Action, Scope], Awaitable[Outcome]]
#: Stands around every invocation: looks at it before, and at its outcome.
Screen = Callable[[Action, Capability, Scope, Invoke], Awaitable[Outcome]]


class Registry:
    """Providers and what they offer. The first provider of a name keeps it."""

    def __init__(self, secrets: Secrets = KNOWN) -> None:
        self.secrets = secrets
        self.screen: Screen | None = None
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

    async def refresh(self, provider: Provider) -> None:
        """Ask a provider that was taken in again: what it no longer offers is gone, what is new is there."""
        for name in [name for name, owner in self._owners.items() if owner is provider]:
            del self._capabilities[name], self._owners[name]
        await self.add(provider)

    def provider(self, name: str) -> Provider | None:
        """A provider that was taken in, by its name."""
        return self._providers.get(name)

    def areas(self, but: str = "") -> frozenset[str]:
        """The first parts of all names, without those of one provider."""
        return frozenset(n.partition(".")[0] for n, owner in self._owners.items() if owner.name != but)

    def get(self, name: str) -> Capability | None:
        return self._capabilities.get(name)

    def catalogue(self, patterns: Iterable[str]) -> Catalogue:
        """The capabilities that match names or patterns ("files.*"), in the order of these."""
        found: dict[str, Capability] = {}
        for pattern in patterns:
            if (exact := self._capabilities.get(pattern)) is not None:  # there may be thousands of them
                found.setdefault(pattern, exact)
                continue
            for name, capability in self._capabilities.items():
                if fnmatch.fnmatchcase(name, pattern):
                    found.setdefault(name, capability)
        return Catalogue(found.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._capabilities)

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        """Perform one action; whatever its provider does, there is one outcome, without secrets."""
        capability = self._capabilities.get(action.capability)
        if self.screen is None or capability is None:
            outcome = await self._perform(action, scope)
        else:
            outcome = await self.screen(action, capability, scope, self._perform)
        return masked(outcome, self.secrets)

    def masking(self, blobs: Blobs) -> Blobs:
        """The store as providers are given it: no text with a secret gets into it."""
        return MaskedBlobs(blobs, self.secrets) if self.secrets else blobs

    async def _perform(self, action: Action, scope: Scope) -> Outcome:
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


def masked(outcome: Outcome, secrets: Secrets) -> Outcome:
    """The outcome with every secret replaced, in text, data and text values."""
    if not secrets:
        return outcome
    values = tuple(_masked_value(value, secrets) for value in outcome.values)
    text, data = secrets.mask(outcome.text), secrets.masked(outcome.data)
    return replace(outcome, text=text, data=data, values=values)


def _masked_value(value: Value, secrets: Secrets) -> Value:
    """A big text is masked when it is put into the store (`MaskedBlobs`)."""
    if value.text is None or (text := secrets.mask(value.text)) == value.text:
        return value
    return replace(value, text=text, size=len(text.encode()))


class MaskedBlobs:
    """Blobs that take in texts without secrets; what is no text stays byte for byte."""

    def __init__(self, blobs: Blobs, secrets: Secrets) -> None:
        self._blobs = blobs
        self._secrets = secrets

    def put(self, content: bytes) -> str:
        return self._blobs.put(self._secrets.masked_bytes(content))

    def get(self, sha256: str) -> bytes:
        return self._blobs.get(sha256)
