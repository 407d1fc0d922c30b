"""Opening a machine over a data folder: who is its host, and who takes over."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from textor.assembly.machine import Machine
from textor.assembly.services import core_providers, make_services
from textor.broker.provider import AppsProvider
from textor.capabilities.modules.spec import folder_of
from textor.capabilities.port import Provider
from textor.config import Config
from textor.errors import TextorError
from textor.hosts.local import LocalHost
from textor.journal.lock import HostLock
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.journal.sqlite import SqliteJournal
from textor.kernel.services import Services
from textor.processors import Models
from textor.secrets import Handed

log = logging.getLogger("textor.assembly")

#: How often a process that is not the host looks whether the host is gone, in seconds.
TAKE_OVER = 1.0


@asynccontextmanager
async def open_machine(config: Config, *, memory: bool = False, host: bool = True) -> AsyncIterator[Machine]:
    """A machine over the configured data folder; becomes the host when no other process is.

    `memory`: nothing is kept. Without `host` nothing goes on here: for who only reads. Raises
    `JournalError` when the data folder cannot be used.
    """
    journal: Journal = MemoryJournal() if memory else SqliteJournal(config.data / "journal.db")
    models = Models(config)
    apps = AppsProvider(journal, None if memory else config.data)
    providers = [*await core_providers(config, memory=memory), apps]
    services = await make_services(config, journal, models, providers)
    if not memory:
        services.hub.secrets = Handed(config.data / "handed")
    machine = Machine(config, services, models, providers)
    following = None if memory else await follow_modules(config, services)
    lock = HostLock(config.data / "host.lock") if host and not memory else None
    waiting: asyncio.Task[None] | None = None
    if not host:
        pass
    elif lock is None or lock.acquire():
        await _be_host(machine)
    else:
        waiting = asyncio.create_task(_host_when_free(machine, lock), name="host when free")
    try:
        yield machine
    except Exception:
        _leave_containers(providers)
        raise
    finally:
        helpers = [task for task in (waiting, following) if task is not None]
        for task in helpers:
            task.cancel()
        for fault in await asyncio.gather(*helpers, return_exceptions=True):
            if isinstance(fault, Exception):  # whatever became of a helper, the machine is closed
                log.error("A helper of the machine failed: %s", fault)
        await machine.close()
        if lock is not None:
            lock.release()


def _leave_containers(providers: Sequence[Provider]) -> None:
    """Under supervision a process that fails is replaced at once, so sessions keep their containers."""
    if "TEXTOR_SUPERVISED" in os.environ:
        from textor.containers.provider import ContainersProvider

        for provider in providers:
            if isinstance(provider, ContainersProvider):
                provider.staying = True


async def follow_modules(config: Config, services: Services) -> asyncio.Task[None]:
    """Serve the modules that a person added, and keep in step with `textor modules`."""
    from textor.capabilities.modules.following import follow
    from textor.capabilities.modules.provider import ModulesProvider
    from textor.capabilities.modules.spec import read_entries
    from textor.tree.elicitation import ask_person

    renewals: set[asyncio.Task[None]] = set()

    def changed(name: str) -> None:
        task = asyncio.get_running_loop().create_task(services.registry.refresh(modules))
        renewals.add(task)
        task.add_done_callback(renewals.discard)

    entries = await read_entries(services.journal)
    specs = [entry.spec for entry in entries.values()]
    modules = ModulesProvider(specs, folder_of(config.data), ask=ask_person, changed=changed)
    await services.registry.add(modules)
    return asyncio.create_task(follow(services.journal, modules), name="modules")


async def _be_host(machine: Machine) -> None:
    sessions = [info.id for info in await machine.sessions()]
    for provider in machine.providers:
        # what a host that died left in the engine: followed again, or removed (case T7)
        if (adopt := getattr(provider, "adopt", None)) is not None:
            try:
                await adopt(sessions)
            except TextorError as error:  # the engine broke off; the next start looks again
                log.warning("%s", error)
    machine.services.hub.secrets.host(time.time())
    host = LocalHost(machine.services)
    await host.start()
    machine.host = host


async def _host_when_free(machine: Machine, lock: HostLock) -> None:
    """Take over when the hosting process ends, so that a session never stands still."""
    while True:
        while not lock.acquire():  # noqa: ASYNC110 - another process tells nothing when it dies
            await asyncio.sleep(TAKE_OVER)
        try:
            return await _be_host(machine)
        except TextorError as error:  # who holds the lock hosts: another one may be able to
            log.warning("Hosting cannot be taken over now: %s", error)
            lock.release()
            await asyncio.sleep(TAKE_OVER)
