"""Agent types at run time: which ones a session can call, and new ones written by agents.

A type that an agent wrote is held to its author: it may name no capability whose effects the
author does not have. It is checked, rehearsed once without effects, and kept in the session's
journal; in the person's folder, for all sessions, only through the gate.

The idea that agents build new types of agents is from AIlice ("self-expansion").
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textor import events as e
from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope as PortScope
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.definitions import key_place, list_definitions, load_definition, parse_definition
from textor.errors import CapabilityError, DefinitionError
from textor.events import Definition
from textor.explain import known
from textor.kernel.budget import effective
from textor.kernel.services import Services
from textor.memory.bm25 import Bm25
from textor.tree.calls import Make
from textor.tree.rehearsal import rehearse
from textor.tree.scope import Scope
from textor.values import Json

NAME = "agents"  #: of the provider
#: The area of `events.Stored` in which a session keeps the types written in it.
AREA = "agent"
#: Capabilities that reach further than their own effects say: their user's author must have them.
REACHING = ("call", "use")
#: Providers whose capabilities give no licence for what they do themselves: that an agent may have a
#: type kept does not let it write files, and modules are loaded through the gate alone.
NO_LICENCE = (NAME, "modules.making")
#: So many types are listed for a query.
MOST_LISTED = 20

LIST = Capability(
    "agents.list",
    "List the agent types that can be called, those that fit the query first.",
    parameters(query={"type": "string", "default": "", "description": "what the agent should be able to do"}),
    repeat="idempotent",
    phrases=("list agent types for []",),
)
CREATE = Capability(
    "agents.create",
    "Make a new agent type for this session: checked, tried once, then callable. It may use only "
    "capabilities whose effects you have yourself.",
    parameters(
        ["markdown"],
        markdown={
            "type": "string",
            "description": "the type's file: front matter, then its prompt, e.g.\n---\nname: log-reader\n"
            "purpose: Finds the cause of a failure in log files.\n"
            "capabilities: [files.read, files.search, ask]\n---\n"
            "You read log files. Quote the first line that shows the cause …",
        },
    ),
    repeat="keyed",
)
KEEP = Capability(
    "agents.keep",
    "Keep an agent type that was made in this session for all sessions to come.",
    parameters(["type"], type={"type": "string", "description": "its name"}),
    effects=("write",),
    repeat="idempotent",
    outside=True,
)


class AgentTypes:
    """The agent types of one session: those written in it, then those in the folders.

    `stored` is `State.stored`; a type in it hides a file of the same name.
    """

    def __init__(self, folders: Sequence[Path], stored: Mapping[tuple[str, str], Any]) -> None:
        self._folders = folders
        self._written = {key: text for (area, key), text in stored.items() if area == AREA}

    def load(self, type: str) -> Definition:
        """The type of this name. Raises `DefinitionError` with the nearest names."""
        if type in self._written:
            return parse_definition(self._written[type])
        try:
            return load_definition(type, self._folders)
        except DefinitionError:
            names = [d.type for d in self.all()]
            if type in names:
                raise
            hint = known(type, names, all_of="there are")
            raise DefinitionError(f'There is no agent type "{type}"{hint}.') from None

    def all(self) -> list[Definition]:
        """All that can be read, by name."""
        found = {d.type: d for d in list_definitions(self._folders, [])}
        found |= {type: parse_definition(text) for type, text in self._written.items()}
        return [found[type] for type in sorted(found)]

    def callable_by(self, definition: Definition) -> list[Definition]:
        """The types that this one's file names under `agents`, in its order; "*" is all others.
        Names of types that are not there are left out."""
        if "*" in definition.agents:
            return [d for d in self.all() if d.type != definition.type]
        found: list[Definition] = []
        for type in definition.agents:
            try:
                found.append(self.load(type))
            except DefinitionError:
                continue
        return found


def callable_section(types: Iterable[Definition]) -> str:
    """What a prompt says of the types that its agent can call; "" for none."""
    lines = [f"* {d.type}: {d.purpose}" for d in types]
    return "\n".join(("Types of agents that you can call", *lines)) if lines else ""


def agents_provider(
    services: Services, types: Callable[[Scope], AgentTypes], make: Make, own: Path
) -> TableProvider:
    """The provider `agents`. `types` gives those of an action's session, `make` the event that
    makes an agent, `own` is the person's folder."""
    made = _Agents(services, types, make, own)
    return TableProvider(NAME, [Entry(LIST, made.list), Entry(CREATE, made.create), Entry(KEEP, made.keep)])


class _Agents:
    def __init__(
        self, services: Services, types: Callable[[Scope], AgentTypes], make: Make, own: Path
    ) -> None:
        self._services = services
        self._types = types
        self._make = make
        self._own = own

    async def list(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        found = self._types(_own(scope)).all()
        best = Bm25(f"{d.type} {d.purpose}" for d in found).best(str(arguments["query"]))
        order = best[:MOST_LISTED] or list(range(len(found)))
        data = [{"type": found[at].type, "purpose": found[at].purpose} for at in order]
        return Outcome("done", "\n".join(f"{d['type']}: {d['purpose']}" for d in data), data=data)

    async def create(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        text = str(arguments["markdown"])
        definition = parse_definition(text)
        type = definition.type
        self._check_new(type, text, scope)
        self._check(definition, text, scope)
        created = self._make(f"{scope.agent}/{type}", definition, scope)
        await rehearse(self._services, created)
        await scope.post(e.Stored(AREA, type, text), f"type {scope.key}")
        await scope.until(lambda state: state.stored.get((AREA, type)))
        return Outcome("done", f"{type} was tried and can be called in this session: call with type {type}.")

    def _check_new(self, type: str, text: str, scope: Scope) -> None:
        """A name stands for one text, so that a person who lets it be kept knows for which."""
        stored = scope.state.stored.get((AREA, type))
        if stored is None and type not in [d.type for d in self._types(scope).all()]:
            return
        if stored != text:
            raise CapabilityError(f"There is already an agent type {type}.", "Take another name.")

    def _check(self, definition: Definition, text: str, scope: Scope) -> None:
        """Raises `CapabilityError` for what the schema cannot see."""
        file = Path(f"{definition.type}.md")
        if not definition.prompt:
            raise CapabilityError(f"{file}: the prompt is empty.", "Write it below the second ---.")
        if not definition.purpose:
            raise CapabilityError(f"{file}: purpose is empty.", "Say in one sentence what the type is for.")
        place = key_place(text, "capabilities", file)
        author = scope.state.agents[scope.agent]
        offered = self._services.offered(author.offered)
        effects = {x for c in offered if c.provider not in NO_LICENCE for x in c.effects}
        for name in definition.capabilities:
            capability = self._services.registry.get(name)
            if capability is None:
                raise CapabilityError(f"{place}: {self._unknown(name)}")
            wider: list[str] = [x for x in capability.effects if x not in effects]
            if name in REACHING and name not in author.offered:
                wider = ["the agents and capabilities that it reaches"]
            if wider:
                raise CapabilityError(
                    f"{place}: {name} has effects that you do not have yourself: {', '.join(wider)}.",
                    "Leave it out, or ask your caller to do it.",
                )
        self._check_limits(definition, key_place(text, "limits", file), scope)

    def _unknown(self, name: str) -> str:
        """Patterns are not for agents: what they match may grow after the check."""
        registry = self._services.registry
        if matching := registry.catalogue([name]).names:
            return f"{name} is a pattern; name each capability: {', '.join(matching)}."
        return f"there is no capability {name}{known(name, registry.names, all_of='there are')}."

    def _check_limits(self, definition: Definition, place: str, scope: Scope) -> None:
        """A type's own limits count instead of the session's: they must not be a way around them."""
        allowed = effective(scope.state, scope.state.agents[scope.agent])
        for name in ("iterations", "seconds"):
            wanted, most = getattr(definition.limits, name), getattr(allowed, name)
            if wanted is not None and most is not None and wanted > most:
                raise CapabilityError(f"{place}: limits.{name} is {wanted}; you have {most} yourself.")

    async def keep(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        type = str(arguments["type"])
        text = _own(scope).state.stored.get((AREA, type))
        if text is None:
            raise CapabilityError(f"{type!r} was not made in this session.", "agents.create makes a type.")
        path = self._own / f"{type}.md"
        await asyncio.to_thread(_write_new, path, str(text))
        return Outcome("done", f"{type} is kept for all sessions, in {path}.")


def _own(scope: PortScope) -> Scope:
    assert isinstance(scope, Scope)  # the kernel hands out no other
    return scope


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, whole or not at all. Raises `CapabilityError`."""
    try:
        if path.exists():
            if path.read_text("utf-8") != text:
                raise CapabilityError(f"{path} is there already, with another text.", "It stays as it is.")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(text, "utf-8")
        draft.rename(path)
    except OSError as error:
        raise CapabilityError(f"{path} cannot be written: {error.strerror}.") from None
