"""What stands before every request: whose page asks (Host, Origin) and what ours may do (CSP).

A page of any site can send requests to a port of this machine, and a name of any site can be
pointed at it. So the name that was asked for must be ours, a request that a page sends must
come from our own page, and nothing is told without the token. There are no cookies: they
ignore ports, and a page that an agent serves on another port would receive ours.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The names under which this machine reaches itself.
LOOPBACK = ("127.0.0.1", "localhost", "::1")

#: Nothing but our own files, no inline scripts, nothing fetched from elsewhere (so that no
#: picture in a reply can carry data out), no frame around us.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def host_name(host: str) -> str:
    """The name of a Host header without its port: "[::1]:7771" -> "::1"."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Middleware: 421 for a foreign Host, 403 for a foreign Origin, our headers on every answer.

    "*" in `allowed_hosts` stands for any address in digits: a server that listens on all
    addresses cannot list them, and only names can be pointed at us by others.
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str] = LOOPBACK) -> None:
        self.app = app
        self.allowed = frozenset(name.lower() for name in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        refusal = self.refusal(Headers(scope=scope))
        await (refusal or self.app)(scope, receive, send_with_headers)

    def refusal(self, headers: Headers) -> JSONResponse | None:
        """The answer to a request that is not ours to serve."""
        host = headers.get("host", "")
        if not self.is_ours(host):
            return problem(421, f"This server does not answer for the host {host[:100]!r}.")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return problem(403, f"A page of {origin[:100]!r} may not use this server.")
        return None

    def is_ours(self, host: str) -> bool:
        name = host_name(host)
        return name in self.allowed or ("*" in self.allowed and is_address(name))


def problem(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status)


def holds_token(given: str, token: str) -> bool:
    """Whether they are equal, in a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def bearer(connection: HTTPConnection) -> str:
    """The token that a request brought, "" when none."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
