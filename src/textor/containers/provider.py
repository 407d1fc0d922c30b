"""The provider `containers`: containers as hands of an agent, short-lived or staying.

A container is named after the action that starts it, and carries as labels all that must be known
of it, so the action can be repeated after a crash: it finds its container instead of making another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import Entry, TableProvider
from textor.containers import offers, wishes
from textor.containers.client import EngineError, EngineGone, Missing
from textor.containers.container import Container, Final, Torn
from textor.containers.engine import Engine, Spec
from textor.containers.labels import ACTION, CONTAINER, HOME, INSTANCE, KIND, SESSION, Owner
from textor.containers.leaving import Leaving
from textor.containers.ports import Forwarder, into_container
from textor.containers.positions import Positions
from textor.containers.reap import reap, remove_all
from textor.containers.rows import Row, line_of, row_of
from textor.containers.specs import Rules, again, spec_of, time_of
from textor.errors import CapabilityError, TextorError
from textor.near import did_you_mean, nearest
from textor.values import BIG, Json, shown, text_value

log = logging.getLogger("textor.containers")

#: Short-lived containers that have ended stay until so many are there; then the oldest go.
KEPT = 8


class ContainersProvider(TableProvider):
    """`folder` keeps how far outputs were read; None where nothing is to outlive this process."""

    def __init__(
        self, engine: Engine, owner: Owner, rules: Rules | None = None, folder: Path | None = None
    ) -> None:
        self.engine = engine
        self.owner = owner
        self.rules = rules or Rules()
        self._positions = Positions(folder)
        self._leaving = Leaving(engine)
        self.staying = False  #: whether containers outlive `close`: another process takes them up
        self._containers: dict[str, dict[str, Container]] = {}  # session -> name -> container
        self._forwarders: dict[str, list[Forwarder]] = {}  # by id
        self._bounds: dict[str, asyncio.Task[Final]] = {}  # by id: who ends it in time
        self._locks: dict[str, asyncio.Lock] = {}  # by session: one start at a time
        start = msgspec.structs.replace(offers.START, sandboxed=bool(self.rules.images))
        boxed = [
            (start, self._start),
            (_sandboxed(offers.STOP), self._stop),
            (_sandboxed(offers.WRITE), self._write),
            (offers.WAIT, self._wait),
            (offers.LIST, self._list),
            (_sandboxed(offers.REMOVE), self._remove),
        ]
        reads = [
            Entry(capability, self._reader(number))
            for capability, number in ((offers.READ_OUT, 1), (offers.READ_ERR, 2))
        ]
        super().__init__("containers", [*(Entry(c, perform) for c, perform in boxed), *reads])

    # -- the life of all ------------------------------------------------------------------------

    async def adopt(self, sessions: Collection[str]) -> list[str]:
        """At the start: remove what was left behind, follow again what belongs to `sessions`.

        Gives the names of what was adopted. Raises `EngineError`.
        """
        states = await reap(self.engine, self.owner, sessions)
        for state in states:
            container = again(self.engine, state)
            try:
                await self._take_up(container, adopted=True)
            except Missing:
                continue
            except EngineGone:
                raise
            except TextorError as error:  # it cannot be started: the action that made it tells why
                log.warning("%s", error)
                await self._abandon(container)
        self._positions.forget_others({state.id for state in states})
        return [c.about.name for c in self._all()]

    async def close(self) -> None:
        """Remove all containers of this process and of those it adopted, or only let go of them when
        they are `staying`. The engine may be gone."""
        await self._leaving.close()
        for forwarder in [f for several in self._forwarders.values() for f in several]:
            await forwarder.close()
        for task in self._bounds.values():
            task.cancel()
        everything = self._all()
        await asyncio.gather(*(c.close() for c in everything))
        if self.staying:
            return
        await asyncio.gather(*(self.engine.remove(c.id) for c in everything), return_exceptions=True)
        with contextlib.suppress(EngineError):  # what was half made when the engine broke off
            mine = {INSTANCE: self.owner.instance, KIND: CONTAINER}
            await remove_all(self.engine, await self.engine.list(mine))
        for container in everything:
            self._positions.forget(container.id)
        self._containers.clear()

    def snapshot(self, session: str) -> list[Row]:
        """The containers of a session, in the order of their start, for the status part."""
        return [row_of(c) for c in self._containers.get(session, {}).values()]

    def _all(self) -> list[Container]:
        return [c for several in self._containers.values() for c in several.values()]

    # -- starting -------------------------------------------------------------------------------

    async def _start(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        async with self._locks.setdefault(scope.session, asyncio.Lock()):
            container = self._by_key(scope.session, scope.key)
            if container is None:
                container = await self._make(arguments, scope)
        if not container.about.timeout:
            ports = "; ".join(f"port {port}" for port in self._ports(container))
            text = f"The container {container.about.name} is {self._standing(container, scope)}."
            return Outcome("done", f"{text} {ports}".rstrip(), data=asdict(row_of(container)))
        try:
            final = await asyncio.shield(self._bounds[container.id])
        except asyncio.CancelledError:
            return await self._cancelled(container)
        return self._ran(container, final, scope)

    async def _make(self, arguments: dict[str, Json], scope: Scope) -> Container:
        spec, about = spec_of(arguments, scope, self.owner, self.rules)
        await self._make_room(scope.session, about.name)
        if not await self.engine.has_image(spec.image):
            scope.progress(f"fetching the image {spec.image}")
            await self._fetch(spec.image)
        for mount in spec.mounts:  # a link may have come since the wish was checked
            if mount.source != wishes.real_place(mount.source, scope.workspace):
                raise CapabilityError(f"{mount.source} has changed its place while it was being mounted.")
        container = Container(self.engine, await self._create(spec), scope.session, scope.key, about)
        try:
            await self._take_up(container)
        except BaseException:
            await self._abandon(container)
            raise
        return container

    async def _create(self, spec: Spec) -> str:
        """The id of a new container; of the one that the same action made, when we were killed while
        the engine was making it."""
        try:
            return await self.engine.create(spec)
        except EngineGone:
            self._leaving.remove(spec.name)  # it may have been made
            raise
        except EngineError as error:
            if error.status != 409:
                raise
            state = await self.engine.inspect(spec.name)
            if any(state.labels.get(label) != spec.labels[label] for label in (HOME, SESSION, ACTION)):
                raise
            return state.id

    async def _take_up(self, container: Container, *, adopted: bool = False) -> None:
        """Follow a container from now on, newly made or adopted."""
        state = await self.engine.inspect(container.id)
        container.about.ports = self._positions.noted(container.id, "ports") or container.about.ports
        container.said = self._positions.noted(container.id, "said") or {}
        for number, count in self._positions.of(container.id).items():
            container.output[number].position = count
        container.secrets = wishes.secrets_in(state.environment)
        await container.begin(state)
        self._containers.setdefault(container.session, {})[container.about.name] = container
        if container.about.timeout:
            left = container.about.timeout / 1000
            if state.status != "created":
                left -= (datetime.now(UTC) - time_of(state.started_at)).total_seconds()
            self._bounds[container.id] = asyncio.create_task(_bounded(container, left))
        if container.about.ports:
            await self._publish(container, adopted=adopted)

    async def _fetch(self, image: str) -> None:
        try:
            await self.engine.pull(image)
        except EngineError as error:
            raise CapabilityError(f"There is no image {image!r:.200}: {error}") from None

    async def _make_room(self, session: str, name: str) -> None:
        """Free the name of one that has ended, and let go of the oldest that have."""
        mine = self._containers.get(session, {})
        if (old := mine.get(name)) is not None:
            if old.final is None:
                raise CapabilityError(
                    f"A container {name} is running already.", "Stop it first, or choose another name."
                )
            await self._drop(old)
        over = [c for c in mine.values() if c.about.timeout and c.final is not None]
        for container in over[: max(0, len(over) - KEPT + 1)]:
            await self._drop(container)

    async def _publish(self, container: Container, *, adopted: bool) -> None:
        """Lead ports of this machine into a container. For an adopted one they are what they were,
        where nobody has taken them meanwhile."""
        found: list[str] = []
        for port in map(wishes.port_of, container.about.ports):
            forwarder = Forwarder(into_container(self.engine, container.id, port.inside))
            self._forwarders.setdefault(container.id, []).append(forwarder)
            try:
                await forwarder.start(port.outside)
            except CapabilityError:
                if not adopted:
                    raise
                await forwarder.start(0)
            found.append(f"{forwarder.port}:{port.inside}")
        container.about.ports = found
        self._positions.note(container.id, "ports", found)

    def _ran(self, container: Container, final: Final, scope: Scope) -> Outcome:
        """The outcome of a short-lived one: as for a command of the shell."""
        self._say(container, scope)
        text = container.shown(container.tape.content().decode("utf-8", "replace")).rstrip("\n")
        value = text_value(text, scope.blobs, name="output")
        first = str(final)
        stopped = bool(final.reason)
        return Outcome(
            "failed" if stopped else "done",
            f"{first}\n{shown(text, value.handle)}" if text else first,
            values=(value,) if value.size > BIG else (),
            data={"exit_status": final.exit_status},
            exit_status=final.exit_status,
        )

    # -- the rest of a life -----------------------------------------------------------------------

    async def _stop(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        container = self._find(arguments["name"], scope.session)
        final = await container.stop("stopped by the agent")
        text = f"{container.about.name} has ended{self._how(container, scope)}."
        return Outcome("done", text, exit_status=final.exit_status)

    async def _write(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        container = self._find(arguments["name"], scope.session)
        if container.final is not None:
            standing = self._standing(container, scope)
            raise CapabilityError(f"{container.about.name} takes no input: it is {standing}.")
        data = arguments["text"].encode("utf-8", "replace")
        try:
            await container.write(data)
        except Torn as error:
            return Outcome("unknown", f"{error} How much of the input has arrived is not known.")
        return Outcome("done", f"{len(data)} bytes written.", data={"bytes": len(data)})

    def _reader(self, number: int):  # type: ignore[no-untyped-def]
        async def read(arguments: dict[str, Json], scope: Scope) -> Outcome:
            container = self._find(arguments["name"], scope.session)
            answer = self._positions.answer(container.id, scope.key)
            if answer is None:
                answer = await self._read(container, number, arguments, scope)
            return Outcome("done", answer["text"], data={k: answer[k] for k in ("bytes", "left", "status")})

        return read

    async def _read(
        self, container: Container, number: int, arguments: dict[str, Json], scope: Scope
    ) -> dict[str, Json]:
        answer: dict[str, Json] = {}

        def keep(raw: str, count: int) -> None:
            left = len(container.output[number]) - count
            first = f"{count} bytes, {left} left; {self._standing(container, scope)}"
            text = container.shown(raw)
            answer["text"] = f"{first}\n{text}" if text else first
            answer.update(bytes=count, left=left, status=container.status)
            read = {n: buffer.position for n, buffer in container.output.items()}
            read[number] += count
            self._positions.keep(container.id, scope.key, read, answer)

        said = container.said
        try:
            await container.read(number, arguments["n"], arguments["timeout"] / 1000, keep)
        except CapabilityError:  # it was not kept, so nobody is told
            container.said = said
            raise
        return answer

    async def _wait(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        container = self._find(arguments["name"], scope.session)
        final = await container.ended(arguments["timeout"] / 1000)
        unread = ", ".join(f"{len(container.output[n])} bytes of {s} unread" for n, s in _STREAMS)
        text = f"{container.about.name} is {self._standing(container, scope)}; {unread}."
        return Outcome("done", text, exit_status=final.exit_status if final else None)

    async def _list(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        rows = self.snapshot(scope.session)
        text = "\n".join(line_of(row) for row in rows) or "There are no containers."
        return Outcome("done", text, data=[asdict(row) for row in rows])

    async def _remove(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        name = arguments["name"]
        if name not in self._containers.get(scope.session, {}):
            return Outcome("done", f"There is no container {name}.")
        await self._drop(self._find(name, scope.session))
        return Outcome("done", f"{name} is removed.")

    # -- parts ------------------------------------------------------------------------------------

    def _find(self, name: str, session: str) -> Container:
        mine = self._containers.get(session, {})
        if name in mine:
            return mine[name]
        hint = did_you_mean(nearest(name, mine)) or f"There are: {', '.join(mine) or 'none'}."
        raise CapabilityError(f"There is no container {name!r:.80}.", hint)

    def _by_key(self, session: str, key: str) -> Container | None:
        return next((c for c in self._containers.get(session, {}).values() if c.key == key), None)

    def _ports(self, container: Container) -> list[str]:
        return [f"{p.inside} is 127.0.0.1:{p.outside}" for p in map(wishes.port_of, container.about.ports)]

    async def _drop(self, container: Container) -> None:
        """Remove a container from the engine, then let go of it: while it cannot be removed it is
        still there."""
        await self.engine.remove(container.id)
        await self._let_go(container)

    async def _abandon(self, container: Container) -> None:
        """Let go of a container and have it removed, also when the engine is not there for it now."""
        await self._let_go(container)
        try:
            await self.engine.remove(container.id)
        except EngineGone:
            self._leaving.remove(container.id)

    async def _let_go(self, container: Container) -> None:
        for forwarder in self._forwarders.pop(container.id, []):
            await forwarder.close()
        self._bounds.pop(container.id, None)  # it ends with the container
        mine = self._containers.get(container.session, {})
        if mine.get(container.about.name) is container:
            del mine[container.about.name]
        await container.close()
        self._positions.forget(container.id)

    async def _cancelled(self, container: Container) -> Outcome:
        """End a short-lived one although we are being cancelled, also twice."""
        ending = asyncio.create_task(container.stop("cancelled", grace=0))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError, EngineError):
                await asyncio.shield(ending)
        name = container.about.name
        if (error := ending.exception()) is None:
            return Outcome("cancelled", f"cancelled; the container {name} is stopped")
        self._leaving.do(partial(container.end, "cancelled"))
        return Outcome("unknown", f"{error} The container {name} is stopped when the engine is back.")

    def _say(self, container: Container, scope: Scope) -> None:
        """This action is told the final state, and with it its agent."""
        container.said = {**container.said, scope.agent: scope.key}
        self._positions.note(container.id, "said", container.said)

    def _standing(self, container: Container, scope: Scope) -> str:
        """Its state in words."""
        return container.status if container.final is None else f"finished{self._how(container, scope)}"

    def _how(self, container: Container, scope: Scope) -> str:
        """How it ended, once for each agent; then nothing."""
        if scope.agent not in container.said:
            self._say(container, scope)
        return f": {container.final}" if container.said[scope.agent] == scope.key else ""


_STREAMS = ((1, "stdout"), (2, "stderr"))


def _sandboxed(capability: Capability) -> Capability:
    # it acts only on containers that were allowed when they were started
    return msgspec.structs.replace(capability, sandboxed=True)


async def _bounded(container: Container, left: float) -> Final:
    """The final state of a short-lived container, which is stopped when its time is over."""
    final = await container.ended(max(left, 0))
    return final or await container.end(f"stopped after {container.about.timeout} ms (timeout)")
