"""The way out of a sandbox without network: a proxy that knows a list of hosts.

It listens on a unix socket in a door's folder; inside, a relay makes it the usual HTTP proxy on
127.0.0.1:3128, which programs find by their environment. It takes CONNECT (for https) and plain
requests; it sees the names of hosts and nothing of what is encrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import ipaddress
import re
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from textor.capabilities.doors import PLACE, Door

INSIDE = "127.0.0.1:3128"
_SOCKET = "proxy.sock"
_PORTS = (80, 443)  #: where a rule names none
PIECE = 1 << 16
#: Seconds until a request must be there, and until a host must answer.
PATIENCE = 20.0


class Refused(Exception):
    """The request may not go out; the text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class NetworkDoor(Door):
    """A door with the proxy behind it. `hosts`: names, `*.name` for all below it, addresses; each
    may end in `:port`, else ports 80 and 443 are meant."""

    def __init__(self, hosts: Sequence[str]) -> None:
        address = f"http://{INSIDE}"
        names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
        environment = dict.fromkeys(names, address)
        environment |= dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")
        super().__init__([("tcp:3128", f"unix:{PLACE}/{_SOCKET}")], environment)
        self.hosts = tuple(hosts)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.socket(_SOCKET))

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        super().close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._carry(reader, writer)
        except Refused as refused:
            text = f"{refused}\n"
            head = f"HTTP/1.1 {refused.status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\n"
            head += f"Content-Length: {len(text.encode())}\r\nConnection: close\r\n\r\n"
            with contextlib.suppress(OSError):
                writer.write((head + text).encode())
                await writer.drain()
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # one side has gone, or we are closing
        finally:
            self._open.discard(task)
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, head = await _request(reader)
        if method == "CONNECT":
            host, port = _split(target, 443)
            first = b""
        else:
            url = urlsplit(target)
            if url.scheme != "http" or not url.hostname:
                raise Refused(400, "This is a proxy: ask for http:// addresses or use CONNECT.")
            host, port = url.hostname, url.port or 80
            path = f"{url.path or '/'}{'?' + url.query if url.query else ''}"
            first = f"{method} {path} HTTP/1.1\r\n{_rest(head)}".encode("latin-1")
        far_reader, far_writer = await self._reach(host, port)
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            far_writer.write(first)
            await _both_ways(reader, writer, far_reader, far_writer)
        finally:
            far_writer.close()

    async def _reach(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        rule = next((rule for rule in self.hosts if allows(rule, host, port)), None)
        if rule is None:
            known = ", ".join(self.hosts) or "none"
            raise Refused(403, f"{host}:{port} is none of the allowed hosts ({known}); a person can add it.")
        try:
            async with asyncio.timeout(PATIENCE):
                address = await _resolve(host, port, public="*" in rule)
                return await asyncio.open_connection(address, port)
        except (OSError, TimeoutError) as error:
            raise Refused(502, f"{host}:{port} does not answer ({error or 'too late'}).") from None


def allows(rule: str, host: str, port: int) -> bool:
    """Whether a rule allows a host and port."""
    name, number = _split(rule, 0)
    if (number and number != port) or (not number and port not in _PORTS):
        return False
    host, name = host.lower().rstrip("."), name.lower()
    if name.startswith("*."):
        return fnmatch.fnmatchcase(host, "?" + name)
    return host == name


def _split(place: str, default: int) -> tuple[str, int]:
    """Host and port of `host`, `host:port` or `[address]:port`."""
    found = re.fullmatch(r"\[([^]]+)\](?::(\d+))?|([^:]+)(?::(\d+))?", place)
    if found is None:
        return place, default
    port = int(found[2] or found[4] or default)
    if port > 65535:
        raise Refused(400, f"{place} names no port.")
    return found[1] or found[3], port


async def _resolve(host: str, port: int, *, public: bool) -> str:
    """The address of a host. With `public`, one of this machine or its network is refused: a name
    below an allowed one could point there."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    if public and not ipaddress.ip_address(address.partition("%")[0]).is_global:
        raise Refused(403, f"{host} is {address}, an address of this machine or its network.")
    return address


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, str]:
    """(method, target, the lines of the head)."""
    try:
        async with asyncio.timeout(PATIENCE):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (TimeoutError, asyncio.LimitOverrunError):
        raise Refused(400, "There was no request.") from None
    words = head.split("\r\n", 1)[0].split(" ")
    if len(words) != 3:
        raise Refused(400, "This is no request.")
    return words[0], words[1], head


def _rest(head: str) -> str:
    """The header lines of a request as they go on: one request on one connection."""
    lines = head.split("\r\n")[1:-2]
    dropped = ("proxy-", "connection:", "keep-alive:")
    kept = [line for line in lines if not line.lower().startswith(dropped)]
    return "\r\n".join([*kept, "Connection: close", "", ""])


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    outgoing = asyncio.create_task(_pump(reader, far_writer))
    try:
        await _pump(far_reader, writer)
    finally:
        outgoing.cancel()
        await asyncio.gather(outgoing, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
