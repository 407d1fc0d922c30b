"""The frame that all pages share, and the picture actions of apps that draw."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from app_parts import needs_chromium, served, window

from textor.apps.files import files_folder
from textor.apps.pictures import picture_actions
from textor.apps.sdk import App, State


class Flag(State):
    colour: str = "red"
    points: int = 3


def svg(flag: Flag) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20">'
        f'<rect width="30" height="20" fill="{flag.colour}"/></svg>'
    )


def flags(page: Path | None = None) -> App[Flag]:
    app = App("flag", Flag, page=page, documents=lambda flag: f"The {flag.colour} one", draw=svg)

    @app.action("paint flag []")
    def paint(colour: str) -> None:
        "Give the flag another colour."
        app.state.colour = colour

    picture_actions(app, ["export the flag to []"])
    return app


def test_an_app_that_draws_saves_and_shows_in_two_lines() -> None:
    app = flags()
    save, show = app.capabilities()[2:]
    assert (save["Action"], save["Effects"], save["Examples"]) == (
        "save flag as []",
        ["write"],
        ["export the flag to []"],
    )
    assert save["Description"] == "save the flag as a picture, PNG or SVG by the ending of the name"
    assert (show["Action"], show["Method"], show["Returns"]) == ("show flag", 0, "image")

    async def run() -> None:
        async with served(app) as site:
            await site.say("paint", "green")
            told = await site.say("save", "mine.svg")
            assert (told["text"], told["image"]["type"]) == ("Saved as mine.svg.", "image/svg+xml")
            assert 'fill="green"' in (files_folder() / "mine.svg").read_text()
            await site.say("save", "mine")
            assert (files_folder() / "mine.png").read_bytes().startswith(b"\x89PNG")
            assert "no plain file name" in await site.refusal("/save", {"Text": "../x.png"})
            assert (await site.ok("/picture"))["image"]["name"] == "The green one.png"
            answer = await site.ask("/app/picture.svg")
            assert answer.headers["content-disposition"] == 'attachment; filename="The green one.svg"'

    asyncio.run(run())


@needs_chromium
@pytest.mark.browser
def test_an_app_without_a_page_has_the_whole_frame() -> None:
    """Its documents, its picture, and taking back what the AI did, as the apps in the box have."""
    from playwright.async_api import expect

    async def run() -> None:
        async with served(flags()) as site, window(site.port) as page:
            await expect(page.get_by_role("heading", name="Flag", exact=True)).to_be_visible()
            await site.say("paint", "green")
            await expect(page.get_by_label("Colour")).to_have_value("green")
            await page.get_by_role("img", name="The picture of this document").wait_for()
            await page.get_by_role("button", name="The green one").wait_for()
            await page.get_by_role("button", name="Undo the AI").click()
            await expect(page.get_by_label("Colour")).to_have_value("red")
            await page.get_by_role("button", name="New", exact=True).click()
            async with page.expect_download() as saving:
                await page.get_by_role("button", name="Save PNG").click()
            assert (await saving.value).suggested_filename == "The red one.png"

    asyncio.run(run())


def test_a_folder_fills_the_frame_or_replaces_it(tmp_path: Path) -> None:
    for name, text in (
        ("main.html", '<main id="own"></main>'),
        ("top.html", '<b id="bar"></b>'),
        ("aside.html", '<i id="below"></i>'),
        ("look.css", ""),
        ("does.js", ""),
    ):
        (tmp_path / name).write_text(text)

    async def run() -> None:
        async with served(flags(tmp_path)) as site:
            page = (await site.ask("/")).body.decode()
            order = ["/look.css", "/does.js", "<h1>Flag", 'id="bar"', "data-undo", "data-new", "Save PNG"]
            order += ["data-documents", 'id="below"', 'id="own"', "</html>"]
            places = [page.index(each) for each in order]
            assert places == sorted(places)
            assert (await site.ask("/does.js")).status == 200
            (tmp_path / "index.html").write_text("<p>all mine</p>")
            assert (await site.ask("/")).body == b"<p>all mine</p>"

    asyncio.run(run())
