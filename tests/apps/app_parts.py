"""A real app on a free port of this loop or as a process of its own, a client, and a browser."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
import uvicorn

from textor.apps.sdk import App

if TYPE_CHECKING:
    from playwright.async_api import Page

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
needs_chromium = pytest.mark.skipif(
    not Path(CHROMIUM).exists() and os.environ.get("CI") != "true",
    reason="no Chromium here: apt-get install chromium",
)


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


def ask(port: int, path: str, body: Any = None, *, method: str = "", **headers: str) -> Answer:
    """GET, or POST where there is a body (bytes as they are, anything else as JSON)."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if body is None else "POST"), path, content, sent)
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, answer.read(), told)
    finally:
        connection.close()


@contextmanager
def process(
    *command: str, data: Path, token: str = "", env: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """An app as a process of its own, as the broker launches it; ready when this returns."""
    given = {"TEXTOR_DATA": str(data), "TEXTOR_APP_TOKEN": token, "DISPLAY": "", **(env or {})}
    started = subprocess.Popen(
        [sys.executable, *command, "0"], env=os.environ | given, stdout=subprocess.PIPE, text=True
    )
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        yield started, int(line.rstrip("/\n").rpartition(":")[2])
    finally:
        started.terminate()
        started.wait(10)
        if started.stdout is not None:
            started.stdout.close()


class Served:
    """An app in this loop."""

    def __init__(self, app: App[Any], port: int) -> None:
        self.app = app
        self.port = port

    async def ask(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await asyncio.to_thread(ask, self.port, path, body, **options)

    async def ok(self, path: str, body: Any = None, **options: Any) -> Any:
        """What an action gives back, which must not be an error."""
        answer = await self.ask(path, body, **options)
        assert answer.status == 200, answer.body
        return answer.json

    async def say(self, route: str, text: str) -> Any:
        """A call exactly as the document's broker makes it."""
        return await self.ok(f"/{route}", {"Text": text})

    async def refusal(self, path: str, body: Any = None, status: int = 422, **options: Any) -> str:
        answer = await self.ask(path, body, **options)
        assert answer.status == status, answer.body
        return answer.error


@asynccontextmanager
async def served(app: App[Any], token: str = "") -> AsyncIterator[Served]:
    app.begin()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app.asgi(token), lifespan="off", log_config=None, log_level="critical", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield Served(app, listener.getsockname()[1])
    finally:
        server.should_exit = True
        await serving
        listener.close()


@asynccontextmanager
async def window(port: int, token: str = "", dark: bool = False) -> AsyncIterator[Page]:
    """The page in a real Chromium, live; whatever it complains of fails the test."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        context = await browser.new_context(viewport={"width": 1100, "height": 800}, color_scheme=scheme)
        page = await context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda told: complaints.append(told.text) if "Security" in told.text else None)
        page.set_default_timeout(20_000)
        await opened(page, port, token)
        try:
            yield page
            await shoot(page)
        finally:
            await browser.close()
        assert complaints == []


async def opened(page: Page, port: int, token: str = "") -> None:
    await page.goto(f"http://127.0.0.1:{port}/" + (f"#token={token}" if token else ""))
    await page.locator("html[data-live=yes]").wait_for()


async def shoot(page: Page) -> None:
    """A picture of the window, where TEXTOR_SHOTS names a folder for them."""
    if folder := os.environ.get("TEXTOR_SHOTS"):
        name = os.environ.get("PYTEST_CURRENT_TEST", "page").split("::")[-1].split(" ")[0]
        await page.screenshot(path=f"{folder}/{name}.png")
