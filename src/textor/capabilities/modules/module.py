"""A module under supervision: started when it is needed, started again when it fell over, and every
call of it with exactly one outcome (laws 2 and 3)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from textor.actions import Outcome
from textor.capabilities.modules.calling import Call
from textor.capabilities.modules.log import Log
from textor.capabilities.modules.patience import patiently
from textor.capabilities.modules.questions import Answer, Ask, Question
from textor.capabilities.modules.spec import ModuleSpec
from textor.capabilities.modules.tools import Tool, Tools, read_tools
from textor.capabilities.modules.words import Words, as_accepted, differences, words_of
from textor.capabilities.port import Scope
from textor.errors import CapabilityError
from textor.values import Json, Labels, sha256_of

if TYPE_CHECKING:  # the SDK is heavy (0.8 s of CPU, 63 MB) and only needed once something runs
    from textor.capabilities.modules.link import Link

State = Literal["off", "starting", "ready", "waiting", "failed", "closed"]

FIRST_PAUSE = 0.5  #: seconds before the first restart; each further one waits twice as long
LONGEST_PAUSE = 60.0
GIVE_UP = 5  #: failures in a row after which it is only started when it is called
HEALTHY = 60.0  #: seconds of life after which former failures are forgotten
TRIES = 3  #: of a call that may be repeated


class Module:
    """One module. `folder` is where its log and its list of tools are kept, None: nowhere.

    `ask` brings its questions to a person; without it the module is told that none can be asked.
    `changed` is called when its tools or its state are others. `clock` and `sleep` time the pauses.
    """

    def __init__(
        self,
        spec: ModuleSpec,
        folder: Path | None = None,
        *,
        ask: Ask | None = None,
        changed: Callable[[Module], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.spec = spec
        self.state: State = "off"
        self.trouble = ""  #: why it is not ready, for a person and a model
        self.server = ""  #: what it says it is, once it has been up
        self.protocol = ""
        self.tools = Tools()
        self.known = False  #: whether it has ever told its tools
        self.held: dict[str, str] = {}  #: tools that say something else than was accepted, with what
        self._accepted: Words | None = None
        self._raw: list[Any] = []
        self.log = Log(folder / f"{spec.name}.log" if folder is not None else None)
        self._cache = folder / f"{spec.name}.tools.json" if folder is not None else None
        self._tokens = folder / f"{spec.name}.login.json" if folder is not None else None
        self._ask = ask
        self._changed = changed or (lambda module: None)
        self._clock = clock
        self._sleep = sleep
        self._link: Link | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._called = asyncio.Event()
        self._news: asyncio.Future[None] | None = None
        self._failed_starts = 0
        self._calls: dict[Call, asyncio.Timeout] = {}
        self._used_at = clock()
        self._questions = 0
        self._relisting: asyncio.Task[None] | None = None
        self._recall()

    @property
    def labels(self) -> Labels:
        return () if self.spec.trusted else (f"module:{self.spec.name}",)

    @property
    def pid(self) -> int | None:
        """The launcher of a module that runs here."""
        return self._link.pid if self._link is not None else None

    def start(self) -> None:
        """Have it started in the background."""
        if self.state == "closed":
            raise CapabilityError(f"The module {self.spec.name} is closed.")
        self._called.set()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"keeper of {self.spec.name}")

    async def ready(self) -> Link:
        """The connection, started if need be. `CapabilityError` when it cannot be had now."""
        failed = self._failed_starts
        if self.state == "waiting" and failed and self._link is None and not self._lived:
            raise CapabilityError(self.trouble)
        self.start()
        while True:
            if self._link is not None and not self._link.over.done():
                return self._link
            if self.state == "closed":
                raise CapabilityError(f"The module {self.spec.name} is closed.")
            if self._failed_starts > failed:
                raise CapabilityError(self.trouble)
            await self._next()

    async def ping(self) -> None:
        """Make sure that it answers."""
        link = await self.ready()
        await link.ping()

    async def close(self) -> None:
        """End it for certain. It cannot be used afterwards."""
        self._set("closed", "")
        keeper, self._keeper = self._keeper, None
        if self._relisting is not None:
            self._relisting.cancel()
        if keeper is not None:
            keeper.cancel()
            await patiently(_over(keeper))

    # -- calls -----------------------------------------------------------------------------

    async def call(self, tool: Tool, arguments: dict[str, Json], scope: Scope) -> Outcome:
        """Perform one call; a `once` tool is sent to the module at most once."""
        call = Call(scope)
        self._used_at = self._clock()
        try:
            async with asyncio.timeout(self.spec.deadline) as limit:
                self._calls[call] = limit
                return await self._tried(tool, arguments, call)
        except TimeoutError:
            return self._too_late(tool, call)
        finally:
            self._calls.pop(call, None)
            self._used_at = self._clock()

    async def _tried(self, tool: Tool, arguments: dict[str, Json], call: Call) -> Outcome:
        from textor.capabilities.modules.link import Lost
        from textor.capabilities.modules.results import outcome_of

        once = tool.capability.repeat == "once"
        for _ in range(TRIES):
            link = await self.ready()
            if tool.wire in self.held:
                await self._confirm(tool, call)
            try:
                result = await link.call(tool.wire, arguments, call)
            except Lost as lost:
                if lost.sent and once:
                    return self._unknown(tool, str(lost))
                why = str(lost)
                await self._gone(link)
                continue  # it never left, or may be done twice: the next connection gets it
            if all(block.type == "text" for block in result.content):
                return outcome_of(result, tool, call.scope, self.labels)
            return await asyncio.to_thread(outcome_of, result, tool, call.scope, self.labels)
        raise CapabilityError(f"The module {self.spec.name} was lost {TRIES} times during this call: {why}")

    async def _gone(self, link: Link) -> None:
        """Wait until the keeper has seen that this connection is none."""
        while self._link is link and not link.over.done():
            await self._next()

    def _unknown(self, tool: Tool, why: str) -> Outcome:
        text = (
            f"The module {self.spec.name} was lost during the call of {tool.wire}; "
            f"whether it did what was asked is not known. It was not repeated. ({why})"
        )
        return Outcome("unknown", self._with_log(text), labels=self.labels)

    def _too_late(self, tool: Tool, call: Call) -> Outcome:
        module, seconds = self.spec.name, self.spec.deadline
        told = f"{tool.wire} of the module {module} gave no result within {seconds:g} seconds"
        if call.sent and tool.capability.repeat == "once":
            text = f"{told}. It was told to stop; whether it did what was asked is not known."
            return Outcome("unknown", text, labels=self.labels)
        return Outcome.failed(f"{told}; it was {'told to stop' if call.sent else 'never ready'}.")

    def _with_log(self, text: str) -> str:
        last = self.log.last()
        return f"{text}\nIts last lines:\n{last}" if last else text

    async def _asked(self, question: Question, call: Call | None) -> Answer:
        """Bring a question to a person. No call's time runs meanwhile: people are slow."""
        assert self._ask is not None
        if call is None and self._calls:  # older protocols do not say which call asks
            call = next(reversed(self._calls))
        loop = asyncio.get_running_loop()
        began = loop.time()
        before = {limit: limit.when() for limit in self._calls.values() if not limit.expired()}
        for limit in before:
            limit.reschedule(None)
        self._questions += 1
        try:
            return await self._ask(question, call.scope if call is not None else None)
        finally:
            self._questions -= 1
            waited = loop.time() - began
            for limit, when in before.items():
                if limit in self._calls.values() and when is not None and not limit.expired():
                    limit.reschedule(when + waited)

    # -- the keeper ------------------------------------------------------------------------

    _lived = False  #: whether its last start went well

    async def _keep(self) -> None:
        """Start it when needed and again when it is lost, with growing pauses."""
        failures = 0
        while True:
            if failures == 0 or failures >= GIVE_UP:
                self._set("failed" if failures else "off", self.trouble if failures else "")
                await self._called.wait()
            self._called.clear()
            began = self._clock()
            why = await self._life()
            if self._lived and self._clock() - began >= HEALTHY:
                failures = 0
            if not why:
                failures = 0
                continue
            failures += 1
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1))
            self.trouble = self._with_log(
                f"The module {self.spec.name} {'ended' if self._lived else 'cannot be started'}: {why}"
            )
            if not self._lived:
                self._failed_starts += 1
                self._called.clear()  # whoever waited is told now
            self._set("waiting", self.trouble)
            await self._sleep(pause)

    async def _life(self) -> str:
        """One connection from start to end: why it was lost, or "" when it was not needed any more."""
        from textor.capabilities.modules.link import Link

        self._lived = False
        self._set("starting", self.trouble)
        asked = None if self._ask is None else self._asked
        link = Link(self.spec, self.log, asked, self._relist, self._tokens)
        try:
            if why := await link.open():
                return why
            self._lived = True
            self.server, self.protocol = link.server, link.protocol
            self._take(link.raw)
            self._link = link
            self._set("ready", "")
            return await self._until_over(link)
        finally:
            self._link = None
            await link.close()

    async def _until_over(self, link: Link) -> str:
        """Wait for its end, and end it when nobody has called it for long."""
        while not link.over.done():
            if self.spec.idle is None:
                await asyncio.wait([link.over])
                break
            left = self._used_at + self.spec.idle - self._clock()
            if left <= 0 and not self._calls:
                self.log.add(f"[ended after {self.spec.idle:g} seconds without a call]")
                self._called.clear()
                return ""
            nap = asyncio.ensure_future(self._sleep(max(left, 1.0)))
            waiting: list[asyncio.Future[Any]] = [link.over, nap]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                nap.cancel()
        return link.over.result()

    def _set(self, state: State, trouble: str) -> None:
        if self.state == "closed":
            return
        self.state, self.trouble = state, trouble
        if self._news is not None:
            self._news.set_result(None)
            self._news = None
        self._changed(self)

    async def _next(self) -> None:
        """Wait for the next change of state."""
        if self._news is None:
            self._news = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._news)

    # -- its tools -------------------------------------------------------------------------

    def _relist(self) -> None:
        """It says that its tools have changed."""
        if self._relisting is None or self._relisting.done():
            self._relisting = asyncio.create_task(self._read_again())

    async def _read_again(self) -> None:
        link = self._link
        if link is None:
            return
        try:
            await link.relist()
        except Exception as error:  # the old list stays
            self.log.add(f"[its changed tools could not be listed: {error}]")
            return
        self._take(link.raw)
        self._changed(self)

    def _take(self, raw: list[Any]) -> None:
        self._raw = raw
        first = self._accepted is None or self.spec.trusted
        self.held = {} if first else differences(self._accepted or {}, raw)
        if not self.held:
            self._accepted = words_of(raw)
            self._remember(raw)
        else:
            raw = as_accepted(self._accepted or {}, raw)
        self.tools = read_tools(raw, self.spec)
        self.known = True
        for name, reason in self.tools.aside.items():
            self.log.add(f"[the tool {name} is set aside: {reason}]")
        for name in self.held:
            self.log.add(f"[the tool {name} is new or says something else of itself; nobody has accepted it]")

    def accept(self) -> None:
        """Take what it says of its tools now."""
        self._accepted = None
        self._take(self._raw)
        self._changed(self)

    def look_again(self) -> None:
        """What it says may have been accepted elsewhere (`textor modules accept`)."""
        if self.held and self._recall():
            self._take(self._raw)
            self._changed(self)

    async def _confirm(self, tool: Tool, call: Call) -> None:
        """Ask a person whether a tool that says something else of itself may be used."""
        name = self.spec.name
        answer = Answer("cancel")
        if self._ask is not None:
            what = f"{tool.wire} now says something else of itself than when it was accepted:"
            many = f" ({len(self.held)} tools are others)" if len(self.held) > 1 else ""
            told = f"{what}\n{self.held[tool.wire]}\nTake what it says now{many}? yes or no"
            answer = await self._asked(Question(name, told), call)
        if answer.action != "accept":
            raise CapabilityError(
                f"{tool.wire} of the module {name} was not called: what it says of itself has changed, and "
                "nobody has accepted that.",
                f"A person looks at it with `textor modules accept {name}`.",
            )
        self.accept()

    def _digest(self) -> str:
        """What the list of tools depends on; another command may serve others."""
        told = (self.spec.command, self.spec.address, self.spec.placement, self.spec.cwd)
        return sha256_of(msgspec.json.encode(told))

    def _remember(self, raw: list[Any]) -> None:
        if self._cache is None:
            return
        content = {"digest": self._digest(), "server": self.server, "tools": raw}
        draft = self._cache.with_suffix(".tmp")
        with suppress(OSError):  # only a convenience
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(content), "utf-8")
            draft.replace(self._cache)

    def _recall(self) -> bool:
        """Read the list that was kept; whether there is one."""
        if self._cache is None:
            return False
        try:
            content = json.loads(self._cache.read_text("utf-8"))
            if content["digest"] != self._digest():
                return False
            self.tools = read_tools(content["tools"], self.spec)
            self.server = content["server"]
            self._accepted = words_of(content["tools"])
            self.known = True
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return True


async def _over(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])
