"""The drawing program: its forms, its pictures, and drawing by hand."""

from __future__ import annotations

import asyncio
import base64
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from app_parts import needs_chromium, served, window
from hypothesis import given
from hypothesis import strategies as st

from textor.apps.drawing.forms import LIMIT, parse_form
from textor.apps.drawing.program import app, picture_of
from textor.apps.drawing.shapes import Circle, Line, Rectangle, Text, colour, draw
from textor.apps.store import Refused

ENDS = ("x1", "y1", "x2", "y2")


@pytest.mark.parametrize(
    "text",
    [
        "X1=100, Y1=100, X2=100, Y2=300",
        "x1=100 y1=100 x2=100 y2=300",
        "Y2: 300; X2: 100; Y1: 100; X1: 100",
        "100, 100, 100, 300",
        "(100, 100) -> (100, 300)",
        "100,100 to 100,300",
        '{"X1": 100, "Y1": 100, "X2": 100, "Y2": 300}',
    ],
)
def test_a_line_is_read(text: str) -> None:
    assert parse_form(text, ENDS) == {"x1": 100, "y1": 100, "x2": 100, "y2": 300}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("X=90, Y=200, Text=a", "a"),
        ("X=90, Y=200, Text=Hello, world: a=b", "Hello, world: a=b"),
        ("Text=a, X=90, Y=200", "a"),
        ('Text="X=5, y=6", X=90, Y=200', "X=5, y=6"),
        ("X=90, Y=200, Text=solve y = 3", "solve y = 3"),
        ('{"x": 90, "y": "200", "text": "a, X=1"}', "a, X=1"),
        ("label: hi there, X: 90, Y: 200", "hi there"),
    ],
)
def test_a_text_is_read_whole(text: str, word: str) -> None:
    assert parse_form(text, ("x", "y"), ("text",), {"label": "text"}) == {"x": 90, "y": 200, "text": word}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "X1=a",
        "X1=1, X1=2",
        "X1=1e999",
        "X1=nan",
        "1, 2, 3, 4, 5",
        "{",
        '{"z": 1}',
        "X1=",
        "1" * 50_000 + "x",
    ],
)
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_form(text, ENDS)


@given(st.text(min_size=1), st.integers(-LIMIT, LIMIT), st.integers(-LIMIT, LIMIT))
def test_a_quoted_text_may_hold_anything(word: str, x: int, y: int) -> None:
    quoted = '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    found = parse_form(f"X={x}, Text={quoted}, Y={y}", ("x", "y"), ("text",))
    assert found == {"x": x, "y": y, "text": word}


@given(st.lists(st.builds(Text, id=st.text(), x=st.floats(-9, 9), y=st.just(1.0), text=st.text())), st.text())
def test_every_drawing_is_a_picture(shapes: list[Any], title: str) -> None:
    ET.fromstring(draw(shapes, title, 800, 600).replace("\ufffe", ""))


def test_colours() -> None:
    assert (colour("Red"), colour("#ABC"), colour("2a6b5a"), colour("none")) == (
        "#c0392b",
        "#aabbcc",
        "#2a6b5a",
        "none",
    )
    assert colour('red" onload="x') is None


# -- the calls ---------------------------------------------------------------------------------


def test_the_example_of_the_document() -> None:
    async def run() -> None:
        async with served(app) as site:
            told = await site.say("line", "X1=100, Y1=100, X2=100, Y2=300")
            assert told["text"] == "Added line1: line X1=100, Y1=100, X2=100, Y2=300."
            await site.say("text", "X=90, Y=200, Text=a")
            await site.say("colour", "red")
            await site.say("rectangle", "X=10, Y=20, Width=30, Height=40")
            await site.say("rectangle", "X1=40, Y1=60, X2=10, Y2=20")
            await site.say("circle", "x=200, y=200, r=50")
            line, text, one, other, circle = app.state.shapes
            assert isinstance(line, Line) and (line.x2, line.y2) == (100, 300)
            assert isinstance(text, Text) and (text.text, text.stroke) == ("a", "#24231f")
            assert isinstance(one, Rectangle) and isinstance(other, Rectangle)
            assert (other.x, other.y, other.width, other.height) == (one.x, one.y, one.width, one.height)
            assert isinstance(circle, Circle) and (circle.radius, circle.stroke) == (50, "#c0392b")
            tags = [child.tag.rpartition("}")[2] for child in ET.fromstring(picture_of(app.state))]
            assert tags == ["rect", "line", "text", "rect", "rect", "circle"]
            saved = await site.say("save", "drawing.png")
            assert base64.b64decode(saved["image"]["data"]).startswith(b"\x89PNG")
            assert (await site.ok("/picture"))["image"]["type"] == "image/png"

    asyncio.run(run())


def test_shapes_are_moved_and_deleted() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("line", "0, 0, 10, 10")
            await site.say("text", "X=1, Y=1, Text=Hello")
            await site.ok("/move", {"shape": "line 1", "to": "X=5, Y=-5"})
            line = app.state.shapes[0]
            assert isinstance(line, Line) and (line.x1, line.y1, line.x2, line.y2) == (5, -5, 15, 5)
            await site.say("delete", "hello")
            assert "There are line1" in await site.refusal("/delete", {"Text": "circle"}, 404)
            await site.say("line", "1, 1, 2, 2")
            assert (await site.ok("/drawing"))["text"].splitlines()[1].startswith("line2: line")
            await site.say("delete", "last")
            await site.say("delete", "line1")
            await site.say("line", "1, 1, 2, 2")
            await site.ok("/clear", {})
            assert app.state.shapes == []
            await site.ok("/app/undo", {})
            assert len(app.state.shapes) == 1

    asyncio.run(run())


def test_what_does_not_fit_keeps_the_drawing() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("line", "0, 0, 10, 10")
            kept = app.store.snapshot()["state"]
            assert "X1 is 'a'" in await site.refusal("/line", {"Text": "X1=a, Y1=1, X2=2, Y2=2"})
            assert "Y2 is missing" in await site.refusal("/line", {"Text": "X1=1, Y1=1, X2=2"})
            assert "Text is missing" in await site.refusal("/text", {"Text": "X=1, Y=1"})
            assert "radius must be above 0" in await site.refusal("/circle", {"Text": "1, 1, 0"})
            assert "is no colour" in await site.refusal("/colour", {"Text": "reddish"})
            assert "from -100,000" in await site.refusal("/shift", {"id": "line1", "x": 1e9, "y": 0})
            edit = {"path": "shapes.0.stroke", "value": "url(x)", "base": None}
            assert "cannot be edited" in await site.refusal("/app/edit", edit, 409)
            assert app.store.snapshot()["state"] == kept

    asyncio.run(run())


# -- by hand -----------------------------------------------------------------------------------


@needs_chromium
@pytest.mark.browser
def test_a_drawing_by_hand_and_by_the_ai() -> None:
    from playwright.async_api import expect

    async def run() -> None:
        async with served(app) as site, window(site.port) as page:
            paper = page.get_by_role("application", name="Paper")

            async def drag(*points: tuple[float, float]) -> None:
                box = await paper.bounding_box()
                assert box is not None
                scale = box["width"] / 800
                for n, (x, y) in enumerate(points):
                    await page.mouse.move(box["x"] + x * scale, box["y"] + y * scale)
                    if n == 0:
                        await page.mouse.down()
                await page.mouse.up()

            await page.get_by_role("textbox", name="Title").fill("A house")
            await page.get_by_role("radio", name="Rectangle").click()
            await expect(page.get_by_role("radio", name="Rectangle")).to_be_checked()
            await drag((300, 300), (400, 400), (500, 460))
            shapes = page.get_by_role("list", name="Shapes").get_by_role("listitem")
            await expect(shapes).to_have_count(1)
            (house,) = app.state.shapes
            assert isinstance(house, Rectangle)
            assert [round(v / 5) * 5 for v in (house.x, house.y, house.width, house.height)] == [
                300,
                300,
                200,
                160,
            ]
            await site.say("colour", "red")
            await site.say("line", "X1=280, Y1=300, X2=400, Y2=200")
            await site.say("line", "X1=400, Y1=200, X2=520, Y2=300")
            await expect(shapes).to_have_count(3)
            await page.get_by_role("radio", name="Text").click()
            await drag((350, 520))
            await page.get_by_label("Text", exact=True).fill("Home, sweet: home")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="text1: Home, sweet: home")).to_be_visible()
            await page.get_by_role("radio", name="Circle").click()
            await page.get_by_label("Inside").fill("#e3b505")
            await page.get_by_label("filled").check()
            await drag((650, 120), (680, 120), (700, 120))
            await expect(shapes).to_have_count(5)
            sun = app.state.shapes[-1]
            assert isinstance(sun, Circle) and sun.fill == "#e3b505" and 48 <= sun.radius <= 52
            # Selected, moved by the mouse and by the keys, deleted.
            await page.get_by_role("radio", name="Select").click()
            await drag((650, 120), (640, 130), (630, 140))
            await expect(page.get_by_role("button", name="circle1")).to_have_attribute("aria-current", "true")
            before = sun.x
            await paper.press("Shift+ArrowLeft")
            await expect(paper.locator("circle")).to_have_attribute("cx", str(int(before) - 30))
            moved = app.state.shapes[-1]
            assert isinstance(moved, Circle) and moved.x < before - 20 and moved.y > 135
            await site.say("delete", "line2")
            await expect(shapes).to_have_count(4)
            await page.get_by_role("button", name="Undo", exact=True).click()
            await expect(shapes).to_have_count(5)
            async with page.expect_download() as download:
                await page.get_by_role("button", name="Save SVG").click()
            assert (await download.value).suggested_filename == "A house.svg"

    asyncio.run(run())
