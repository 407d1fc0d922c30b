"""One life of the connection to a module: start, list, call, end. What comes after is `module.py`."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    Implementation,
    LoggingMessageNotificationParams,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from textor import __version__
from textor.capabilities.modules.calling import CALL, Call
from textor.capabilities.modules.http import LOST, reaching
from textor.capabilities.modules.log import Log
from textor.capabilities.modules.patience import patiently
from textor.capabilities.modules.questions import Answer, Question, completed, fields_of
from textor.capabilities.modules.sieve import Sieve
from textor.capabilities.modules.spec import BOX, ModuleSpec, filled
from textor.capabilities.modules.stdio import Process, pipe, speaking
from textor.errors import CapabilityError, TextorError

#: Pages of one listing. A module whose listing has no end cannot hold us.
MOST_PAGES = 100

#: Seconds for a connection to close once it was told to.
CLOSING = 6.0

#: What a module on this machine gets of our environment. Nothing in it is a secret.
PASSED = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
)
#: What tells the command of a container engine which engine it is to ask.
ENGINES = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST")


# What the SDK has to say of a module stands in the module's own log or in an outcome; without a
# handler Python would write it into the person's terminal.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Lost(Exception):
    """The connection is gone. `sent`: the module may have had the request; else it never left."""

    def __init__(self, why: str, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Link:
    """One connection. `over` is done when it is of no use any more, with why; "" when we ended it."""

    def __init__(
        self,
        spec: ModuleSpec,
        log: Log,
        asked: Callable[[Question, Call | None], Awaitable[Answer]] | None,
        relisted: Callable[[], None],
        tokens: Path | None = None,
    ) -> None:
        self.spec = spec
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.raw: list[Any] = []  #: the tools as listed
        self.server = ""  #: what the module says it is
        self._log = log
        self._asked = asked
        self._relisted = relisted
        self._tokens = tokens
        self._asking = 0  #: questions that a person has not answered yet
        self._sieve = Sieve()
        self._client: Client | None = None
        self._process: Process | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def protocol(self) -> str:
        return self._client.protocol_version if self._client is not None else ""

    @property
    def pid(self) -> int | None:
        """Of the process that we started, its launcher."""
        return self._process.pid if self._process is not None else None

    async def open(self) -> str:
        """Start and list the tools; empty when that went well, else why not."""
        self._task = asyncio.create_task(self._live(), name=f"module {self.spec.name}")
        self._task.add_done_callback(self._ended)
        ready = asyncio.create_task(self._ready.wait())
        waiting: list[asyncio.Future[Any]] = [ready, self.over]
        try:
            done = await asyncio.wait(waiting, timeout=self.spec.start, return_when=asyncio.FIRST_COMPLETED)
            while not done[0] and self._asking:  # a person who logs in is not to be hurried
                done = await asyncio.wait(
                    waiting, timeout=self.spec.start, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            ready.cancel()
        if self._ready.is_set():
            return ""
        if self.over.done():
            return self.over.result()
        await self.close()
        return f"It did not answer within {self.spec.start:g} seconds."

    async def close(self) -> None:
        """End it and whatever it started; harmless twice. A cancelling does not reach it."""
        if not self.over.done():
            self.over.set_result("")
        self._stop.set()
        await patiently(self._close())

    async def _close(self) -> None:
        if self._task is None:
            return
        if not self._ready.is_set():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=CLOSING)
        while not self._task.done():
            if self._process is not None:
                self._process.kill()
            self._task.cancel()
            await asyncio.wait([self._task], timeout=1)

    # -- its life --------------------------------------------------------------------------

    async def _live(self) -> None:
        async with self._transport() as transport:
            client = Client(
                transport,
                mode=self.spec.protocol,
                elicitation_callback=None if self._asked is None else self._elicit,
                logging_callback=self._logged,
                log_level="info",
                message_handler=self._told,
                client_info=Implementation(name="textor", version=__version__),
                cache=None,
            )
            async with client:
                self._client = client
                info = client.server_info
                self.server = f"{info.name} {info.version}".strip() if info is not None else ""
                await self.relist()
                self._ready.set()
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self._until_over()
                finally:
                    listening.cancel()
                    with suppress(asyncio.CancelledError, Exception):
                        await listening

    async def _until_over(self) -> None:
        stop = asyncio.create_task(self._stop.wait())
        try:
            waiting: list[asyncio.Future[Any]] = [stop]
            if self._process is not None:
                waiting += [self._process.exited, self._process.silent]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Whatever it ended by. A cancelling from inside is the SDK's way to tell a lost connection."""
        error = None if task.cancelled() else task.exception()
        if self.over.done():
            return
        if self._process is not None and self._process.status is not None:
            why = f"It ended with exit status {self._process.status}."
        elif error is not None:
            why = _told_by(error)
        else:
            why = "The connection was lost."
        self.over.set_result(why)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        spec = self.spec
        headers = filled(spec.headers, spec.name)
        if not spec.command:
            async with self._login() as auth, reaching(spec.address, headers, auth, self._sieve) as made:
                yield _Made(made)
            return
        passed = PASSED if spec.placement == "local" else (*PASSED, *ENGINES)
        env = {name: os.environ[name] for name in passed if name in os.environ}
        env |= {"COLUMNS": "160"} | filled(spec.env, spec.name)  # its log is no terminal of 80 columns
        argv = placed(spec)
        cwd = spec.cwd or None
        if cwd is not None and not os.path.isdir(cwd):  # noqa: ASYNC240, PTH112
            raise CapabilityError(f"Its working folder {cwd} is none.")
        if not spec.address:
            out, incoming = pipe()
            self._process = await Process.start(argv, env, cwd, self._log, out)
            async with speaking(self._process, incoming, self._sieve) as made:
                yield _Made(made)
            return
        self._process = await Process.start(argv, env, cwd, self._log, None)
        try:
            await self._answering()
            async with self._login() as auth, reaching(spec.address, headers, auth, self._sieve) as made:
                yield _Made(made)
        finally:
            await self._process.end()

    @asynccontextmanager
    async def _login(self) -> AsyncIterator[Any]:
        if self.spec.login is None:
            yield None
            return
        from textor.capabilities.modules.login import login_for

        auth, back = await login_for(self.spec, self._tokens, self._open_page)
        try:
            yield auth
        finally:
            back.close()

    async def _open_page(self, address: str) -> bool:
        if self._asked is None:
            return False
        self._asking += 1
        try:
            question = Question(
                self.spec.name, f"The module {self.spec.name} wants you to log in.", url=address
            )
            return (await self._asked(question, None)).action == "accept"
        finally:
            self._asking -= 1

    async def _answering(self) -> None:
        """Wait until something listens at the address of a server that we started."""
        assert self._process is not None
        place = urlsplit(self.spec.address)
        port = place.port or (443 if place.scheme == "https" else 80)
        while not self._process.exited.done():
            try:
                _, writer = await asyncio.open_connection(place.hostname, port)
            except OSError:
                await asyncio.wait([self._process.exited], timeout=0.05)
                continue
            writer.close()
            return
        raise CapabilityError(f"It ended with exit status {self._process.status}.")

    # -- talking ---------------------------------------------------------------------------

    async def relist(self) -> None:
        """Read the list of tools, all pages."""
        assert self._client is not None
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await self._client.session.list_tools(params=params)
            cursor = page.next_cursor
            if not cursor:
                break
        self.raw = list(self._sieve.raw)

    async def ping(self) -> None:
        """Make sure that it answers, in the way of its protocol."""
        assert self._client is not None
        if self.protocol in MODERN_PROTOCOL_VERSIONS:
            await self.relist()
        else:
            await self._client.session.send_ping()

    async def call(self, wire: str, arguments: dict[str, Any], scope_call: Call) -> CallToolResult:
        """One call of a tool. Raises `Lost`, or `CapabilityError` for a refusal of the module."""
        assert self._client is not None
        token = CALL.set(scope_call)
        try:
            return await self._client.call_tool(wire, arguments, progress_callback=_progress(scope_call))
        except MCPError as error:
            if self._is_loss(error):
                self._lose(str(error))
                raise Lost(str(error), scope_call.sent) from None
            if error.code == REQUEST_TIMEOUT:
                raise Lost("It did not answer in time.", scope_call.sent) from None
            raise CapabilityError(f"The module {self.spec.name} refused: {error.error.message}") from None
        except ValidationError:
            raise CapabilityError(
                f"The tool {wire} of the module {self.spec.name} ran, but its result is none of the protocol."
            ) from None
        except RuntimeError as error:
            raise CapabilityError(f"The module {self.spec.name}: {error}") from None
        finally:
            CALL.reset(token)

    def _is_loss(self, error: MCPError) -> bool:
        """Whether nobody answered. Servers use the SDK's code for errors of their own as well."""
        if error.code != CONNECTION_CLOSED:
            return False
        if error.error.data == LOST or self.over.done():
            return True
        if self._process is not None and self._process.exited.done():
            return True
        return error.error.message == "Connection closed" or error.error.message.startswith("SSE stream")

    def _lose(self, why: str) -> None:
        if self._process is not None and not self.spec.address:
            return  # its end tells by itself, and more
        if not self.over.done():
            self.over.set_result(why)

    # -- what the module says by itself ----------------------------------------------------

    async def _logged(self, params: LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else repr(params.data)
        self._log.add(f"[{params.level}] {data}")

    async def _told(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._relisted()

    async def _listen(self, client: Client) -> None:
        """Newer protocols tell of changed tools only to those who listen."""
        if self.protocol not in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._relisted()

    async def _elicit(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        assert self._asked is not None
        if isinstance(params, ElicitRequestURLParams):
            question = Question(self.spec.name, params.message, url=str(params.url))
        else:
            schema = params.requested_schema
            if not isinstance(schema, dict):
                schema = schema.model_dump(by_alias=True, exclude_none=True)
            question = Question(self.spec.name, params.message, fields_of(schema))
        answer = await self._asked(question, CALL.get())
        if answer.action != "accept":
            return ElicitResult(action=answer.action)
        if question.url:
            return ElicitResult(action="accept")
        return ElicitResult(action="accept", content=completed(answer, question.fields))


class _Made:
    """A transport that is open already, as the SDK wants it."""

    def __init__(self, streams: Any) -> None:
        self._streams = streams

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *ended: object) -> None:
        return None


def _progress(call: Call) -> ProgressFnT:
    async def show(progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        call.scope.progress(f"{message} ({share})" if message else share)

    return show


def _told_by(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return error.error.message
    if isinstance(error, TextorError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def placed(spec: ModuleSpec) -> list[str]:
    """The command as it runs at its place. Raises `CapabilityError` where there is no engine."""
    if spec.placement == "local":
        if spec.command[0] in BOX:
            module = spec.command[0].replace(":", ".modules.")
            return [sys.executable, "-P", "-m", module, *spec.command[1:]]
        return list(spec.command)
    engine = shutil.which("docker") or shutil.which("podman")
    if engine is None:
        raise CapabilityError("It is to run in a container, and there is neither docker nor podman.")
    words = [engine, "run", "--rm", "--interactive", "--init", "--label", f"textor.module={spec.name}"]
    for name in spec.env:  # by name alone, so that no value stands in a list of processes
        words += ["--env", name]
    if spec.cwd:
        words += ["--workdir", spec.cwd]
    return [*words, spec.placement.removeprefix("container:"), *spec.command]
