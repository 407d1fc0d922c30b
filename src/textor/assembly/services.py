"""The wiring: providers, organs and kernel become the services of one machine."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from textor import events as e
from textor.assembly.machine import new_agent
from textor.broker.provider import AppsProvider
from textor.capabilities.modules.spec import folder_of
from textor.capabilities.port import Provider
from textor.capabilities.registry import Registry
from textor.capabilities.shell import ShellProvider
from textor.config import Config
from textor.definitions import agent_folders
from textor.dialect_wiring import compiler, dialect_of, embedder_of
from textor.events import Definition
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.kernel.services import Services
from textor.kernel.state import State
from textor.layouts import Layouts
from textor.layouts.monitor import Monitor
from textor.layouts.status import parts_of
from textor.machine_state import MachineState
from textor.models.media import supplied
from textor.policy import Gate, Labelling
from textor.policy.rules import AREA as RULES
from textor.processors import Models, model_for, named_models
from textor.record.provider import iterations_provider
from textor.secrets import EMAIL, KNOWN, Masking, from_environment, from_keyring
from textor.tree.agent_types import AgentTypes, agents_provider
from textor.tree.calls import tree_provider
from textor.tree.finding import Finder, finding_provider
from textor.tree.scope import Scope
from textor.tree.select_llm import select_provider


async def core_providers(config: Config | None = None, *, memory: bool = False) -> list[Provider]:
    """What every machine has: core, files, shell, the sandbox where there is one, and containers
    where there is an engine. Without a configuration no engine is looked for."""
    from textor.capabilities.core import core_provider
    from textor.capabilities.files import FilesProvider
    from textor.capabilities.sandbox import find_sandbox

    if config is None:
        return [core_provider(), FilesProvider(), ShellProvider(await asyncio.to_thread(find_sandbox))]
    from textor.containers.choose import choose, rules_of
    from textor.containers.expose import SandboxProvider
    from textor.containers.labels import this_process
    from textor.containers.provider import ContainersProvider

    owner = this_process(None if memory else config.data)
    choice = await choose(config.sandbox, owner)
    providers: list[Provider] = [core_provider(), FilesProvider(), ShellProvider(choice.sandbox)]
    if choice.sandbox is not None:
        providers.append(SandboxProvider(choice.sandbox))
    if choice.engine is not None:
        folder = None if memory else config.data / "containers"
        containers = ContainersProvider(choice.engine, owner, rules_of(config.containers), folder)
        return [*providers, containers, Monitor(containers)]
    return [*providers, Monitor()]


def monitor_of(providers: Sequence[Provider]) -> Monitor | None:
    """The provider that watches, which faces attach standard input to."""
    return next((p for p in providers if isinstance(p, Monitor)), None)


def guarded(config: Config) -> tuple[Path, ...]:
    """Textor's own files: what they say decides what agents may do, or opens the machine."""
    journal = config.data / "journal.db"
    beside = [journal.with_name(journal.name + end) for end in ("", "-wal", "-shm", "-blobs")]
    modules = folder_of(config.data)  # what was loaded from there runs unasked
    more = [config.data / name for name in ("token", "versions", "handed")]
    return (config.path, config.agents, modules, *more, *beside)


def known_secrets(config: Config) -> None:
    """Have the keys of the configuration, of the environment and of our own server masked."""
    for provider, settings in config.providers.items():
        KNOWN.add(f"providers.{provider}.api_key", settings.api_key)
    mail = config.apps.email
    KNOWN.add("apps.email.password", mail.password)
    if mail.user and not mail.password:  # beside us: a keyring may wait for a person to unlock it
        threading.Thread(target=_mask_from_keyring, args=[mail.user], name="keyring", daemon=True).start()
    for name, secret in from_environment():
        KNOWN.add(name, secret)
    with suppress(OSError, UnicodeDecodeError):
        KNOWN.add("token", (config.data / "token").read_text("ascii"))
    for handler in logging.getLogger().handlers:
        if not any(isinstance(known, Masking) for known in handler.filters):
            handler.addFilter(Masking())


def _mask_from_keyring(user: str) -> None:
    KNOWN.add("apps.email.password", from_keyring(EMAIL, user))


async def make_services(
    config: Config,
    journal: Journal,
    models: Models,
    providers: Sequence[Provider],
    *,
    clock: Callable[[], float] = time.time,
) -> Services:
    """Services over a journal with these providers."""
    # these only a machine needs, and not a program that makes agents of its own
    from textor.making.provider import Loaded, making_provider
    from textor.versions import Versions
    from textor.versions.provider import self_provider

    known_secrets(config)
    registry = Registry()

    def others(state: State) -> Sequence[Definition]:
        workspace = Path(state.created.workspace) if state.created else None
        *folders, _box = agent_folders(workspace, config.agents)
        return AgentTypes(folders, state.stored).all()

    own_modules = None if isinstance(journal, MemoryJournal) else folder_of(config.data)
    loaded = Loaded(own_modules, registry)
    finder = Finder(registry, others, lru_cache(1)(lambda: embedder_of(config)), loaded.hidden)
    monitor = monitor_of(providers) or Monitor()
    layouts = Layouts(parts_of(monitor), lambda id: models(id).window)
    kept = MachineState(journal, {RULES})
    await kept.read()
    kept.follow()
    gate = Gate(config.gate.rules, lambda: kept.stored, guarded(config))
    registry.screen = Labelling(gate, config.gate.outside)
    ratio = config.context.ratio
    shown = supplied(models, journal.blobs)
    services = Services(
        journal, registry, shown, dialect_of, layouts, finder, gate, Scope, compiler(config), ratio, clock
    )

    def types(scope: Scope) -> AgentTypes:
        return AgentTypes(agent_folders(scope.workspace, config.agents), scope.state.stored)

    def load(type: str, scope: Scope) -> Definition:
        return types(scope).load(type)

    def make(name: str, definition: Definition, scope: Scope) -> e.AgentCreated:
        model = model_for(config, definition)
        return new_agent(services, name, definition, model, scope.agent, types(scope))

    agents = agents_provider(services, types, make, config.agents)
    watching = () if monitor in providers else (monitor,)
    select = select_provider(services, lambda: named_models(config))
    past = iterations_provider(journal, layouts)
    own = self_provider(Versions(config.data), config.own.base)
    made = own_modules / "made" if own_modules is not None else None
    sandbox = next((p.sandbox for p in providers if isinstance(p, ShellProvider)), None)
    making = making_provider(registry, journal, loaded, sandbox, config.modules, made)
    for provider in (
        *providers,
        *watching,
        tree_provider(load, make),
        agents,
        select,
        past,
        own,
        loaded,
        making,
        finding_provider(finder),
    ):
        await registry.add(provider)
    apps = registry.provider(AppsProvider.name)
    if not isinstance(apps, AppsProvider):
        apps = AppsProvider(journal, None if isinstance(journal, MemoryJournal) else config.data)
        await registry.add(apps)
    await apps.connect(registry)
    return services
