"""The calendar program: times as they are written, repetition, files, and the page."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from app_parts import needs_chromium, served, window
from hypothesis import example, given
from hypothesis import strategies as st

from textor.apps.calendar import program
from textor.apps.calendar.ical import read_ical, write_ical
from textor.apps.calendar.program import app, form
from textor.apps.calendar.repeat import occurrences, parse_repeat, told
from textor.apps.calendar.times import parse_when
from textor.apps.files import files_folder
from textor.apps.store import Refused

NOW = datetime(2024, 7, 7, 13, 2)  # a Sunday


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of the tests: it stands still, in Berlin."""
    monkeypatch.setattr(program, "now", lambda: NOW)
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


# -- times -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("7/12/2024 2:00 PM", "2024-07-12 14:00", None),
        ("12.07.2024 14:00", "2024-07-12 14:00", None),
        ("2024-07-12T14:00", "2024-07-12 14:00", None),
        ("2024-07-12T14:00Z", "2024-07-12 16:00", None),
        ("July 12, 2024 at 2:00 PM", "2024-07-12 14:00", None),
        ("tomorrow 9 am", "2024-07-08 09:00", None),
        ("noon", "2024-07-07 12:00", None),
        ("next Monday 10:00 to 11:30", "2024-07-08 10:00", "2024-07-08 11:30"),
        ("Friday 2 - 3 PM", "2024-07-12 14:00", "2024-07-12 15:00"),
        ("7/12/2024 11 - 1 PM", "2024-07-12 11:00", "2024-07-12 13:00"),
        ("7/12/2024 14:00-15:30", "2024-07-12 14:00", "2024-07-12 15:30"),
        ("2024-07-12 14:00 for 2 hours", "2024-07-12 14:00", "2024-07-12 16:00"),
        ("10 PM to 2 AM", "2024-07-07 22:00", "2024-07-08 02:00"),
        ("from 2pm to 3pm on Friday", "2024-07-12 14:00", "2024-07-12 15:00"),
    ],
)
def test_times_are_read_as_they_are_meant(text: str, start: str, end: str | None) -> None:
    found = parse_when(text, NOW)
    assert found.start == datetime.fromisoformat(start)
    assert found.end == (datetime.fromisoformat(end) if end else None)
    assert not found.whole_day


def test_a_date_without_a_time_is_a_whole_day() -> None:
    found = parse_when("2024-07-12 to 2024-07-14", NOW)
    assert (found.start.day, found.end and found.end.day, found.whole_day) == (12, 14, True)
    assert parse_when("7/12/2024", NOW).whole_day


@pytest.mark.parametrize(
    "text", ["", "soon", "32/13/2024", "2024-07-14 to 2024-07-12", "1 to 2 to 3", "99999-01-01"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_when(text, NOW)


@given(st.text(alphabet="0123456789:/-. amptofr", max_size=25))
@example("0:0-30")
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        when = parse_when(text, NOW)
        assert when.end is None or when.end >= when.start
    except Refused as error:
        assert str(error)


# -- repetition --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        ("daily", "FREQ=DAILY", "every day"),
        ("every 2 weeks", "FREQ=WEEKLY;INTERVAL=2", "every 2 weeks"),
        ("every Monday and Friday", "FREQ=WEEKLY;BYDAY=MO,FR", "every week on Mon, Fri"),
        ("every weekday", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every week on Mon, Tue, Wed, Thu, Fri"),
        ("monthly until 2024-12-31", "FREQ=MONTHLY;UNTIL=20241231T235900", "every month until 2024-12-31"),
        ("weekly, 5 times", "FREQ=WEEKLY;COUNT=5", "every week, 5 times"),
        ("RRULE:FREQ=YEARLY", "FREQ=YEARLY", "every year"),
        ("never", "", ""),
    ],
)
def test_repetition_is_read(text: str, rule: str, words: str) -> None:
    assert parse_repeat(text, NOW) == rule
    assert told(rule) == words


@pytest.mark.parametrize(
    "text",
    ["sometimes", "FREQ=SECONDLY", "FREQ=DAILY;BYDAY=XX", "FREQ=DAILY;INTERVAL=0", "every blue Monday",
     "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"],
)  # fmt: skip
def test_what_does_not_repeat_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_repeat(text, NOW)


def test_occurrences_that_touch_a_span() -> None:
    start, hour = datetime(2024, 7, 1, 9), timedelta(hours=1)
    found = occurrences(
        start,
        hour,
        "FREQ=WEEKLY",
        ["2024-07-15T09:00"],
        datetime(2024, 7, 8, 9, 30),
        datetime(2024, 7, 29, 9),
    )
    assert [one.day for one in found] == [8, 22]
    endless = list(occurrences(start, hour, "FREQ=DAILY", [], start, datetime(2999, 1, 1)))
    assert len(endless) == 2000


# -- the calls ---------------------------------------------------------------------------------


def test_an_event_is_written_as_in_the_document_and_saved() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("from", "7/12/2024 2:00 PM")
            await site.say("title", "Dentist")
            await site.say("description", "Bring the card.")
            await site.say("description", "And: patience")
            assert (await site.ok("/save", {}))["text"] == "Saved: 2024-07-12 14:00-14:30 Dentist."
            (event,) = app.state.events
            assert (event.start, event.end) == ("2024-07-12T14:00", "2024-07-12T14:30")
            assert event.description == "Bring the card.\nAnd: patience"
            assert (form().title, form().id) == ("", "")
            listed = await site.ok("/events?day=7/12/2024")
            assert listed["text"] == "2024-07-12 14:00-14:30 Dentist"
            assert listed["data"][0]["id"] == event.id
            assert (await site.ok("/events?day=2024-07-13"))["text"].startswith("Nothing from 2024-07-13")

    asyncio.run(run())


def test_what_does_not_fit_keeps_the_form() -> None:
    async def run() -> None:
        async with served(app) as site:
            assert "no title" in await site.refusal("/save", {}, 409)
            await site.say("title", "Dentist")
            assert "no date" in await site.refusal("/save", {}, 409)
            assert "no beginning" in await site.refusal("/end", {"Text": "4 PM"}, 409)
            await site.say("from", "7/12/2024 2:00 PM")
            kept = form()
            assert "no date or time" in await site.refusal("/from", {"Text": "some day"})
            assert "before the event begins" in await site.refusal("/end", {"Text": "2024-07-11 10:00"})
            assert "no repetition" in await site.refusal("/repeat", {"Text": "often"})
            edit = {"path": "window.start", "value": "yesterday", "base": None}
            assert "does not take that" in await site.refusal("/app/edit", edit)
            assert "cannot be edited" in await site.refusal(
                "/app/edit", edit | {"path": "events.0.title"}, 409
            )
            assert form() == kept
            assert app.state.events == []

    asyncio.run(run())


def test_events_are_changed_and_deleted_by_their_titles() -> None:
    async def run() -> None:
        async with served(app) as site:
            for title, when in (
                ("Team meeting", "2024-07-08 9:00 to 10:00"),
                ("Teatime", "2024-07-09 16:00"),
            ):
                await site.say("from", when)
                await site.say("title", title)
                if title == "Team meeting":
                    await site.say("repeat", "every Monday")
                await site.ok("/save", {})
            assert "Several events" in await site.refusal("/change", {"Text": "tea"}, 409)
            assert "no event" in await site.refusal("/delete", {"Text": "dentist"}, 404)
            await site.say("change", "teatime")
            await site.say("end", "2 hours")
            await site.ok("/save", {})
            text = (await site.ok("/events?day=2024-07-08&days=14"))["text"]
            assert text.splitlines() == [
                "2024-07-08 09:00-10:00 Team meeting",
                "2024-07-09 16:00-18:00 Teatime",
                "2024-07-15 09:00-10:00 Team meeting",
            ]
            await site.ok("/delete", {"title": "Team meeting", "day": "7/15/2024"})
            assert "Team" not in (await site.ok("/events?day=2024-07-15"))["text"]
            assert "does not take place" in await site.refusal(
                "/delete", {"title": "Team meeting", "day": "7/16/2024"}, 404
            )
            await site.say("delete", "Team meeting")
            assert [e.title for e in app.state.events] == ["Teatime"]
            await site.ok("/app/undo", {})
            assert len(app.state.events) == 2
            assert "Teatime" in (await site.ok("/show", {"view": "week", "day": "2024-07-10"}))["text"]

    asyncio.run(run())


# -- files -------------------------------------------------------------------------------------

FILE = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Other//EN
BEGIN:VEVENT
UID:one@other
SUMMARY:Choir\\, evening
DTSTART;TZID=America/New_York:20240708T120000
DTEND;TZID=America/New_York:20240708T133000
RRULE:FREQ=WEEKLY;UNTIL=20240801T000000Z
EXDATE;TZID=America/New_York:20240715T120000
END:VEVENT
BEGIN:VEVENT
UID:one@other
RECURRENCE-ID;TZID=America/New_York:20240722T120000
SUMMARY:Choir\\, moved
DTSTART;TZID=America/New_York:20240723T120000
DURATION:PT1H
END:VEVENT
BEGIN:VEVENT
UID:two@other
SUMMARY:Fair
DTSTART;VALUE=DATE:20240712
DTEND;VALUE=DATE:20240715
END:VEVENT
BEGIN:VEVENT
UID:three@other
SUMMARY:Gone
STATUS:CANCELLED
DTSTART:20240712T090000Z
END:VEVENT
END:VCALENDAR
"""


def test_a_calendar_file_comes_in_and_goes_out() -> None:
    async def run() -> None:
        async with served(app) as site:
            data = base64.b64encode(FILE.replace("\n", "\r\n").encode()).decode()
            told = await site.ok("/import", {"name": "other.ics", "data": data})
            assert told["text"] == "3 events came in, 0 were brought up to date."
            listed = (await site.ok("/events?day=2024-07-01&days=40"))["text"].splitlines()
            assert listed == [
                "2024-07-08 18:00-19:30 Choir, evening",
                "2024-07-12 Fair",
                "2024-07-23 18:00-19:00 Choir, moved",
                "2024-07-29 18:00-19:30 Choir, evening",
            ]
            again = await site.ok("/import", {"name": "other.ics", "data": data})
            assert again["text"] == "0 events came in, 3 were brought up to date."
            await site.say("export", "mine")
            content = (files_folder() / "mine.ics").read_bytes()
            assert read_ical(content) == app.state.events
            assert (await site.say("import", "mine.ics"))["text"].startswith("0 events")

    asyncio.run(run())


@pytest.mark.parametrize(
    "content", ["", "hello", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR", "\0"]
)
def test_what_is_no_calendar_file_changes_nothing(content: str) -> None:
    async def run() -> None:
        async with served(app) as site:
            data = base64.b64encode(content.encode()).decode()
            await site.refusal("/import", {"name": "x.ics", "data": data or "!"})
            assert app.state.events == []
            await site.refusal("/import", {"Text": "nowhere.ics"}, 404)

    asyncio.run(run())


def test_an_empty_calendar_is_a_file_too() -> None:
    assert b"BEGIN:VCALENDAR" in write_ical([])
    assert read_ical(write_ical([])) == []


# -- by hand -----------------------------------------------------------------------------------


@needs_chromium
@pytest.mark.browser
def test_a_calendar_by_hand_and_by_the_ai() -> None:
    from playwright.async_api import expect

    async def run() -> None:
        async with served(app) as site, window(site.port) as page:
            hours = page.get_by_label("Hours of the day")
            await site.say("from", "2024-07-08 9:00 to 10:00")
            await expect(page.get_by_label("Begins")).to_have_value("2024-07-08T09:00")
            await site.say("title", "Team meeting")
            await site.say("repeat", "every Monday and Friday")
            await expect(page.get_by_label("Repeats")).to_have_value("FREQ=WEEKLY;BYDAY=MO,FR")
            await site.ok("/save", {})
            monday = page.get_by_role("button", name="Team meeting, 2024-07-08, 09:00 to 10:00")
            await expect(monday).to_be_visible()
            await expect(page.get_by_role("button", name="Team meeting, 2024-07-12")).to_be_visible()
            # By hand: a click into Wednesday at ten, a title, save.
            await hours.locator("[data-day='2024-07-10']").click(position={"x": 40, "y": 10.2 * 48})
            await expect(page.get_by_label("Begins")).to_have_value("2024-07-10T10:00")
            await page.get_by_label("Title").fill("Dentist")
            await page.get_by_label("Begins").fill("2024-07-10T10:30")
            await expect(page.get_by_label("Ends")).to_have_value("2024-07-10T11:00")
            await page.get_by_role("button", name="Save", exact=True).click()
            # the draft stands beside it until the saved one has come back
            await expect(page.locator(".event.draft")).to_have_count(0)
            saved = page.get_by_role("button", name="Dentist, 2024-07-10, 10:30 to 11:00")
            await expect(saved).to_have_count(1)
            assert [e.title for e in app.state.events] == ["Team meeting", "Dentist"]
            # Two at the same time stand side by side; a whole day above.
            await site.say("from", "2024-07-10 10:45 for 1 hour")
            await site.say("title", "Call")
            await site.ok("/save", {})
            await site.say("from", "2024-07-09 to 2024-07-11")
            await site.say("title", "Fair")
            await site.ok("/save", {})
            await expect(page.get_by_role("button", name="Fair, 2024-07-09, whole day")).to_have_count(3)
            dentist = await page.get_by_role("button", name="Dentist").bounding_box()
            call = await page.get_by_role("button", name="Call, ").bounding_box()
            assert dentist and call and dentist["x"] + dentist["width"] <= call["x"]
            # One day of the repeating event is deleted, then undone is not offered to the person.
            await page.get_by_role("button", name="Team meeting, 2024-07-12").click()
            await page.get_by_role("button", name="Delete this day").click()
            await expect(page.get_by_role("button", name="Team meeting, 2024-07-12")).to_have_count(0)
            await expect(monday).to_be_visible()
            await page.get_by_label("View").select_option("day")
            await expect(page.locator("[data-day]")).to_have_count(1)
            await page.get_by_role("button", name="Later").click()
            await page.get_by_label("View").select_option("week")
            async with page.expect_download() as download:
                await page.get_by_role("button", name="Export").click()
            assert (await download.value).suggested_filename == "calendar.ics"
            await monday.click()
            await expect(page.get_by_label("Title")).to_have_value("Team meeting")

    asyncio.run(run())
