"""Keeps a running machine in step with its list of modules, whoever changes that."""

from __future__ import annotations

from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import AREA, read_entries
from textor.events import Stored
from textor.journal.port import MACHINE, Journal


async def follow(journal: Journal, provider: ModulesProvider) -> None:
    """Add, exchange and end modules as the journal of the machine says, for ever."""
    info = await journal.session(MACHINE)
    async for event in journal.follow(MACHINE, 0 if info is None else info.head):
        if isinstance(event.body, Stored) and event.body.area == AREA:
            await catch_up(journal, provider)


async def catch_up(journal: Journal, provider: ModulesProvider) -> None:
    """What is kept now, and nothing else, is what the provider serves afterwards."""
    specs = {name: entry.spec for name, entry in (await read_entries(journal)).items()}
    for name in list(provider.modules):
        if name not in specs:
            await provider.remove(name)
    for name, spec in specs.items():
        known = provider.modules.get(name)
        if known is None or known.spec != spec:
            await provider.add(spec)
        else:
            known.look_again()
