"""A machine: sessions are made, found and listed here, over services that are wired elsewhere."""

from __future__ import annotations

import asyncio
import difflib
import secrets
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from textor import events as e
from textor.broker.provider import AppsProvider
from textor.capabilities.port import Provider
from textor.config import Config
from textor.definitions import agent_folders, list_definitions, load_definition
from textor.dialect_wiring import compiler
from textor.errors import DefinitionError, TextorError, UseError
from textor.events import Definition, Limits
from textor.hosts.local import LocalHost
from textor.journal.port import Journal, SessionInfo
from textor.kernel.services import Services
from textor.layouts import room_of
from textor.processors import ModelInfo, Models, model_for, named_models
from textor.session import Session
from textor.tree.agent_types import AgentTypes, callable_section
from textor.values import Value

if TYPE_CHECKING:
    from textor.broker.broker import Broker

#: The agent types of a person without and with a bigger model.
BOX_AGENT = "starter"
DEFAULT_AGENT = "main"


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
        values: Sequence[Value] = (),
        id: str | None = None,
    ) -> Session:
        """Begin a session with its agent `main`, and with a first message where `text` is one, which
        has these `values`. With `review` each reply of it waits for a person.

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
            str(workspace),
            policy,
            limits or self.config.limits_of(definition.limits),
            title or _title(text),
            attended,
            session,
        )
        bodies: list[e.Body] = [created, main]
        if text is not None:
            bodies.append(e.MessagePosted("main", text, values=tuple(values)))
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
