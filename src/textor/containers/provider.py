"""The provider `containers`: containers as hands of an agent, short-lived or staying.

A container is named after the action that starts it, and carries as labels all that must be known
of it, so the action can be repeated after a crash: it finds its container instead of making another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import Entry, TableProvider
from textor.containers import offers, wishes
from textor.containers.client import EngineError, Missing
from textor.containers.container import About, Container, Final
from textor.containers.engine import Allowance, Engine, Spec
from textor.containers.labels import ACTION, CONTAINER, PREFIX, SESSION, Owner
from textor.containers.ports import Forwarder, into_container
from textor.containers.positions import Positions
from textor.containers.reap import reap
from textor.containers.rows import Row, line_of, row_of
from textor.errors import CapabilityError
from textor.near import did_you_mean, nearest
from textor.values import BIG, Json, shown, text_value

ABOUT = PREFIX + "about"
_READING = {"read_stdout": 1, "read_stderr": 2}
#: Short-lived containers that have ended stay until so many are there; then the oldest go.
KEPT = 8


@dataclass(frozen=True)
class Rules:
    """What agents may have. `images`: patterns that need no asking; others pass the gate when the
    list is empty and are refused when it is not. `shared`: folders beside the workspace."""

    images: Sequence[str] = ()
    shared: Sequence[Path] = ()
    allowance: Allowance = field(default_factory=Allowance)


class ContainersProvider(TableProvider):
    """`folder` keeps how far outputs were read; None where nothing is to outlive this process."""

    def __init__(
        self, engine: Engine, owner: Owner, rules: Rules | None = None, folder: Path | None = None
    ) -> None:
        self.engine = engine
        self.owner = owner
        self.rules = rules or Rules()
        self._positions = Positions(folder)
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
            about = About(**json.loads(state.labels.get(ABOUT, '{"name": "?"}')))
            session, key = state.labels.get(SESSION, ""), state.labels.get(ACTION, "")
            with contextlib.suppress(Missing):
                await self._take_up(Container(self.engine, state.id, session, key, about))
        self._positions.forget_others({state.id for state in states})
        return [c.about.name for c in self._all()]

    async def close(self) -> None:
        """Remove all containers of this process and of those it adopted. The engine may be gone."""
        for forwarder in [f for several in self._forwarders.values() for f in several]:
            await forwarder.close()
        for task in self._bounds.values():
            task.cancel()
        everything = self._all()
        await asyncio.gather(*(c.close() for c in everything))
        await asyncio.gather(*(self.engine.remove(c.id) for c in everything), return_exceptions=True)
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
            text = f"The container {container.about.name} is {_standing(container)}."
            return Outcome("done", f"{text} {ports}".rstrip(), data=asdict(row_of(container)))
        try:
            final = await asyncio.shield(self._bounds[container.id])
        except asyncio.CancelledError:
            await self._end_for_certain(container)
            return Outcome("cancelled", f"cancelled; the container {container.about.name} is stopped")
        return self._ran(container, final, scope)

    async def _make(self, arguments: dict[str, Json], scope: Scope) -> Container:
        spec, about, ports = self._spec(arguments, scope)
        await self._make_room(scope.session, about.name)
        if not await self.engine.has_image(spec.image):
            scope.progress(f"fetching the image {spec.image}")
            await self._fetch(spec.image)
        for mount in spec.mounts:  # a link may have come since the wish was checked
            if mount.source != wishes.real_place(mount.source, scope.workspace):
                raise CapabilityError(f"{mount.source} has changed its place while it was being mounted.")
        id = await self.engine.create(spec)
        container = Container(self.engine, id, scope.session, scope.key, about)
        try:
            await self._take_up(container)
            await self._publish(container, ports)
        except BaseException:
            await self._drop(container)
            raise
        return container

    async def _take_up(self, container: Container) -> None:
        """Follow a container from now on, newly made or adopted."""
        state = await self.engine.inspect(container.id)
        for number, count in self._positions.of(container.id).items():
            container.output[number].position = count
        container.secrets = wishes.secrets_in(state.environment)
        await container.begin(state)
        self._containers.setdefault(container.session, {})[container.about.name] = container
        if container.about.timeout:
            left = container.about.timeout / 1000
            if state.status != "created":
                left -= (datetime.now(UTC) - _time(state.started_at)).total_seconds()
            self._bounds[container.id] = asyncio.create_task(_bounded(container, left))
        elif state.status != "created":
            await self._publish(container, [wishes.port_of(p) for p in container.about.ports])

    def _spec(self, arguments: dict[str, Json], scope: Scope) -> tuple[Spec, About, list[wishes.Port]]:
        image = arguments["image"]
        if self.rules.images and not wishes.allowed_image(image, self.rules.images):
            raise CapabilityError(
                f"The image {image!r:.200} is not allowed here.", f"Allowed: {', '.join(self.rules.images)}."
            )
        environment = wishes.environment_of(arguments["environment"])
        volumes = wishes.texts_of(arguments["volumes"], "volumes")
        ports = wishes.texts_of(arguments["ports"], "ports")
        mounts = [wishes.volume_of(wish, scope.workspace, self.rules.shared) for wish in volumes]
        covers, blanks = wishes.covered(mounts)
        about = About(
            wishes.checked_name(arguments["name"] or wishes.made_name(scope.key)),
            arguments["description"],
            scope.agent,
            wishes.masked(environment),
            volumes,
            ports,
            arguments["timeout"],
        )
        told = wishes.texts_of(arguments["parameters"], "parameters")
        labels = self.owner.labels(CONTAINER, scope.session, scope.key)
        spec = Spec(
            name=wishes.engine_name(scope.session, scope.key),
            image=image,
            command=told,
            entrypoint=[arguments["command"]] if arguments["command"] else None,
            environment=environment,
            labels={**labels, ABOUT: json.dumps(asdict(about))},
            mounts=[*mounts, *blanks],
            covers=covers,
            user=wishes.user_for(scope.workspace, bool(mounts)),
            stdin="none" if about.timeout else "open",
            writable=arguments["writable"],
            allowance=self.rules.allowance,
        )
        return spec, about, [wishes.port_of(port) for port in ports]

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

    async def _publish(self, container: Container, ports: Iterable[wishes.Port]) -> None:
        for port in ports:
            forwarder = Forwarder(into_container(self.engine, container.id, port.inside))
            await forwarder.start(port.outside)
            self._forwarders.setdefault(container.id, []).append(forwarder)
            container.about.ports = [
                f"{forwarder.port}:{port.inside}" if wishes.port_of(p) == port else p
                for p in container.about.ports
            ]

    def _ran(self, container: Container, final: Final, scope: Scope) -> Outcome:
        """The outcome of a short-lived one: as for a command of the shell."""
        container.said = True
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
        container.said = True
        return Outcome("done", f"{container.about.name} has ended: {final}.", exit_status=final.exit_status)

    async def _write(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        container = self._find(arguments["name"], scope.session)
        if container.final is not None:
            raise CapabilityError(f"{container.about.name} takes no input: it is {_standing(container)}.")
        data = arguments["text"].encode("utf-8", "replace")
        await container.write(data)
        return Outcome("done", f"{len(data)} bytes written.", data={"bytes": len(data)})

    def _reader(self, number: int):  # type: ignore[no-untyped-def]
        async def read(arguments: dict[str, Json], scope: Scope) -> Outcome:
            container = self._find(arguments["name"], scope.session)
            answer = self._positions.answer(container.id, scope.key)
            if answer is None:
                answer = await self._read(container, number, arguments, scope.key)
            return Outcome("done", answer["text"], data={k: answer[k] for k in ("bytes", "left", "status")})

        return read

    async def _read(
        self, container: Container, number: int, arguments: dict[str, Json], key: str
    ) -> dict[str, Json]:
        before = container.output[number].position
        raw = await container.read(number, arguments["n"], arguments["timeout"] / 1000)
        count, left = container.output[number].position - before, len(container.output[number])
        first = f"{count} bytes, {left} left; {_standing(container)}"
        text = container.shown(raw)
        answer = {
            "text": f"{first}\n{text}" if text else first,
            "bytes": count,
            "left": left,
            "status": container.status,
        }
        read = {n: buffer.position for n, buffer in container.output.items()}
        self._positions.keep(container.id, key, read, answer)
        return answer

    async def _wait(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        container = self._find(arguments["name"], scope.session)
        final = await container.ended(arguments["timeout"] / 1000)
        unread = ", ".join(f"{len(container.output[n])} bytes of {s} unread" for n, s in _STREAMS)
        text = f"{container.about.name} is {_standing(container)}; {unread}."
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
        """Let go of a container and remove it from the engine."""
        for forwarder in self._forwarders.pop(container.id, []):
            await forwarder.close()
        if (task := self._bounds.pop(container.id, None)) is not None:
            task.cancel()
        await container.close()
        mine = self._containers.get(container.session, {})
        if mine.get(container.about.name) is container:
            del mine[container.about.name]
        await self.engine.remove(container.id)
        self._positions.forget(container.id)

    async def _end_for_certain(self, container: Container) -> None:
        """Stop it although we are being cancelled, also twice."""
        ending = asyncio.create_task(container.stop("cancelled", grace=0))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        ending.result()


_STREAMS = ((1, "stdout"), (2, "stderr"))


def _sandboxed(capability: Capability) -> Capability:
    # it acts only on containers that were allowed when they were started
    return msgspec.structs.replace(capability, sandboxed=True)


async def _bounded(container: Container, left: float) -> Final:
    """The final state of a short-lived container, which is stopped when its time is over."""
    final = await container.ended(max(left, 0))
    if final is None:
        final = await container.stop(f"stopped after {container.about.timeout} ms (timeout)", grace=1)
    return final


def _standing(container: Container) -> str:
    """Its state in words; the final one in full once, then short."""
    if container.final is None:
        return container.status
    if container.said:
        return "finished"
    container.said = True
    return f"finished: {container.final}"


def _time(text: str) -> datetime:
    """A time as engines write it, with up to nine digits of a second."""
    try:
        seconds = text.replace("Z", "+00:00").split("+")[0].split(".")[0]
        return datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)
