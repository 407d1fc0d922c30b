"""The capabilities with which an agent reads its own past: `iterations.list`, `read`, `search`.

An agent sees its own iterations and those of the agents below it, and no other session.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import Entry, TableProvider, parameters, text_outcome
from textor.errors import CapabilityError
from textor.journal.port import Journal
from textor.kernel.context import Layout
from textor.record.iterations import Iteration, context_text, iterations, message_text
from textor.values import Json

#: Rows of one list, hits of one search.
MOST = 50

_AGENT: Json = {"type": "string", "default": "", "description": "an agent below you; you yourself if empty"}
LIST = Capability(
    "iterations.list",
    "List your past iterations: number, time, model, actions and what came of them.",
    parameters(
        agent=_AGENT,
        before={
            "type": "integer",
            "default": 0,
            "minimum": 0,
            "description": "only those with a smaller number; 0 for the last ones",
        },
    ),
    repeat="idempotent",
)
READ = Capability(
    "iterations.read",
    "Read one of your past iterations whole: what you were shown, your reply, actions and outcomes.",
    parameters(
        ["number"],
        number={"type": "integer", "minimum": 1, "description": "its number"},
        part={
            "type": "string",
            "enum": ["all", "context", "reply", "actions"],
            "default": "all",
            "description": "what of it",
        },
        agent=_AGENT,
    ),
    repeat="idempotent",
)
SEARCH = Capability(
    "iterations.search",
    "Find your past iterations whose reply, actions or outcomes contain a text.",
    parameters(
        ["text"], text={"type": "string", "description": "what to look for, in any case"}, agent=_AGENT
    ),
    repeat="idempotent",
)


def iterations_provider(journal: Journal, layout: Callable[[str], Layout]) -> TableProvider:
    """The provider `iterations` over this journal."""

    async def of(arguments: dict[str, Json], scope: Scope) -> AsyncIterator[Iteration]:
        agent = str(arguments["agent"] or scope.agent)
        if agent != scope.agent and not agent.startswith(scope.agent + "/"):
            raise CapabilityError(
                f"{agent!r:.80} is not below you.", f"One below you is written {scope.agent}/NAME."
            )
        async for iteration in iterations(journal, scope.session, layout):
            if iteration.agent == agent and iteration.raw is not None:
                yield iteration

    async def listed(arguments: dict[str, Json], scope: Scope) -> Outcome:
        before = arguments["before"]
        found = [i async for i in of(arguments, scope) if not before or i.number < before]
        more = [f"[earlier ones: before={found[-MOST].number}]"] if len(found) > MOST else []
        return text_outcome("\n".join([*more, *map(line, found[-MOST:])]) or "There are none yet.", scope)

    async def read(arguments: dict[str, Json], scope: Scope) -> Outcome:
        async for iteration in of(arguments, scope):
            if iteration.number == arguments["number"]:
                return text_outcome(whole(iteration, arguments["part"]), scope)
        raise CapabilityError(f"There is no iteration {arguments['number']}.", "iterations.list shows them.")

    async def search(arguments: dict[str, Json], scope: Scope) -> Outcome:
        wanted = str(arguments["text"]).casefold()
        if not wanted.strip():
            raise CapabilityError("The text to look for is empty.")
        found: list[str] = []
        async for iteration in of(arguments, scope):
            place = whole(iteration, "found").casefold().find(wanted)
            if place >= 0:
                near = whole(iteration, "found")[max(place - 60, 0) : place + len(wanted) + 60]
                found.append(f"{line(iteration)}\n    … {' '.join(near.split())} …")
        return text_outcome("\n".join(found[-MOST:]) or "Nothing was found.", scope)

    return TableProvider("iterations", [Entry(LIST, listed), Entry(READ, read), Entry(SEARCH, search)])


def line(iteration: Iteration) -> str:
    """An iteration in one line."""
    left = "not done" if iteration.verdict == "again" else "open"  # what is asked again is never done
    done = [f"{d.action.capability} {d.outcome.state if d.outcome else left}" for d in iteration.deeds]
    reviewed = f" [{iteration.verdict}]" if iteration.verdict else ""
    return f"{iteration.number}: {iteration.model}{reviewed}: {', '.join(done) or repr(iteration.reply[:80])}"


def whole(iteration: Iteration, part: str) -> str:
    """An iteration for a reader. `part` "found" is all but the context."""
    parts: list[str] = []
    if part in ("all", "context"):
        parts.append(context_text(iteration.context))
    if part in ("all", "reply", "found"):
        parts += [f"--- reply ---\n{message_text(m)}" for m in (iteration.raw,) if m is not None]
        if iteration.edited is not None:
            parts.append(f"--- as it was edited ---\n{message_text(iteration.edited)}")
        if iteration.remark:
            parts.append(f"--- remark ---\n{iteration.remark}")
    if part in ("all", "actions", "found"):
        for deed in iteration.deeds:
            came = deed.outcome
            told = f"{came.state}: {came.text}" if came else "no outcome"
            parts.append(f"--- {deed.action.capability} {deed.action.arguments} ---\n{told}")
    return "\n\n".join(parts)
