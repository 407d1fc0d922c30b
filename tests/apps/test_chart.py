"""The chart program: numbers as they are written, pictures, and the same chart by hand and by the AI."""

from __future__ import annotations

import asyncio
import base64
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from app_parts import needs_chromium, served, window
from hypothesis import example, given
from hypothesis import strategies as st

from textor.apps.chart.numbers import parse_number, parse_series
from textor.apps.chart.program import Chart, Series, app
from textor.apps.chart.svg import draw, ticks
from textor.apps.chart.table import parse_table
from textor.apps.files import files_folder
from textor.apps.store import Refused

CONTINENTS = (
    "Asia=4,600:Africa=1,300:Europe=740:North America=580:South America=430:Antarctica=0:Australia/Oceania=40"
)


# -- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-5", -5),
        ("−5", -5),
        ("+5", 5),
        ("1e3", 1000),
        ("2.5E-2", 0.025),
        ("4,600", 4600),
        ("1,234,567.5", 1234567.5),
        ("4,6", 4.6),
        ("4,60", 4.6),
        ("12,3456", 12.3456),
        ("1.234,56", 1234.56),
        ("1.234.567", 1234567),
        ("4.600", 4.6),
        ("1 234", 1234),
        ("1’234", 1234),
        (" 12 % ", 12),
        ("$4,600", 4600),
        ("-€2,50", -2.5),
        (".5", 0.5),
    ],
)
def test_a_number_is_read_as_it_is_meant(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize("text", ["", "x", "1,2,3", "1e", "--5", "nan", "inf", "1e999", "5 6", "4,6e"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Asia=4,600:Africa=1,300:Europe=740", [("Asia", 4600), ("Africa", 1300), ("Europe", 740)]),
        ("a=-5:b=1e3:c=4,600", [("a", -5), ("b", 1000), ("c", 4600)]),
        ("12:30=5:13:00=6", [("12:30", 5), ("13:00", 6)]),
        ("a=b=5:c=3", [("a=b", 5), ("c", 3)]),
        ("x=1=5", [("x=1", 5)]),
        ("a\\=1=2:b\\:c=3", [("a=1", 2), ("b:c", 3)]),
        ('"a=1:b"=2:c=3', [("a=1:b", 2), ("c", 3)]),
        ("a=1,b=2, c=3;d=4|e=5\nf=6", [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)]),
        ("a=2,5:b=1,300", [("a", 2.5), ("b", 1.3)]),
        ("1=4,2=5", [("1", 4), ("2", 5)]),
        ('{"Asia": 4600, "Africa": "1,300"}', [("Asia", 4600), ("Africa", 1300)]),
        ('[["a", 1], ["b", -2.5]]', [("a", 1), ("b", -2.5)]),
        ('[{"label": "a", "value": 1}]', [("a", 1)]),
        ("[3, 4]", [("1", 3), ("2", 4)]),
        ("[x]=5", [("[x]", 5)]),
    ],
)
def test_a_series_is_read(text: str, pairs: list[tuple[str, float]]) -> None:
    assert parse_series(text) == pairs


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("a", "'a' has no number behind a ="),
        ("a=1:b", "'b' has no number behind a ="),
        ("a=lots:b=1", "'a=lots' is no pair"),
        ("=5", "'=5' is no pair"),
        ("a=5x:b=1", "'a=5x' is no pair"),
        ("{}", "empty"),
        ('{"a": true}', "'True' is no number"),
        ('{"a": {"b": 1}}', "is no number"),
        ("a=" + "1," * 100_000, "no number"),
        ("=" * 100_000, "no number"),
    ],
)
def test_what_is_no_series_says_where(text: str, told: str) -> None:
    with pytest.raises(Refused) as raised:
        parse_series(text)
    assert told in str(raised.value)
    assert len(str(raised.value)) < 300


finite = st.floats(-1e300, 1e300)


def write_series(pairs: list[tuple[str, float]]) -> str:
    """The inverse of `parse_series`; labels that hold its signs are quoted."""
    return ":".join(f"{_quoted(label)}={value!r}" for label, value in pairs)


def _quoted(label: str) -> str:
    if label and label == label.strip() and not re.search(r'[\\:=;,|"\n{\[]', label):
        return label
    return '"' + re.sub(r'(["\\])', r"\\\1", label) + '"'


@given(st.lists(st.tuples(st.text(), finite), min_size=1))
def test_any_series_is_read_as_it_was_written(pairs: list[tuple[str, float]]) -> None:
    assert parse_series(write_series(pairs)) == pairs


@given(st.text(alphabet='ab=:;,1.5-e\\"[]{} \n'))
def test_any_text_is_a_series_or_refused(text: str) -> None:
    try:
        assert all(isinstance(value, float) for _, value in parse_series(text))
    except Refused as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "labels", "columns"),
    [
        ("Region,2023,2024\nAsia,1,2\nAfrica,,4", ["Asia", "Africa"], {"2023": [1, None], "2024": [2, 4]}),
        ('Region,n\n"Asia, all","4,600"', ["Asia, all"], {"n": [4600]}),
        ("Region;n\nAsia;2,5", ["Asia"], {"n": [2.5]}),
        ("a\t1\nb\t2", ["a", "b"], {"": [1, 2]}),
        ('{"2023": {"a": 1}, "2024": {"b": 2}}', ["a", "b"], {"2023": [1, None], "2024": [None, 2]}),
        ('[{"m": "Jan", "x": 1, "y": 2}]', ["Jan"], {"x": [1], "y": [2]}),
        ("a=1:b=2", ["a", "b"], {"": [1, 2]}),
    ],
)
def test_a_table_is_read(text: str, labels: list[str], columns: dict[str, list[Any]]) -> None:
    table = parse_table(text)
    assert (table.labels, table.columns) == (labels, columns)


@pytest.mark.parametrize("text", ["", "x\ny", "a,b\nc,d", "a,b,b\n1,2,3", "a,b\nc,1,2", "[{]"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_table(text)


# -- pictures ----------------------------------------------------------------------------------


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def columns(svg: str) -> list[float]:
    """The heights of the columns."""
    return [float(h) for h in re.findall(r'<rect x="[^"]+" y="[^"]+" width="[^"]+" height="([^"]+)" rx', svg)]


def test_columns_stand_for_their_numbers() -> None:
    table = parse_table(CONTINENTS)
    svg = draw(Chart(title="Population", labels=table.labels, series=[Series("", table.columns[""])]))
    heights = columns(svg)
    assert [round(h / heights[0] * 4600, -1) for h in heights] == [4600, 1300, 740, 580, 430, 0, 40]
    assert {"Population", "Asia", "4,600", "Australia/Oceania", "5,000"} <= set(texts(svg))


@given(finite, finite)
@example(0.0, 2.225073858507e-311)
def test_ticks_are_round_and_cover_everything(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = ticks(low / 10, high / 10)
    slack = (max(high, 0) / 10 - min(low, 0) / 10) * 1e-8 + 1e-299
    assert found[0] <= low / 10 + slack and found[-1] >= high / 10 - slack
    assert 2 <= len(found) <= 12
    assert min(abs(t) for t in found) == 0


@given(
    st.sampled_from(["column", "line", "bar", "pie"]),
    st.lists(st.tuples(st.text(max_size=40), st.none() | finite), max_size=30),
    st.text(max_size=200),
)
@example("column", [("", 5e-324)], "")
def test_every_chart_is_a_picture(kind: Any, pairs: list[tuple[str, float | None]], title: str) -> None:
    values = [v for _, v in pairs]
    labels = [label for label, _ in pairs]
    both = [Series("a", values), Series(title, list(reversed(values)))]
    svg = draw(Chart(kind=kind, title=title, x_label=title, labels=labels, series=both))
    ET.fromstring(svg)
    assert "nan" not in svg and "inf" not in svg.replace("infinity", "")


# -- the calls ---------------------------------------------------------------------------------


def test_the_example_of_the_document() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("subject", "Continents Population in Millions")
            await site.say("series", CONTINENTS)
            assert app.state.series[0].values == [4600, 1300, 740, 580, 430, 0, 40]
            saved = await site.say("save", "continents.png")
            content = base64.b64decode(saved["image"]["data"])
            assert content.startswith(b"\x89PNG") and saved["image"]["type"] == "image/png"
            assert (files_folder() / "continents.png").read_bytes() == content
            assert (await site.say("save", "c.svg"))["image"]["type"] == "image/svg+xml"
            assert (await site.ok("/picture"))["image"]["name"] == "Continents Population in Millions.png"
            download = await site.ask("/app/picture.png")
            assert download.body.startswith(b"\x89PNG")
            assert (
                'filename="Continents Population in Millions.png"' in download.headers["content-disposition"]
            )

    asyncio.run(run())


def test_what_does_not_fit_keeps_the_chart() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("series", "a=-1:b=2")
            kept = app.store.snapshot()["state"]
            assert "is no pair" in await site.refusal("/series", {"Text": "a=x:b=1"})
            assert "comes twice" in await site.refusal("/series", {"Text": "a=1:a=2"})
            assert "negative" in await site.refusal("/kind", {"Text": "pie"})
            assert '"column"' in await site.refusal("/kind", {"Text": "tower"})
            many = ":".join(f"l{n}=1" for n in range(1001))
            assert "at most 1000 labels" in await site.refusal("/series", {"Text": many})
            for name in ("../x.png", "/tmp/x.png", "", "a\nb", "CON.png", ".hidden", "x" * 200):
                assert "no plain file name" in await site.refusal("/save", {"Text": name})
            edit = {"path": "labels", "value": ["a"], "base": None}
            assert "one value for each label" in await site.refusal("/app/edit", edit)
            assert app.store.snapshot()["state"] == kept

    asyncio.run(run())


def test_several_series_share_their_labels() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("series", "Jan=1:Feb=2")
            await site.ok("/series", {"data": "Feb=3:Mar=4", "name": "2024"})
            assert app.state.labels == ["Jan", "Feb", "Mar"]
            assert [(s.name, s.values) for s in app.state.series] == [
                ("Series 1", [1, 2, None]),
                ("2024", [None, 3, 4]),
            ]
            await site.ok("/series", {"data": "Jan=9", "name": "2024"})
            assert app.state.series[1].values == [9, None]
            await site.ok("/axes", {"x": "Month", "y": "Rain"})
            await site.say("series/remove", "series 1")
            assert [s.name for s in app.state.series] == ["2024"]
            assert "There is 2024" in await site.refusal("/series/remove", {"Text": "x"}, 404)
            assert (await site.ok("/chart"))["data"]["x_label"] == "Month"
            await site.say("data", '{"a": {"x": 1}}')
            await site.ok("/clear", {})
            assert app.state.series == []

    asyncio.run(run())


# -- by hand -----------------------------------------------------------------------------------


@needs_chromium
@pytest.mark.browser
def test_a_chart_by_hand_and_by_the_ai() -> None:
    from playwright.async_api import expect

    async def run() -> None:
        async with served(app) as site, window(site.port) as page:
            await site.say("subject", "Continents Population in Millions")
            await site.say("series", CONTINENTS)
            title = page.get_by_label("Title")
            await expect(title).to_have_value("Continents Population in Millions")
            await expect(page.get_by_label("Value of Asia")).to_have_value("4600")
            picture = page.get_by_role("img", name="The chart")
            await expect(picture).to_have_attribute("src", re.compile("Antarctica"))
            cell = page.get_by_label("Value of Asia")
            await cell.fill("4,700")
            await cell.press("Enter")
            await expect(page.get_by_label("Value of Africa")).to_be_focused()
            await expect(picture).to_have_attribute("src", re.compile("4%2C700"))
            await page.get_by_label("Value of Europe").fill("many")
            await page.get_by_label("Value of Europe").press("Tab")
            await expect(page.get_by_role("status")).to_contain_text("'many' is no number")
            await page.get_by_label("Value of Europe").fill("-1e2")
            await page.get_by_label("New label", exact=True).fill("Atlantis")
            await page.get_by_label("Value of the new label").fill("7")
            await page.get_by_label("Value of the new label").press("Enter")
            await expect(page.get_by_label("Value of Atlantis")).to_have_value("7")
            assert app.state.series[0].values == [4700, 1300, -100, 580, 430, 0, 40, 7]
            await page.get_by_label("Kind").select_option("bar")
            await expect(picture).to_have_attribute("src", re.compile("4%2C700"))
            async with page.expect_download() as download:
                await page.get_by_role("button", name="Save PNG").click()
            assert (await download.value).suggested_filename == "Continents Population in Millions.png"
            assert app.state.kind == "bar"

    asyncio.run(run())
