"""Logging in at a module that wants it: OAuth 2.1 as MCP uses it, tokens kept in a file of ours.

The SDK does the protocol. Ours are the way to the person (a page to open), the loopback address that
the page comes back to (RFC 8252), and the file.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from textor.capabilities.modules.spec import ModuleSpec, filled
from textor.errors import CapabilityError

#: Brings a page to a person; False when nobody will open it.
Open = Callable[[str], Awaitable[bool]]

DONE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    b"<!doctype html><title>Textor</title><p>You are logged in. This page may be closed."
)


class Tokens:
    """The tokens and the registration of one module, in a file that only its owner can read."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._content: dict[str, Any] = {}
        if path is not None and path.exists():
            try:
                self._content = json.loads(path.read_text("utf-8"))
            except (OSError, ValueError):
                self._content = {}

    async def get_tokens(self) -> OAuthToken | None:
        try:
            return OAuthToken.model_validate(self._content["tokens"])
        except (KeyError, ValidationError):
            return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._keep("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        try:
            return OAuthClientInformationFull.model_validate(self._content["client"])
        except (KeyError, ValidationError):
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._keep("client", client_info.model_dump(mode="json", exclude_none=True))

    def forget_client(self) -> None:
        self._content.pop("client", None)

    def _keep(self, key: str, value: Any) -> None:
        self._content[key] = value
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".tmp")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(self._content, file)
        draft.replace(self._path)


class Return:
    """The loopback address to which the browser comes back. Listens only while a login is under way."""

    def __init__(self, module: str, page: Open) -> None:
        self._module = module
        self._page = page
        self._server: asyncio.Server | None = None
        self._result: asyncio.Future[AuthorizationCodeResult] | None = None
        self.port = 0

    async def reserve(self, wanted: int) -> bool:
        """Take the port `wanted` (0: any); whether it could be had."""
        try:
            self._server = await asyncio.start_server(self._visited, "127.0.0.1", wanted, start_serving=False)
        except OSError:
            return False
        self.port = self._server.sockets[0].getsockname()[1]
        return True

    async def open(self, address: str) -> None:
        assert self._server is not None
        self._result = asyncio.get_running_loop().create_future()
        await self._server.start_serving()
        if not await self._page(address):
            raise CapabilityError(
                f"The module {self._module} wants a login, and nobody opened its page.",
                f"`textor modules test {self._module}` logs in.",
            )

    async def result(self) -> AuthorizationCodeResult:
        assert self._result is not None
        return await self._result

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        words = line.decode("latin-1").split()
        query = parse_qs(urlsplit(words[1]).query) if len(words) > 1 else {}
        given = {key: query[key][0] for key in ("code", "state", "iss") if key in query}
        if self._result is not None and not self._result.done():
            if "code" in given:
                self._result.set_result(AuthorizationCodeResult(**given))
            elif "error" in query:
                why = " ".join(query.get("error_description", query["error"]))
                self._result.set_exception(CapabilityError(f"The login at {self._module} failed: {why}"))
        writer.write(DONE)
        await writer.drain()
        writer.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


async def login_for(spec: ModuleSpec, path: Path | None, page: Open) -> tuple[httpx2.Auth, Return]:
    """What logs in at the module when it asks for it, and the address to be closed afterwards."""
    assert spec.login is not None
    tokens, back = Tokens(path), Return(spec.name, page)
    given = filled({"id": spec.login.client_id, "secret": spec.login.client_secret}, spec.name)
    scope = spec.login.scope or None
    if spec.login.grant == "client_credentials":
        auth: httpx2.Auth = ClientCredentialsOAuthProvider(
            spec.address, tokens, given["id"], given["secret"], scope=scope
        )
        return auth, back
    known = await tokens.get_client_info()
    uris = [str(uri) for uri in (known.redirect_uris or [])] if known is not None else []
    if not uris or not await back.reserve(urlsplit(uris[0]).port or 0):
        tokens.forget_client()  # what was registered is another address
        await back.reserve(0)
    address = AnyUrl(f"http://127.0.0.1:{back.port}/callback")
    metadata = OAuthClientMetadata(
        client_name="Textor",
        redirect_uris=[address],
        scope=scope,
        token_endpoint_auth_method="client_secret_basic" if given["secret"] else None,
    )
    if given["id"]:
        await tokens.set_client_info(
            OAuthClientInformationFull(
                client_id=given["id"],
                client_secret=given["secret"] or None,
                redirect_uris=[address],
                token_endpoint_auth_method=metadata.token_endpoint_auth_method or "none",
            )
        )
    auth = OAuthClientProvider(
        spec.address,
        metadata,
        tokens,
        back.open,
        back.result,
        client_metadata_url=spec.login.metadata_url or None,
    )
    return auth, back
