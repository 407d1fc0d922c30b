"""The assembly: the one place that wires providers, organs and kernel into a machine."""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from textor import events as e
from textor.broker.provider import AppsProvider
from textor.capabilities.modules.spec import folder_of
from textor.capabilities.port import Provider
from textor.capabilities.registry import Registry
from textor.capabilities.shell import ShellProvider
from textor.config import Config
from textor.definitions import agent_folders, list_definitions, load_definition
from textor.dialect_wiring import compiler, dialect_of, embedder_of
from textor.errors import DefinitionError, TextorError, UseError
from textor.events import Definition, Limits
from textor.hosts.local import LocalHost
from textor.journal.lock import HostLock
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal, SessionInfo
from textor.journal.sqlite import SqliteJournal
from textor.kernel.services import Services
from textor.kernel.state import State
from textor.layouts import Layouts, room_of
from textor.layouts.monitor import Monitor
from textor.layouts.status import parts_of
from textor.machine_state import MachineState
from textor.making.provider import Loaded, making_provider
from textor.models.media import supplied
from textor.policy import Gate, Labelling
from textor.policy.rules import AREA as RULES
from textor.processors import ModelInfo, Models, model_for, named_models
from textor.record.provider import iterations_provider
from textor.secrets import EMAIL, KNOWN, Handed, Masking, from_environment, from_keyring
from textor.session import Session
from textor.tree.agent_types import AgentTypes, agents_provider, callable_section
from textor.tree.calls import tree_provider
from textor.tree.finding import Finder, finding_provider
from textor.tree.scope import Scope
from textor.tree.select_llm import select_provider

if TYPE_CHECKING:
    from textor.broker.broker import Broker

log = logging.getLogger("textor.assembly")

#: The agent types of a person without and with a bigger model.
BOX_AGENT = "starter"
DEFAULT_AGENT = "main"

#: How often a process that is not the host looks whether the host is gone, in seconds.
TAKE_OVER = 1.0


def new_agent(
    services: Services,
    name: str,
    definition: Definition,
    model: str,
    caller: str = "",
    types: AgentTypes | None = None,
) -> e.AgentCreated:
    """The event that makes an agent: its prefix as it will be sent, what it is offered. Its prompt
    is told which of the `types` it can call.

    Raises `TextorError` when its model, layout or dialect cannot be had.
    """
    processor = services.model(model)
    room = room_of(definition.layout, processor.window, services.context_ratio)
    offered = services.registry.catalogue(definition.capabilities)
    dialect = services.dialect(definition, processor.native_tools)
    capabilities = tuple(offered)
    told = definition
    if (
        types is not None
        and "call" in offered
        and (section := callable_section(types.callable_by(definition)))
    ):
        told = replace(definition, prompt=f"{definition.prompt}\n\n{section}")
    prefix = services.layout(definition.layout).prefix(told, dialect, capabilities)
    tools = dialect.declare(capabilities)
    return e.AgentCreated(name, definition, model, caller, prefix, tools, offered.names, room)


def new_session_id() -> str:
    """The time to the minute and five random letters: easy to read aloud and to type."""
    letters = "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(5))
    return f"{time.strftime('%Y%m%d-%H%M')}-{letters}"


class Machine:
    """A running Textor: journal, capabilities, models, and a host unless another process is it."""

    def __init__(
        self, config: Config, services: Services, models: Models, providers: Sequence[Provider] = ()
    ) -> None:
        self.config = config
        self.providers = providers
        self.services = services
        self.host: LocalHost | None = None
        self._models = models

    @property
    def journal(self) -> Journal:
        return self.services.journal

    def default_agent(self, model: str = "") -> str:
        """`main` where there is a model for it, else `starter`, which the model in the box can do."""
        named = model or self.config.model_for(DEFAULT_AGENT)
        return DEFAULT_AGENT if named and not named.startswith("embedded:") else BOX_AGENT

    def definition(self, type: str, workspace: Path | None = None) -> Definition:
        return load_definition(type, agent_folders(workspace, self.config.agents))

    async def create(
        self,
        text: str | None = None,
        *,
        workspace: Path,
        agent: str = "",
        model: str = "",
        policy: str = "ask",
        attended: bool = True,
        limits: Limits | None = None,
        title: str = "",
        definition: Definition | None = None,
        review: bool = False,
        id: str | None = None,
    ) -> Session:
        """Begin a session with its agent `main`, and with a first message where `text` is one.
        With `review` each reply of it waits for a person.

        Raises `TextorError` when the agent type or its model cannot be had; nothing is made then.
        """
        workspace = await asyncio.to_thread(workspace.resolve)
        session = id or new_session_id()
        if definition is None:
            definition = self.definition(agent or self.default_agent(model), workspace)
        if review:
            definition = replace(definition, review=True)
        chosen = model_for(self.config, definition, model)
        types = AgentTypes(agent_folders(workspace, self.config.agents), {})
        main = new_agent(self.services, "main", definition, chosen, types=types)
        created = e.SessionCreated(
            str(workspace), policy, limits or self.config.limits, title or _title(text), attended, session
        )
        bodies: list[e.Body] = [created, main]
        if text is not None:
            bodies.append(e.MessagePosted("main", text))
        await self.journal.create(session, [self.services.event(body) for body in bodies])
        if self.host is not None:
            self.host.wake(session)
        return Session(session, self.services)

    async def session(self, id: str) -> Session:
        """A session of the journal. Raises `UseError` with the nearest id."""
        if await self.journal.session(id) is not None:
            return Session(id, self.services)
        known = [info.id for info in await self.journal.sessions()]
        matching = [k for k in known if k.startswith(id)] if id else []
        if len(matching) == 1:
            return Session(matching[0], self.services)
        near = difflib.get_close_matches(id, known, 1, 0.3)
        hint = f"Did you mean {near[0]}?" if near else "`textor sessions` lists them."
        raise UseError(f"There is no session {id!r}.", hint)

    async def sessions(self) -> list[SessionInfo]:
        return await self.journal.sessions()

    async def models(self) -> list[ModelInfo]:
        """The models that are configured, in the box, or served on this machine."""
        from textor.models.discovery import discover

        named = [*named_models(self.config), *await discover()]
        return [self._info(id) for id in dict.fromkeys(named)]

    def _info(self, id: str) -> ModelInfo:
        try:
            model = self._models(id)
        except TextorError as error:
            return ModelInfo(id, 0, None, None, False, str(error))
        prices = [model.price(1_000_000, 0), model.price(0, 1_000_000)]
        return ModelInfo(id, model.window, prices[0], prices[1], True)

    def agent_types(self, workspace: Path | None = None) -> list[Definition]:
        """All agent types that can be read."""
        faults: list[DefinitionError] = []
        return list_definitions(agent_folders(workspace, self.config.agents), faults)

    @cached_property
    def broker(self) -> Broker:
        """The apps of this machine, and plans."""
        from textor.broker.broker import Broker
        from textor.broker.compiler import Compiler

        apps = self.services.registry.provider(AppsProvider.name)
        assert isinstance(apps, AppsProvider)
        shared = self.services.compile
        compile = shared if isinstance(shared, Compiler) else compiler(self.config)
        return Broker(
            self.services,
            apps,
            compile,
            lambda name, definition, model: new_agent(self.services, name, definition, model),
            lambda model: model_for(self.config, Definition("plan"), model),
            self.config.apps.facts,
        )

    async def close(self) -> None:
        """Stop what runs and let go of everything; the journal can be opened again."""
        if "broker" in self.__dict__:
            await self.broker.close()
        if self.host is not None:
            await self.host.close()
        if (end := getattr(self.services.compile, "close", None)) is not None:
            await asyncio.to_thread(end)
        await self.services.registry.close()
        await self._models.close()
        await self.journal.close()


def _title(text: str | None) -> str:
    first = (text or "").strip().split("\n", 1)[0]
    return first if len(first) <= 80 else first[:79] + "…"


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
        for task in (waiting, following):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
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
    while not lock.acquire():  # noqa: ASYNC110 - another process tells nothing when it dies
        await asyncio.sleep(TAKE_OVER)
    await _be_host(machine)
