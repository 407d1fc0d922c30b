"""A module as a process of ours that speaks MCP over stdin and stdout.

Our own transport instead of the SDK's: its stderr is kept, it is watched by `launch.py`, killed for
certain when this task is cancelled, and messages go between pipe and SDK without tasks in between.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from math import inf
from types import TracebackType
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from textor.capabilities.modules import launch
from textor.capabilities.modules.calling import CALL
from textor.capabilities.modules.log import Log
from textor.capabilities.modules.patience import patiently
from textor.capabilities.modules.sieve import Receiving, Sending, Sieve
from textor.errors import CapabilityError

Incoming = SessionMessage | Exception

#: How long a module may take to end by itself once its stdin is closed, in seconds.
GRACE = 2.0

#: The longest message, in bytes. A module that writes on without an end is cut off.
LONGEST = 256 << 20


class Process(asyncio.SubprocessProtocol):
    """A module's process. `exited` is done when it is gone and all it started with it, `silent`
    when it has closed its stdout."""

    def __init__(self, log: Log, out: MemoryObjectSendStream[Incoming] | None) -> None:
        self.log = log
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.silent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._out = out
        self._buffer = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None
        self._watch = -1

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        log: Log,
        out: MemoryObjectSendStream[Incoming] | None,
    ) -> Process:
        """Begin it under its launcher. What cannot be executed ends with status 127 and a line."""
        read, write = os.pipe()
        try:
            transport, process = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(log, out),
                *(sys.executable, "-I", "-S", launch.__file__, str(read), *argv),
                env=dict(env),
                cwd=cwd,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(read,),
                start_new_session=True,
            )
        except BaseException as error:
            os.close(write)  # what has begun already ends by that
            if isinstance(error, OSError):
                raise CapabilityError(f"{argv[0]} cannot be started: {error.strerror}.") from None
            raise
        finally:
            os.close(read)
        process._transport, process._watch = transport, write
        return process

    @property
    def status(self) -> int | None:
        assert self._transport is not None
        return self._transport.get_returncode()

    @property
    def pid(self) -> int:
        assert self._transport is not None
        return self._transport.get_pid()

    def write(self, data: bytes) -> None:
        """Hand bytes to its stdin. Raises `anyio.ClosedResourceError` when it reads no more."""
        assert self._transport is not None
        pipe: Any = self._transport.get_pipe_transport(0)
        if self.exited.done() or pipe is None or pipe.is_closing():
            raise anyio.ClosedResourceError
        pipe.write(data)

    async def end(self, grace: float = GRACE) -> None:
        """Close its stdin, wait `grace` seconds, kill what is left. A cancelling does not reach it."""
        await patiently(self._end(grace))

    async def _end(self, grace: float) -> None:
        assert self._transport is not None
        try:
            pipe = self._transport.get_pipe_transport(0)
            if pipe is not None:
                pipe.close()
            if not self.exited.done():
                await asyncio.wait([self.exited], timeout=grace)
            self.kill()
            if not self.exited.done():
                await asyncio.wait([self.exited], timeout=5)
            if not self.exited.done():  # the launcher itself hangs
                with suppress(ProcessLookupError):
                    os.killpg(self.pid, 9)
                await self.exited
        finally:  # also where the whole loop ends and waits for nobody
            self.kill()
            self._transport.close()
        await asyncio.sleep(0)  # its pipes are closed by the next turn of the loop

    def kill(self) -> None:
        """Tell the launcher to kill the module and all below it."""
        if self._watch >= 0:
            os.close(self._watch)
            self._watch = -1

    # -- what asyncio tells ----------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2 or self._out is None:
            self.log.feed(data)
            return
        self._buffer += data
        if b"\n" not in data:
            if len(self._buffer) > LONGEST:
                self.log.add(f"[a message of more than {LONGEST >> 20} MiB: the module is ended]")
                self.kill()
                self._buffer.clear()
            return
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        for line in lines:
            self._message(bytes(line))

    def _message(self, line: bytes) -> None:
        assert self._out is not None
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            # a module that prints: its stdout belongs to the protocol, but nothing is lost by it
            self.log.add(f"[on stdout] {line.decode('utf-8', 'replace')}")
            return
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._out.send_nowait(SessionMessage(message))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and self._out is not None:
            self._out.close()
            if not self.silent.done():
                self.silent.set_result(None)
        if fd == 2:
            self.log.finish()

    def process_exited(self) -> None:
        self.kill()
        if self._out is not None:
            self._out.close()
        if not self.exited.done():
            self.exited.set_result(None)


class _Stdin:
    """What the SDK writes to."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        self._process.write(data + b"\n")
        call = CALL.get()
        if call is not None:
            call.sent = True

    async def aclose(self) -> None:
        """The pipe is closed by `Process.end`."""

    async def __aenter__(self) -> _Stdin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


@asynccontextmanager
async def speaking(process: Process, incoming: Any, sieve: Sieve) -> AsyncIterator[tuple[Receiving, Sending]]:
    """A running process as a transport of the SDK; ended with it."""
    try:
        yield Receiving(incoming, sieve), Sending(_Stdin(process), sieve)
    finally:
        await process.end()
        incoming.close()


def pipe() -> tuple[MemoryObjectSendStream[Incoming], Any]:
    """Where messages wait until the SDK takes them."""
    return anyio.create_memory_object_stream[Incoming](inf)
