"""Finding by meaning: what an agent is offered for the message at hand beyond its fixed list.

Capabilities of modules and apps may be thousands; they are not declared. The best ten for a message
are shown with it as an observation and used through one fixed capability, `use(name, arguments)`,
checked against the found schema, so that the declared functions never change within a dialogue.

Two rankings are fused by reciprocal ranks (Cormack, Clarke and Büttcher, 2009, k = 60): BM25 over
name, description and parameters, and cosines over name and description where the embedder is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from textor.actions import Capability, Outcome
from textor.arguments import describe
from textor.capabilities.port import Scope
from textor.capabilities.registry import Registry
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.embedding import Embedder
from textor.errors import CapabilityError
from textor.events import Definition
from textor.kernel.state import AgentState, State
from textor.memory.bm25 import Bm25
from textor.near import did_you_mean, nearest
from textor.values import Json

if TYPE_CHECKING:
    from textor.embedding import Vectors

#: Providers whose capabilities are found and not declared.
FINDABLE = ("modules", "modules.loaded", "apps")
MOST = 10  #: capabilities shown with a message
MOST_TYPES = 3  #: agent types shown with a message
RANK = 60  #: the constant of reciprocal rank fusion
LEAST = 0.2  #: cosines below this are no likeness

USE = Capability(
    "use",
    "Use a capability that was found for you, by its name and with its arguments.",
    parameters(
        ("name",),
        name={"type": "string", "description": "the name as it was shown"},
        arguments={"type": "object", "description": "its arguments", "default": {}},
    ),
)
FIND = Capability(
    "capabilities.find",
    "Find further capabilities for what you want to do; what is found is used through `use`.",
    parameters(("query",), query={"type": "string", "description": "what you want to do"}),
    repeat="idempotent",
)


class Ranking:
    """Ranks texts for a query. `plain` are the texts for BM25, `meant` those for the embedder.

    Vectors are made by `embed`; until then the words alone decide.
    """

    def __init__(self, plain: Sequence[str], meant: Sequence[str]) -> None:
        self._words = Bm25(plain)
        self._meant = list(meant)
        self._vectors: Vectors | None = None

    def embed(self, embedder: Embedder) -> None:
        """Make the vectors. Blocks."""
        if self._vectors is None and self._meant:
            self._vectors = embedder.encode(self._meant, "passage")

    def best(self, query: str, most: int, embedder: Embedder | None = None) -> list[int]:
        """The places of the best texts, best first; those that share nothing are left out."""
        fused: dict[int, float] = {}
        rankings = [self._words.best(query)]
        if embedder is not None and self._vectors is not None:
            cosines = self._vectors @ embedder.encode([query], "query")[0]
            near = (int(n) for n in (-cosines).argsort()[: 5 * most])
            rankings.append([n for n in near if cosines[n] > LEAST])
        for ranking in rankings:
            for rank, place in enumerate(ranking):
                fused[place] = fused.get(place, 0.0) + 1 / (RANK + rank)
        return sorted(fused, key=lambda place: -fused[place])[:most]


class Finder:
    """What is told to an agent beside a message, and what `use` may use.

    `types` gives the agent types of a session beyond those in the box, which prompts name;
    `embedder` the embedding model, if any; `hidden` says of a capability whether a session is not to
    find it, since it belongs to another.
    """

    def __init__(
        self,
        registry: Registry,
        types: Callable[[State], Iterable[Definition]],
        embedder: Callable[[], Embedder | None],
        hidden: Callable[[str, str], bool] = lambda capability, session: False,
    ) -> None:
        self._registry = registry
        self._hidden = hidden
        self._types = types
        self._embedder = embedder
        self._names: tuple[str, ...] = ()
        self._ranking = Ranking((), ())
        self._making: asyncio.Task[None] | None = None

    def findable(self, name: str) -> Capability | None:
        """The capability of this name when it may be used through `use`."""
        capability = self._registry.get(name)
        fits = capability is not None and capability.provider in FINDABLE and capability.returns
        return capability if fits else None

    def __call__(self, state: State, agent: AgentState, text: str) -> str:
        """What is shown with a message: found capabilities and agent types; "" when there are none."""
        parts: list[str] = []
        session = state.created.session if state.created is not None else ""
        if USE.name in agent.offered and (found := self.capabilities(text, session)):
            parts.append("[Found for this message; use them by `use`:\n" + "\n".join(map(shown, found)) + "]")
        if "call" in agent.offered and (types := self._other_types(state, agent.definition, text)):
            lines = "\n".join(f"{d.type}: {d.purpose}" for d in types)
            parts.append(f"[Agent types found for this message:\n{lines}]")
        return "".join(f"\n\n{part}" for part in parts)

    def capabilities(self, query: str, session: str = "") -> list[Capability]:
        """The best capabilities for a query that a session can find."""
        names = tuple(n for n in self._registry.names if self.findable(n) is not None)
        if names != self._names:
            self._names = names
            held = [c for n in names if (c := self._registry.get(n)) is not None]
            self._ranking = Ranking([_whole(c) for c in held], [f"{c.name} {c.purpose}" for c in held])
            self._embed_later()
        places = self._ranking.best(query, MOST, self._embedder() if self._names else None)
        best = [self._names[p] for p in places if not self._hidden(self._names[p], session)]
        return [c for n in best if (c := self._registry.get(n)) is not None]

    def _embed_later(self) -> None:
        """Make vectors in the background: a message is never kept waiting for them."""
        embedder, ranking = self._embedder(), self._ranking
        if embedder is None or not self._names:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            ranking.embed(embedder)
            return
        self._making = loop.create_task(asyncio.to_thread(ranking.embed, embedder))

    def _other_types(self, state: State, definition: Definition, query: str) -> list[Definition]:
        """Agent types that fit and that the agent's prompt does not name."""
        if "*" in definition.agents:
            return []
        others = [d for d in self._types(state) if d.type not in (*definition.agents, definition.type)]
        ranking = Ranking([f"{d.type} {d.purpose}" for d in others], ())
        return [others[n] for n in ranking.best(query, MOST_TYPES)]


class Nothing:
    """Finds nothing: for rehearsals."""

    def findable(self, name: str) -> Capability | None:
        return None

    def __call__(self, state: State, agent: AgentState, text: str) -> str:
        return ""


def finding_provider(finder: Finder) -> TableProvider:
    """The provider `finding`: `use` and `capabilities.find`."""

    async def use(arguments: dict[str, Json], scope: Scope) -> Outcome:
        # a name that can be used never comes here: the reader of the reply has put it in its place
        name = str(arguments["name"])
        near = did_you_mean(nearest(name, [c.name for c in finder.capabilities(name, scope.session)]))
        raise CapabilityError(f"There is no {name!r} to be used.", near or "capabilities.find finds some.")

    async def find(arguments: dict[str, Json], scope: Scope) -> Outcome:
        found = finder.capabilities(str(arguments["query"]), scope.session)
        return Outcome("done", "\n".join(map(shown, found)) or "Nothing like it was found.")

    return TableProvider("finding", [Entry(USE, use), Entry(FIND, find)])


def shown(capability: Capability) -> str:
    """One line that says how a found capability is used."""
    properties: dict[str, Any] = capability.parameters.get("properties") or {}
    required = capability.parameters.get("required") or ()
    names = [
        f"{name}{'' if name in required else '?'}: {describe(schema, capability.parameters, article=False)}"
        for name, schema in properties.items()
    ]
    purpose = capability.purpose.split("\n", 1)[0]
    return f"{capability.name}({', '.join(names)}): {purpose if len(purpose) <= 200 else purpose[:199] + '…'}"


def _whole(capability: Capability) -> str:
    schema = msgspec.json.encode(capability.parameters.get("properties") or {}).decode()
    return " ".join((capability.name, capability.purpose, schema, *capability.phrases, *capability.examples))
