"""Ports of 127.0.0.1 that lead into a container or a sandbox which has no network of its own.

Nothing is published by the engine: a connection from this machine is carried through, one by one,
and what is inside gets no way out by it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from textor.containers.client import Stream
from textor.containers.engine import Engine, output_of
from textor.errors import CapabilityError, TextorError

PIECE = 1 << 16

#: Carries its input and output to a port inside, with whatever the image has for it.
REACH = """
if command -v socat >/dev/null; then exec socat - "TCP:127.0.0.1:$0"; fi
if command -v bash >/dev/null; then
    exec bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" || exit 1; cat <&3 & cat >&3; wait' "$0"
fi
exec nc 127.0.0.1 "$0"
"""


class Far(Protocol):
    """The inner end of one connection."""

    async def read(self) -> bytes:
        """The next piece; b"" at the end."""
        ...

    async def write(self, data: bytes) -> None: ...
    def end(self) -> None: ...
    def close(self) -> None: ...


Connect = Callable[[], Awaitable[Far]]


class Forwarder:
    """Listens on 127.0.0.1 and carries each connection to what `connect` gives."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int = 0) -> int:
        """The port it listens on. `CapabilityError` when that is taken."""
        try:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        except OSError as error:
            raise CapabilityError(f"Port {port} of this machine cannot be used: {error.strerror}.") from None
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        try:
            await self._carry(reader, writer)
        except (OSError, TextorError):
            pass  # one side has gone: so has the connection
        except asyncio.CancelledError:
            pass  # closing: asyncio logs a cancelled handler as a fault
        finally:
            self._carrying.discard(task)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = await self._connect()
        outgoing = asyncio.create_task(_outgoing(reader, far))
        try:
            while data := await far.read():
                writer.write(data)
                await writer.drain()
        finally:
            outgoing.cancel()
            await asyncio.gather(outgoing, return_exceptions=True)
            far.close()

    async def close(self) -> None:
        """Listen no longer and end what is open."""
        if self._server is not None:
            self._server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)


async def _outgoing(reader: asyncio.StreamReader, far: Far) -> None:
    with contextlib.suppress(OSError, TextorError):
        while data := await reader.read(PIECE):
            await far.write(data)
        far.end()


class ByProgram:
    """The inner end as a program in the container that carries to its port."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._output = output_of(stream)

    async def read(self) -> bytes:
        async for number, data in self._output:
            if number == 1 and data:
                return data
        return b""

    async def write(self, data: bytes) -> None:
        await self._stream.send(data)

    def end(self) -> None:
        self._stream.end_input()

    def close(self) -> None:
        self._stream.close()


def into_container(engine: Engine, id: str, port: int) -> Connect:
    """Ways to a port of a running container, on any engine, also a remote one."""

    async def connect() -> Far:
        return ByProgram(await engine.execute(id, ["sh", "-c", REACH, str(port)]))

    return connect


class BySocket:
    """The inner end as a unix socket, behind which a relay carries to the port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def end(self) -> None:
        self._writer.write_eof()

    def close(self) -> None:
        self._writer.close()


def through_socket(path: str) -> Connect:
    """Ways through a unix socket."""

    async def connect() -> Far:
        return BySocket(*await asyncio.open_unix_connection(path))

    return connect
