"""A real server over a real machine, on a free port of this loop; and a real browser."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from textor import events as e
from textor.actions import Action, Outcome
from textor.assembly import Machine, core_providers, make_services
from textor.config import Config
from textor.events import Event
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.messages import Message, Text, Usage, said
from textor.processors import Models
from textor.server.app import create_app
from textor.server.serve import address_of, listen, make_server
from textor.session import Session
from textor.testing import ScriptedModel

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

TOKEN = "a-token-of-thirty-two-characters"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

needs_chromium = pytest.mark.skipif(
    not Path(CHROMIUM).exists() and os.environ.get("CI") != "true",
    reason="no Chromium here: apt-get install chromium",
)


@asynccontextmanager
async def machine(
    model: ScriptedModel | None = None, *, tmp: Path, host: bool = True
) -> AsyncIterator[Machine]:
    """A real machine with a scripted model; without a host nothing runs by itself."""
    config = Config(path=tmp / "config.toml", data=tmp)
    models = Models(config)
    if model is not None:
        models.add(model)
    services = await make_services(config, MemoryJournal(), models, await core_providers())
    made = Machine(config, services, models)
    if host:
        made.host = LocalHost(services)
        await made.host.start()
    try:
        yield made
    finally:
        await made.close()


async def until(session: Session, wanted: Callable[[Event], bool], after: int = 0) -> list[Event]:
    """The events up to and with the first that is wanted."""
    seen: list[Event] = []
    async with asyncio.timeout(30):
        async for event in session.follow(after):
            seen.append(event)
            if wanted(event):
                break
    return seen


def ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded)


@asynccontextmanager
async def served(machine: Machine, workspace: Path, port: int = 0) -> AsyncIterator[str]:
    """The address of a server over `machine`."""
    server = make_server(create_app(machine, TOKEN, workspace=workspace))
    listener = listen("127.0.0.1", port)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield address_of(listener)
    finally:
        server.should_exit = True
        await serving
        listener.close()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def page_of(browser: Browser, address: str, session: str = "") -> AsyncIterator[Page]:
    """The page, opened as a person opens it; whatever it complains of fails the test."""
    page = await browser.new_page(viewport={"width": 1100, "height": 800})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(f"{address}/#token={TOKEN}" + (f"&s={session}" if session else ""))
    yield page
    await page.close()
    assert complaints == []


# -- sessions that are written down as events, for what no model does on demand -----------------


async def write(machine: Machine, session: str, bodies: Sequence[e.Body]) -> None:
    """Append events to a session of a machine that hosts none."""
    events = [machine.services.event(body) for body in bodies]
    if await machine.journal.session(session) is None:
        await machine.journal.create(session, events)
    else:
        epoch = await machine.journal.claim(session)
        await machine.journal.append(session, events, epoch=epoch)


def beginning(text: str, title: str = "A session", model: str = "scripted:model") -> list[e.Body]:
    return [
        e.SessionCreated("/home/anna/garden", title=title),
        e.AgentCreated("main", e.Definition("main"), model),
        e.MessagePosted("main", text),
        *delivery("m1", text),
    ]


def delivery(id: str, text: str) -> list[e.Body]:
    return [e.MessagesDelivered("main", (id,), said("user", text))]


def started(iteration: int = 1, model: str = "scripted:model") -> e.Body:
    return e.GenerationStarted("main", iteration, model)


def finished(text: str, *actions: Action, usage: Usage | None = None) -> e.Body:
    """A generation's end: an answer when there are no actions."""
    reply = "" if actions else text
    message = Message("assistant", (Text(text=text),)) if text else Message("assistant", ())
    return e.GenerationFinished("main", message, actions, reply, usage or Usage(900, 80, cost=0.002))


def done(action: str, text: str = "", state: str = "done") -> e.Body:
    return e.ActionFinished("main", action, Outcome(state, text))  # type: ignore[arg-type]
