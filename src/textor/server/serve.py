"""`textor serve`: a machine, its server and the browser, until the person ends it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json as jsonlib
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette

from textor.errors import UseError
from textor.guard import LOOPBACK
from textor.server.app import create_app
from textor.server.token import load_token

if TYPE_CHECKING:
    from textor.assembly import Machine
    from textor.config import Config

GRACE = 2  #: seconds that open streams are given at the end
MAX_FRAME = 100_000  #: bytes of a frame that a tab sends
WILDCARDS = ("0.0.0.0", "::", "")


class Server(uvicorn.Server):
    """uvicorn on our loop, ended by SIGINT or SIGTERM without raising the signal once more."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread hears signals; whoever runs us elsewhere ends us
            return
        before = {s: signal.signal(s, self.handle_exit) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


async def serve(
    config: Config,
    *,
    host: str = "127.0.0.1",
    port: int = 7771,
    browser: bool = True,
    json: bool = False,
    workspace: Path | None = None,
) -> None:
    """Serve the page until SIGINT or SIGTERM. `port` 0 takes a free one.

    Prints the address with its token, as one line of JSON when `json`. Raises `UseError` when the
    port cannot be had.
    """
    from textor.assembly import open_machine

    listener = listen(host, port)
    with contextlib.closing(listener):
        token = load_token(config.data)
        address = address_of(listener)
        async with open_machine(config) as machine:
            app = create_app(machine, token, workspace=workspace, allowed_hosts=allowed_hosts(host))
            announce(address, token, config.path, json=json)
            if browser:
                open_browser(f"{address}/#token={token}")
            async with embedding_service(machine, config.server.embedding_port):
                await make_server(app).serve(sockets=[listener])


@contextlib.asynccontextmanager
async def embedding_service(machine: Machine, port: int) -> AsyncIterator[None]:
    """The embedding service of the AIE document beside ours; nothing for port 0."""
    if not port:
        yield
        return
    from textor.server.embedding_server import create_embedding_app

    with contextlib.closing(listen("127.0.0.1", port)) as listener:
        server = make_server(create_embedding_app(machine))
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="embedding service")
        try:
            yield
        finally:
            server.should_exit = True
            await serving


def make_server(app: Starlette) -> Server:
    """A server for the running loop: `await server.serve(sockets=[...])`; `should_exit` ends it."""
    return Server(
        uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=GRACE,
            ws_max_size=MAX_FRAME,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. Raises `UseError` that names the port and how to choose another."""
    if not 0 <= port <= 65535:
        raise UseError(f"{port} is no port.", "--port takes a number from 0 (a free one) to 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise UseError(
            f"{host!r} is no address of this machine.", "--host takes one, or 127.0.0.1."
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UseError(
                f"Port {port} on {host} is taken, maybe by a Textor that runs already.",
                "Choose another with --port, or --port 0 for a free one.",
            ) from None
        reason = error.strerror or str(error)
        raise UseError(
            f"Port {port} on {host} cannot be used: {reason}.", "Choose others with --host and --port."
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The address that a browser on this machine uses."""
    host, port = listener.getsockname()[:2]
    if host in WILDCARDS:
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def allowed_hosts(host: str) -> tuple[str, ...]:
    """The names that a server on `host` answers for."""
    if host in WILDCARDS:
        return (*LOOPBACK, "*", socket.gethostname())
    return (*LOOPBACK, host)


def announce(address: str, token: str, path: Path, *, json: bool) -> None:
    if json:
        port = int(address.rpartition(":")[2])
        print(jsonlib.dumps({"url": address, "token": token, "port": port}), flush=True)
        return
    print(f"Textor runs at {address}/#token={token}")
    print(f"Configuration: {path}{'' if path.exists() else ' (not there yet)'}")
    print("Ctrl-C ends it.", flush=True)


def open_browser(url: str) -> None:
    """Open the page where there is a desktop; in a thread, since some browsers keep us waiting."""
    if sys.platform not in ("darwin", "win32") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return  # a text browser would take the terminal over
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
