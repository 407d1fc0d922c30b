"""The page reaches every agent of a session, raises its limits, and is reloaded in mid stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from server_parts import ended, needs_chromium, until
from test_page import MODEL, in_page, log

from textor import events as e
from textor.assembly import Machine
from textor.messages import Context
from textor.testing import Call, Gate, Reply

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.browser, needs_chromium]


def test_a_reload_in_mid_stream_shows_what_was_said_so_far(tmp_path: Path) -> None:
    gate = Gate()

    async def body(page: Page, made: Machine, address: str) -> None:
        session = await made.create("One", workspace=tmp_path, model=MODEL, agent="main")
        events = await until(session, ended)
        await session.post("Two")
        await until(session, ended, events[-1].seq)
        await session.post("Three")
        await gate.reached.wait()
        await page.goto(f"{address}/#s={session.id}")
        for _ in range(2):
            await page.reload()
            reply = page.get_by_role("article", name="Reply of Textor").last
            await reply.get_by_text("Once upon", exact=True).wait_for()
            assert await reply.get_attribute("aria-busy") == "true"
        gate.open()
        await log(page).get_by_text("Once upon a time").wait_for()

    in_page(tmp_path, body, ["first", "second", Reply("Once upon a time", gates={9: gate}, chunk=3)])


def test_an_agent_below_is_spoken_to_paused_and_stopped(tmp_path: Path) -> None:
    held = Gate()

    def model(context: Context) -> Reply | str:
        text = str(context.messages)
        if "Deeper" in text:
            return Reply("I dig deeper", gates={6: held})
        if "Dig." in text and "Begin" not in text:
            return Reply("I dig", gates={2: held})
        if "anna" in text:
            return "It has begun."
        call = {"type": "coder-proxy", "name": "anna", "message": "Dig.", "background": True}
        return Reply(calls=(Call("call", call),))

    async def body(page: Page, made: Machine, address: str) -> None:
        session = await made.create("Begin", workspace=tmp_path, model=MODEL, agent="main")
        await page.goto(f"{address}/#s={session.id}")
        await log(page).get_by_text("It has begun.").wait_for()
        await page.get_by_text("2 agents, 1 at work").click()
        row = page.get_by_role("list", name="Agents").get_by_role("listitem").last
        await row.get_by_text("coder-proxy · at work").wait_for()
        await page.get_by_role("button", name="Speak to: main/anna").click()
        box = page.get_by_role("textbox", name="Message to main/anna")
        assert await page.evaluate("document.activeElement.tagName") == "TEXTAREA"
        await box.fill("Deeper!")
        await box.press("Enter")
        await log(page).get_by_text("to main/anna", exact=True).wait_for()
        await page.get_by_text("2 agents, 1 at work").click()  # the list made room for what was written
        await page.get_by_role("button", name="Pause: main/anna").click()
        await row.get_by_text("paused").wait_for()
        await page.get_by_role("button", name="Go on: main/anna").click()
        await row.get_by_text("at work").wait_for()
        await page.get_by_role("button", name="Pause", exact=True).click()  # all of them
        await row.get_by_text("paused").wait_for()
        await page.get_by_role("button", name="Go on", exact=True).click()
        await row.get_by_text("at work").wait_for()
        await page.get_by_role("button", name="Stop: main/anna").click()
        await log(page).get_by_text("main/anna: Stopped.").wait_for()
        await row.get_by_text("at rest").wait_for()
        await page.get_by_role("button", name="Speak to Textor again").click()
        await page.get_by_role("textbox", name="Message Textor").wait_for()
        said = [ev.body async for ev in made.journal.read(session.id) if isinstance(ev.body, e.MessagePosted)]
        assert ("main/anna", "Deeper!", "") in [(m.agent, m.text, m.sender) for m in said]

    in_page(tmp_path, body, model)  # type: ignore[arg-type]  # a function is a script too


@pytest.mark.parametrize("width", [1100, 360])
def test_a_limit_is_raised_on_the_page(tmp_path: Path, width: int) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        await page.set_viewport_size({"width": width, "height": 700})
        limits = e.Limits(tokens=50, agents=7)
        session = await made.create("Go", workspace=tmp_path, model=MODEL, agent="main", limits=limits)
        await page.goto(f"{address}/#s={session.id}")
        await log(page).get_by_text("the tokens are used up").wait_for()
        await page.get_by_role("button", name="Used so far").click()
        field = page.get_by_label("Tokens of this session")
        assert await field.input_value() == "50"
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await field.fill("100000")
        await field.press("Enter")
        await log(page).get_by_text("Limits are now: tokens 100000, agents 7.").wait_for()
        await page.get_by_role("textbox", name="Message Textor").fill("Go on")
        await page.keyboard.press("Enter")
        await log(page).get_by_text("Here I am.").wait_for()

    script: Sequence[str] = ["Here I am."]
    in_page(tmp_path, body, list(script))
