"""Running an app: the port, the token, the window, and the end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textor.apps.register import ADDRESS, Waits, install, uninstall
from textor.errors import TextorError, UseError

if TYPE_CHECKING:
    from textor.apps.sdk import App

GRACE = 1  #: seconds that open streams are given at the end


def main(app: App[Any], argv: Sequence[str]) -> int:
    """Exit status 0; 2 for a wrong use; 3 for a registration that waits for a person."""
    try:
        options = _options(app, argv)
        if options.install:
            print(install(app, options.url, options.token))
        elif options.uninstall:
            print(uninstall(app, options.url, options.token))
        else:
            serve(app, port_of(options.port), os.environ.get("TEXTOR_APP_TOKEN", ""), options.window)
    except Waits as error:
        print(error, file=sys.stderr)
        return 3
    except TextorError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _options(app: App[Any], argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"{app.title}: {app.purpose}.")
    env = os.environ
    parser.add_argument("port", nargs="?", default=env.get("TEXTOR_APP_PORT", "0"), help="0 takes a free one")
    # The document's apps take -install; so do ours.
    parser.add_argument("--install", "-install", action="store_true", help="register with Textor and end")
    parser.add_argument("--uninstall", "-uninstall", action="store_true", help="take that back and end")
    parser.add_argument("--url", default=env.get("TEXTOR_URL") or ADDRESS, help="the address of Textor")
    parser.add_argument("--token", default=env.get("TEXTOR_TOKEN", ""), help="the token of Textor")
    parser.add_argument("--no-window", dest="window", action="store_false", help="open no browser")
    options = parser.parse_args(argv)
    options.url = options.url.rstrip("/")
    return options


def port_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise UseError(f"{text!r} is no port.", "Give a number from 0 (a free one) to 65535.")
    return int(text)


def serve(app: App[Any], port: int, token: str, window: bool) -> None:
    """Serve on this machine alone, until SIGINT or SIGTERM. Raises `UseError` for a taken port."""
    import uvicorn

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    with contextlib.closing(_listen(port)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app.begin()
        settings = uvicorn.Config(
            app.asgi(token),
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            timeout_graceful_shutdown=GRACE,
        )
        print(f"{app.title} runs at {address}/", flush=True)
        if window:
            _open_window(f"{address}/" + (f"#token={token}" if token else ""))
        asyncio.run(uvicorn.Server(settings).serve(sockets=[listener]))


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise UseError(f"Port {port} cannot be used: {error.strerror}.", "Give another, or 0.") from None
    return listener


def _open_window(url: str) -> None:
    """The page, where there is a desktop; in a thread, since some browsers keep us waiting."""
    desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform not in ("darwin", "win32") and not desktop:
        return
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
