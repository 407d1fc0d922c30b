"""What an agent keeps in view, and what wakes it: files, containers, standard input, time.

What is monitored is an event of the session (`events.Stored`, area "monitor"), so it outlives a
restart. What an agent was last shown is remembered by this process alone: after a restart, the
present counts as shown.

Monitored files and folders that stand in each context are from the SIA document.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from textor import events as e
from textor.actions import Capability, Outcome
from textor.capabilities.places import resolve
from textor.capabilities.port import Scope as PortScope
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.capabilities.watch import Watched, changes, signature
from textor.errors import CapabilityError
from textor.kernel.state import State
from textor.layouts.stdio import Stdio, stdio_entries
from textor.tree.scope import Scope
from textor.values import Json

if TYPE_CHECKING:
    from textor.containers.rows import Row

AREA = "monitor"
#: Files and folders that one agent may monitor.
MOST = 40
#: How often the containers are looked at while an agent waits, in seconds.
TICK = 0.25
LONGEST_WAIT = 86_400_000

MONITOR = Capability(
    "monitor_file",
    "Keep a file or folder in view: from the next iteration on its present content stands in the context. "
    "A file that is not there yet is shown as soon as it is.",
    parameters(["path"], path={"type": "string", "format": "path", "description": "the file or folder"}),
    repeat="idempotent",
)
UNMONITOR = Capability(
    "unmonitor_file",
    "Stop keeping a file or folder in view.",
    parameters(["path"], path={"type": "string", "description": "its path, or its index in the context"}),
    repeat="idempotent",
)
WAIT = Capability(
    "wait_event",
    "Wait until something changes: standard input, a container, a monitored file, a message to you, or "
    "until the time is over. What changed since you were last shown it counts at once.",
    parameters(
        timeout={
            "type": "integer",
            "default": 3_600_000,
            "minimum": 0,
            "maximum": LONGEST_WAIT,
            "description": "at most so many milliseconds",
        }
    ),
    repeat="idempotent",
)


class Containers(Protocol):
    def snapshot(self, session: str) -> list[Row]: ...


Facts = dict[str, tuple[Any, ...]]
CONTAINER, STDIN = "the container ", "standard input"


class Monitor(TableProvider):
    """The provider `watch`, and what the agents of this process watch. `containers` is None where
    no engine is."""

    def __init__(self, containers: Containers | None = None) -> None:
        self.stdio = stdio = Stdio()
        own = [Entry(MONITOR, self._monitor), Entry(UNMONITOR, self._unmonitor), Entry(WAIT, self._wait)]
        super().__init__("watch", [*own, *stdio_entries(stdio)])
        self._containers = containers
        self._shown: dict[tuple[str, str], Facts] = {}
        self._adding: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def rows(self, session: str) -> list[Row]:
        """The containers of a session."""
        return self._containers.snapshot(session) if self._containers else []

    def shown(self, state: State, agent: str) -> None:
        """The agent is being shown the present state of all this."""
        self._shown[_session(state), agent] = self._facts(state, agent)

    # -- what is monitored -----------------------------------------------------------------

    async def _monitor(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        name = str(arguments["path"])
        real = await asyncio.to_thread(resolve, name, scope.workspace)
        async with self._adding[scope.session]:  # so that each number is given once
            known = watched(scope.state, scope.agent)
            if any(w.real == real for w in known):
                return Outcome("done", f"{name} is in view already.")
            if len(known) >= MOST:
                raise CapabilityError(
                    f"{MOST} files and folders are monitored.", "Unmonitor one of them first."
                )
            index = 1 + max((w.index for w in known if w.index is not None), default=-1)
            key = f"{scope.agent}:{real}"
            value = {"name": name, "real": str(real), "index": index}
            await scope.post(e.Stored(AREA, key, value), f"monitor {scope.key}")
            await scope.until(lambda state: state.stored.get((AREA, key)))
        return Outcome("done", f"{name} is in view from now on, with index {index}.")

    async def _unmonitor(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        wanted = str(arguments["path"]).strip()
        real = await asyncio.to_thread(resolve, wanted, scope.workspace)
        for each in watched(scope.state, scope.agent):
            if each.real == real or wanted in (each.name, str(each.index)):
                await scope.post(e.Stored(AREA, f"{scope.agent}:{each.real}", None), f"unmonitor {scope.key}")
                await scope.until(lambda state: each not in watched(state, scope.agent) or None)  # noqa: B023
                return Outcome("done", f"{each.name} is no longer in view.")
        names = ", ".join(w.name for w in watched(scope.state, scope.agent)) or "nothing"
        raise CapabilityError(f"{wanted!r:.200} is not monitored.", f"Monitored: {names}.")

    # -- what wakes ------------------------------------------------------------------------

    async def _wait(self, arguments: dict[str, Json], scope: PortScope) -> Outcome:
        scope = _own(scope)
        message = asyncio.ensure_future(scope.until(lambda state: state.agents[scope.agent].inbox or None))
        changed = asyncio.ensure_future(self.change(lambda: scope.state, scope.agent))
        try:
            timeout = arguments["timeout"] / 1000
            await asyncio.wait([message, changed], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            told = "; ".join(changed.result()) + "." if changed.done() else ""
            told = told or ("A message has come." if message.done() else "The time is over.")
            # with the time, so that one who waits again and again does not seem to go round in circles
            return Outcome("done", f"{told} It is {utc(scope.now)}.")
        except asyncio.CancelledError:
            return Outcome("cancelled", "The waiting was cancelled.")
        finally:
            message.cancel()
            changed.cancel()
            await asyncio.gather(message, changed, return_exceptions=True)

    async def change(self, state: Callable[[], State], agent: str) -> list[str]:
        """Wait until something differs from what the agent was last shown; says what."""
        now = state()
        known = self._known(now, agent)
        pulse = asyncio.Event()
        self.stdio.changed.add(pulse)
        helpers = [asyncio.create_task(self._files(now, agent, pulse))]
        if self.rows(_session(now)):
            helpers.append(asyncio.create_task(_ticks(pulse)))
        try:
            # in a thread: a folder may have many entries
            while not (news := _news(known, await asyncio.to_thread(self._facts, state(), agent))):
                await pulse.wait()
                pulse.clear()
            self.shown(state(), agent)  # it is told, so it is no news for the next waiting
            return news
        finally:
            self.stdio.changed.discard(pulse)
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    def news(self, state: State, agent: str) -> list[str]:
        """What differs now from what the agent was last shown, in words."""
        return _news(self._known(state, agent), self._facts(state, agent))

    def _known(self, state: State, agent: str) -> Facts:
        """What the agent was last shown; before that the present, but for what waits to be read."""
        known = self._shown.get((_session(state), agent))
        return known if known is not None else self._facts(state, agent) | {STDIN: (0, False)}

    async def _files(self, state: State, agent: str, pulse: asyncio.Event) -> None:
        async for _ in changes([w.real for w in watched(state, agent)]):
            pulse.set()

    def _facts(self, state: State, agent: str) -> Facts:
        session = _session(state)
        facts: Facts = {f"the file {w.name}": signature(w.real) for w in watched(state, agent)}
        for row in self.rows(session):
            unread = row.stdout + row.stderr
            facts[f"{CONTAINER}{row.name}"] = (row.status, row.final, unread)
        if self.stdio.session == session:
            facts[STDIN] = (len(self.stdio), self.stdio.ended)
        return facts


def watched(state: State, agent: str, *, folders: bool = False) -> list[Watched]:
    """What an agent monitors, by index. With `folders`, the folder of each monitored file stands
    before it without an index, unless it is monitored itself."""
    entries = [v for (area, key), v in state.stored.items() if area == AREA and key.startswith(f"{agent}:")]
    own = [
        Watched(v["name"], Path(v["real"]), v["index"])
        for v in sorted(entries, key=lambda v: int(v["index"]))
    ]
    if not folders:
        return own
    found: list[Watched] = []
    places = {w.real for w in own}
    for each in own:
        parent = each.real.parent
        if parent not in places and not each.real.is_dir():
            places.add(parent)
            found.append(Watched(str(Path(each.name).parent), parent, None))
        found.append(each)
    return found


def utc(seconds: float) -> str:
    """A time as contexts show it: "2024-10-18T12:00:00Z"."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _news(known: Facts, now: Facts) -> list[str]:
    """What differs, in words. What an agent itself took away (it read) is no news."""
    words: list[str] = []
    for what, fact in now.items():
        before = known.get(what, ())
        if before == fact:
            continue
        if what == STDIN:
            (count, ended), (had, over) = fact, before or (0, False)
            if count > had:
                words.append(f"{count} bytes wait on standard input")
            elif ended and not over:
                words.append("standard input has ended")
        elif what.startswith(CONTAINER):
            if before[:2] != fact[:2] or fact[2] > before[2]:
                final = f" ({fact[1]})" if fact[1] else ""
                words.append(f"{what} is {fact[0]}{final}, {fact[2]} bytes unread")
        else:
            words.append(f"{what} has changed")
    return words


async def _ticks(pulse: asyncio.Event) -> None:
    while True:  # an engine's containers tell this place nothing
        await asyncio.sleep(TICK)
        pulse.set()


def _session(state: State) -> str:
    return state.created.session if state.created else ""


def _own(scope: PortScope) -> Scope:
    assert isinstance(scope, Scope)  # the kernel hands out no other
    return scope
