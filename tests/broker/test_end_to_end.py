"""The document's examples in real Chromium: asked for on the page, done in the apps' own windows."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from broker_parts import begun, foreign, launch_form, machine, run_all
from server_parts import TOKEN, chromium, needs_chromium, page_of, served
from server_web import ask

from textor.assembly import Machine
from textor.broker.view import plan_json
from textor.models import box_fetch
from textor.models.box import ID as BOX
from textor.models.box import BoxModel
from textor.weights import models_folder

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.browser, needs_chromium]

CONTINENTS = """\
start column chart application
set column chart title to [Continents Population in Millions]
add column chart series [Asia=4,600:Africa=1,300:Europe=740:North America=580:South America=430:Antarctica=0:\
Australia/Oceania=40]"""
WANTED = ["Asia", "Africa", "Europe", "North America", "South America", "Antarctica", "Australia/Oceania"]


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DISPLAY", "")


@asynccontextmanager
async def with_apps(replies: Sequence[str], tmp: Path, *names: str) -> AsyncIterator[tuple[Machine, str]]:
    """A server with apps that have installed themselves over HTTP."""
    async with machine(replies, tmp=tmp) as made, served(made, tmp) as address:
        for name in names:
            given = os.environ | {"TEXTOR_URL": address, "TEXTOR_TOKEN": TOKEN}
            command = [sys.executable, "-m", f"textor.apps.{name}", "--install"]
            await asyncio.to_thread(subprocess.run, command, env=given, check=True, capture_output=True)
        yield made, address


async def window_of(browser: Browser, made: Machine, app_class: str) -> Page:
    """The window of the newest instance, as it would be opened on a desktop."""
    apps = made.broker.apps
    record = next(r for r in apps.book.records.values() if r.app_class == app_class)
    window = await browser.new_page(viewport={"width": 1000, "height": 700})
    await window.goto(f"http://127.0.0.1:{record.port}/#token={apps.launcher.token(record)}")
    return window


def shot(tmp: Path, name: str) -> str:
    """Where a picture for a person to look at is kept."""
    return f"{os.environ.get('TEXTOR_SHOTS', tmp)}/{name}.png"


async def shows(window: Page, label: str, text: str) -> None:
    """Waits until a field of an app's window shows a text: it comes by the app's own stream."""
    from playwright.async_api import expect

    await expect(window.get_by_label(label)).to_have_value(text)


async def values_in(window: Page) -> dict[str, str]:
    """What the chart's table shows, by label."""
    return {label: await window.get_by_label(f"Value of {label}").input_value() for label in WANTED}


def test_chart_the_population_of_the_continents_in_millions(tmp_path: Path) -> None:
    async def test() -> None:
        async with with_apps([CONTINENTS], tmp_path, "chart") as (made, address), chromium() as browser:
            async with page_of(browser, address) as page:
                await page.get_by_role("link", name="Plan", exact=True).click()
                wish = "chart the population of the continents in millions"
                await page.get_by_label("What shall your apps do?").fill(wish)
                await page.get_by_role("button", name="Make a plan").click()
                lines = page.locator("li.line")
                await lines.nth(2).wait_for()
                assert await lines.locator(".chip").all_inner_texts() == ["certain"] * 3
                await page.get_by_role("button", name="Run all").click()
                await lines.nth(2).locator(".chip-done").wait_for()
                await page.screenshot(path=shot(tmp_path, "plan"))
            window = await window_of(browser, made, "column chart")
            await shows(window, "Title", "Continents Population in Millions")
            assert list((await values_in(window)).values()) == [
                "4600",
                "1300",
                "740",
                "580",
                "430",
                "0",
                "40",
            ]
            await window.get_by_role("img", name="The chart").wait_for()
            await window.screenshot(path=shot(tmp_path, "chart"))

    asyncio.run(test())


def test_a_picture_that_comes_of_a_line_is_shown_and_the_window_is_found(tmp_path: Path) -> None:
    async def test() -> None:
        async with with_apps([f"{CONTINENTS}\nshow column chart"], tmp_path, "chart") as (made, address):
            id = await begun(made, "show me the continents", tmp_path)
            plan = await run_all(made.broker.plans, id)
            (value,) = plan["lines"][3]["run"]["values"]
            got = await ask(address, f"/v1/plans/{id}/values/{value['handle']}")
            assert got.headers["content-type"] == "image/png"
            assert got.headers["content-disposition"] == "attachment"
            refused = await ask(address, f"/v1/plans/{id}/values/0123456789ab")
            assert (refused.status, "No line of this plan gave" in refused.text) == (404, True)
            async with chromium() as browser, page_of(browser, address) as page:
                await page.goto(f"{address}/#plan={id}")
                picture = page.get_by_role("img", name="a picture that came of this line")
                await picture.wait_for()
                assert (
                    await picture.evaluate("async (image) => (await image.decode(), image.naturalWidth)")
                    > 300
                )
                async with page.expect_download() as saving:
                    await page.get_by_role("button", name=re.compile("^Save ")).click()
                assert Path(await (await saving.value).path()).read_bytes().startswith(b"\x89PNG")
                async with page.expect_popup() as opening:
                    await page.get_by_role("link", name="Show its window").click()
                window = await opening.value
                await shows(window, "Title", "Continents Population in Millions")
                await page.screenshot(path=shot(tmp_path, "plan-picture"))

    asyncio.run(test())


def test_an_app_is_installed_opened_and_removed_on_the_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with with_apps([], tmp_path) as (made, address), chromium() as browser:
            refused = await ask(address, "/api/apps/install", {"app": "paint"})
            assert (refused.status, "No app 'paint' is in the box" in refused.text) == (400, True)
            async with page_of(browser, address) as page:
                await page.get_by_role("link", name="Apps", exact=True).click()
                box = page.get_by_label("In the box")
                await box.get_by_role("button", name="Install drawing").click()
                app = page.get_by_role("article", name="Drawing")
                await app.get_by_role("button", name="Open a window").click()
                async with page.expect_popup() as opening:
                    await app.get_by_role("link", name=re.compile("^Show drawing-")).click()
                await (await opening.value).get_by_role("radio", name="Rectangle").wait_for()
                assert await box.get_by_role("button").count() == 3
                await page.screenshot(path=shot(tmp_path, "apps"))
                await app.get_by_role("button", name="Remove Drawing").click()
                await box.get_by_role("button", name="Install drawing").wait_for()
                assert "drawing" not in made.broker.apps.book.apps

    asyncio.run(test())


def test_a_weak_line_is_chosen_by_hand_and_the_gate_is_answered_in_the_page(tmp_path: Path) -> None:
    reply = "start email application\nplease jot [hello] down\nsend email"

    async def test() -> None:
        async with with_apps([reply], tmp_path, "email") as (made, address), chromium() as browser:
            id = await begun(made, "a mail", tmp_path)
            async with page_of(browser, address) as page:
                await page.goto(f"{address}/#plan={id}")
                second, third = page.locator("li.line").nth(1), page.locator("li.line").nth(2)
                await second.get_by_text("no such action").or_(second.get_by_text("not certain")).wait_for()
                await second.get_by_role("button", name="Edit").click()
                await second.get_by_label("The line").fill("append email body with [hello]")
                await second.get_by_role("button", name="Save").click()
                await second.get_by_text("certain", exact=True).wait_for()
                await page.get_by_role("button", name="Run all").click()
                await third.get_by_role("group", name=re.compile("Permission")).wait_for()
                await page.screenshot(path=shot(tmp_path, "plan-gate"))
                await third.get_by_role("button", name="Deny").click()
                await third.locator(".chip-denied").wait_for()
                await page.get_by_text("It stopped: “send email” denied").wait_for()
                await page.get_by_role("button", name="Edit as text").click()
                await page.get_by_text("As the model wrote it").wait_for()
            window = await window_of(browser, made, "email")
            await shows(window, "Body", "hello")

    asyncio.run(test())


def test_a_program_that_waits_is_let_in_by_a_click(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(tmp=tmp_path) as made, served(made, tmp_path) as address, chromium() as browser:
            path = foreign(tmp_path)
            await ask(address, "/capability", launch_form(path), authorization="")
            async with page_of(browser, address) as page:
                await page.get_by_text("email wants to register with Textor.").wait_for()
                await page.get_by_role("link", name="Look at it").click()
                waits = page.get_by_role("article", name="email waits")
                await waits.get_by_text(str(path)).wait_for()
                await page.screenshot(path=shot(tmp_path, "apps-waiting"))
                await waits.get_by_role("button", name="Let it register").click()
                await page.get_by_role("button", name="Open a window").click()
                await page.get_by_text("runs", exact=True).wait_for()
                await page.screenshot(path=shot(tmp_path, "apps"))
            assert list(made.broker.apps.book.apps) == ["email"]

    asyncio.run(test())


# -- two apps, and a mail server --------------------------------------------------------------


class Letters(list[Any]):
    """What a mail server received."""

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"


@asynccontextmanager
async def mail_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Letters]:
    from aiosmtpd.smtp import SMTP

    letters = Letters()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(letters), "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1])
    for name, value in {
        "HOST": "127.0.0.1",
        "PORT": port,
        "SECURITY": "none",
        "SENDER": "a@example.org",
    }.items():
        monkeypatch.setenv(f"TEXTOR_APPS_EMAIL_{name}", value)
    try:
        yield letters
    finally:
        server.close()
        await server.wait_closed()


def test_one_request_drives_two_apps_and_the_mail_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T6 besides: a second recipient stays a second one, and the numbers are what was written."""
    series = "[Profit: net=-5:Cost=1e3:Sales=4,600]"
    reply = f"""\
start column chart application
set column chart title to [Sales]
add column chart series {series}
save column chart as [sales.png]
start email application
add recipient email address [bob@example.com]
add recipient email address [carol@example.com]
set email subject to [Sales]
append email body with [Hello, here they are.]
attach file [sales.png] to email
send email"""

    async def test() -> None:
        async with (
            mail_server(monkeypatch) as letters,
            with_apps([reply], tmp_path, "chart", "email") as (made, _),
        ):
            plans = made.broker.plans
            id = await begun(made, "chart the sales and mail it to bob and carol", tmp_path)
            await plans.run(id)
            last = (await plan_json(plans, id))["lines"][-1]["id"]
            while not any(a.state == "asked" for a in (await plans.draft(id)).runs_of(last)):
                await plans.wait(id, (await plans.draft(id)).seq)
            assert letters == []  # sending asks
            await plans.answer(id, last, True)
            await plans.finished(id)
            plan = await plan_json(plans, id)
            assert [line["run"]["state"] for line in plan["lines"]] == ["done"] * 11
            (letter,) = letters
            assert letter["To"] == "bob@example.com, carol@example.com"
            (picture,) = letter.iter_attachments()
            assert picture.get_filename() == "sales.png"
            assert picture.get_content().startswith(b"\x89PNG")
            assert [v["media_type"] for v in plan["lines"][3]["run"]["values"]] == ["image/png"]

    asyncio.run(test())


# -- the model in the box ---------------------------------------------------------------------

DATA = models_folder().parent  # before a test names another


@pytest.mark.box
@pytest.mark.timeout(300)
def test_the_model_in_the_box_writes_a_valid_plan_under_grammar_and_the_window_opens(tmp_path: Path) -> None:
    if box_fetch.model_file(DATA) is None:
        pytest.skip("the model in the box was not fetched")

    async def test() -> None:
        async with with_apps([], tmp_path, "chart", "email") as (made, _), chromium() as browser:
            made._models.add(BoxModel(BOX, DATA))
            plans = made.broker.plans
            request = "chart the population of the continents in millions"
            id = await plans.create(request, workspace=tmp_path, model=BOX)
            await plans.written(id)
            plan = await plan_json(plans, id)
            assert plan["lines"]
            assert all(line["ready"] and line["exact"] for line in plan["lines"])
            assert plan["lines"][0]["capability"] == "column_chart.start"
            plan = await run_all(plans, id, [plan["lines"][0]["id"]])
            assert plan["lines"][0]["run"]["state"] == "done"
            window = await window_of(browser, made, "column chart")
            await window.get_by_label("Title").wait_for()

    asyncio.run(test())
