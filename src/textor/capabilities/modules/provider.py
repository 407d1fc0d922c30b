"""The provider `modules`: the tools of all modules of the machine, none of which holds the others up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from textor.actions import Action, Capability, Outcome
from textor.capabilities.modules.module import Module
from textor.capabilities.modules.questions import Ask
from textor.capabilities.modules.spec import ModuleSpec
from textor.capabilities.port import Scope
from textor.errors import CapabilityError, UseError


class ModulesProvider:
    """Serves what is known of each module now: from the list it told last time, kept in `folder`.

    A module whose tools nobody knows yet is started in the background; `changed` is called, with
    its name, when its tools have come or have become others, and the registry should then ask for
    `capabilities()` again. All others are started by their first call.
    """

    name = "modules"

    def __init__(
        self,
        specs: Iterable[ModuleSpec],
        folder: Path | None = None,
        *,
        ask: Ask | None = None,
        changed: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.changed = changed
        self._folder = folder
        self._ask = ask
        self._clock = clock
        self._sleep = sleep
        self.modules: dict[str, Module] = {}
        self._told: dict[str, tuple[Capability, ...]] = {}
        for spec in specs:
            self._make(spec)

    async def capabilities(self) -> Sequence[Capability]:
        """What is known at once; waits for no module."""
        for module in self.modules.values():
            if not module.known and module.state == "off":
                module.start()
        return [tool.capability for module in self.modules.values() for tool in module.tools.usable.values()]

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        module = self.modules.get(action.capability.partition(".")[0])
        if module is None:
            return Outcome.failed(f"There is no module for {action.capability!r} now.")
        try:
            if not module.known:
                await module.ready()
            tool = module.tools.usable.get(action.capability)
            if tool is None:
                return Outcome.failed(f"The module {module.spec.name} has no tool {action.capability!r} now.")
            return await module.call(tool, action.arguments, scope)
        except CapabilityError as error:
            return Outcome("failed", str(error), labels=module.labels)

    async def add(self, spec: ModuleSpec) -> Module:
        """Take a module in while the machine runs, in the place of one of the same name."""
        await self.remove(spec.name)
        module = self._make(spec)
        module.start()
        return module

    async def remove(self, name: str) -> None:
        """End a module and forget it; nothing when there is none."""
        module = self.modules.pop(name, None)
        self._told.pop(name, None)
        if module is not None:
            await module.close()
            self._tell(name)

    def module(self, name: str) -> Module:
        """A module by name; `UseError` when there is none."""
        try:
            return self.modules[name]
        except KeyError:
            known = ", ".join(self.modules) or "none"
            raise UseError(f"There is no module {name!r}.", f"There is: {known}.") from None

    async def close(self) -> None:
        """End them all, at the same time."""
        await asyncio.gather(*(module.close() for module in self.modules.values()))

    def _make(self, spec: ModuleSpec) -> Module:
        module = Module(
            spec, self._folder, ask=self._ask, changed=self._heard, clock=self._clock, sleep=self._sleep
        )
        self.modules[spec.name] = module
        self._told[spec.name] = _capabilities(module)
        return module

    def _heard(self, module: Module) -> None:
        name = module.spec.name
        if self.modules.get(name) is module and _capabilities(module) != self._told[name]:
            self._told[name] = _capabilities(module)
            self._tell(name)

    def _tell(self, name: str) -> None:
        if self.changed is not None:
            self.changed(name)


def _capabilities(module: Module) -> tuple[Capability, ...]:
    return tuple(tool.capability for tool in module.tools.usable.values())
