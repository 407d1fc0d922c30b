"""The calendar program: what it keeps and what it can do.

The events are one document that all windows share. What is being written is a form that belongs to
one process: the AI and the person fill it in together, and `save` makes it an event.
"""

from __future__ import annotations

import base64
import binascii
import os
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from textor.apps.calendar.events import Event, between, occurrence
from textor.apps.calendar.ical import read_ical, write_ical
from textor.apps.calendar.repeat import parse_repeat, told
from textor.apps.calendar.times import USUAL, from_iso, iso, parse_duration, parse_when
from textor.apps.files import find_file, save_path
from textor.apps.sdk import App, Refused, Result, State
from textor.apps.store import write_atomically

SPAN = 400  #: days that can be asked for at once


class Calendar(State):
    """All events."""

    events: list[Event] = msgspec.field(default_factory=list)


class Form(msgspec.Struct):
    """The event that is being written (`id` "" for a new one), and the days that are shown."""

    view: Literal["day", "week"] = "week"
    shown: str = ""
    id: str = ""
    at: str = ""  #: the occurrence that was chosen
    title: str = ""
    description: str = ""
    start: str = ""
    end: str = ""
    all_day: bool = False
    repeat: str = ""
    repeat_told: str = ""

    def __post_init__(self) -> None:
        for moment in (self.start, self.end, self.shown and f"{self.shown}T00:00"):
            if moment:
                from_iso(moment)


def now() -> datetime:
    return datetime.now()


def fresh() -> Form:
    return Form(shown=f"{now():%Y-%m-%d}")


app: App[Calendar] = App(
    "calendar",
    Calendar,
    title="Calendar",
    page=Path(__file__).parent / "page",
    window=fresh,
    may_edit=lambda calendar, field: field == "window",
    purpose="open the calendar with an empty event",
)


def form() -> Form:
    window = app.store.window
    assert isinstance(window, Form)
    return window


# -- the form ----------------------------------------------------------------------------------


@app.action(
    "set calendar event title to []",
    route="title",
    repeat="idempotent",
    examples=["name the appointment []", "the meeting is called []"],
)
def set_title(text: str) -> None:
    """set the title of the event that is being written"""
    form().title = " ".join(text.split())


@app.action(
    "append calendar event description with []",
    route="description",
    examples=["add the note [] to the appointment"],
)
def append_description(text: str) -> None:
    """append a line to the description of the event that is being written"""
    form().description = f"{form().description}\n{text}" if form().description else text


@app.action(
    "set calendar event date and time to []",
    route="from",
    repeat="idempotent",
    examples=["the appointment is at []", "when: []"],
)
def set_from(text: str) -> str:
    """set when the event begins, and ends where that is said: 7/12/2024 2:00 PM, or tomorrow 9 to 10 am"""
    window = form()
    when = parse_when(text, now(), _day())
    length = _length()
    if when.whole_day:
        end = when.end or when.start
    elif window.all_day or not window.start:
        end = when.end or when.start + USUAL
    else:
        end = when.end or when.start + length
    window.start, window.end, window.all_day = iso(when.start), iso(end), when.whole_day
    window.shown = window.start[:10]
    return f"It begins {_shown(when.start, when.whole_day)}."


@app.action(
    "set calendar event end to []",
    route="end",
    repeat="idempotent",
    examples=["the appointment lasts []", "the meeting ends at []"],
)
def set_end(text: str) -> str:
    """set when the event ends, or how long it is: 4 PM, or 45 minutes"""
    window = form()
    if not window.start:
        raise Refused("The event has no beginning yet.", "Set its date and time first.", status=409)
    start = from_iso(window.start)
    length = parse_duration(text.strip().removeprefix("for "))
    if length is not None:
        end = start + length
    else:
        end = parse_when(text, now(), start.date()).end or parse_when(text, now(), start.date()).start
    if end < start:
        raise Refused(f"{_shown(end)} is before the event begins, {_shown(start)}.")
    window.end = iso(end)
    return f"It ends {_shown(end, window.all_day)}."


@app.action(
    "set calendar event repetition to []",
    route="repeat",
    repeat="idempotent",
    examples=["repeat the appointment []", "the meeting takes place []"],
)
def set_repeat(text: str) -> str:
    """set how the event repeats: daily, every 2 weeks, every Monday until 2027-01-31, never"""
    form().repeat = parse_repeat(text, now())
    form().repeat_told = told(form().repeat)
    return f"It repeats {form().repeat_told}." if form().repeat else "It does not repeat."


@app.action(
    "save calendar event",
    route="save",
    repeat="idempotent",
    examples=["add the appointment to the calendar", "keep the event"],
)
def save() -> str:
    """put the event that is being written into the calendar"""
    window = form()
    if not window.title:
        raise Refused("The event has no title.", status=409)
    if not window.start:
        raise Refused("The event has no date.", status=409)
    if window.all_day:  # the page lets a time stand beside it
        window.start, window.end = (f"{one[:10]}T00:00" for one in (window.start, window.end or window.start))
    known = next((event for event in app.state.events if event.id == window.id), None)
    try:
        event = Event(
            id=window.id or f"{os.urandom(8).hex()}@textor",
            title=window.title,
            start=window.start,
            end=window.end or window.start,
            description=window.description,
            all_day=window.all_day,
            repeat=window.repeat,
            without=known.without if known else [],
        )
    except ValueError as error:
        raise Refused(f"The event does not fit: {error}.") from None
    app.state.events = [e for e in app.state.events if e.id != event.id] + [event]
    _clear(shown=event.start[:10])
    return f"Saved: {event.told()}" + (f", {told(event.repeat)}." if event.repeat else ".")


@app.action("begin a new calendar event", route="new", examples=["create calendar event"])
def new(start: str = "", end: str = "", all_day: bool = False) -> None:
    """empty the form for another event"""
    _clear()
    if start:
        begins = from_iso(start)
        form().start, form().all_day = iso(begins), all_day
        form().end = iso(from_iso(end) if end else begins if all_day else begins + USUAL)


def _clear(shown: str = "") -> None:
    app.store.window = Form(view=form().view, shown=shown or form().shown)


def _day() -> date | None:
    return from_iso(form().start).date() if form().start else None


def _length() -> timedelta:
    window = form()
    return from_iso(window.end) - from_iso(window.start) if window.start and window.end else USUAL


def _shown(moment: datetime, whole_day: bool = False) -> str:
    return f"{moment:%A, %Y-%m-%d}" if whole_day else f"{moment:%A, %Y-%m-%d %H:%M}"


# -- the events --------------------------------------------------------------------------------


@app.action(
    "change calendar event []",
    route="change",
    repeat="idempotent",
    examples=["edit the appointment []"],
)
def change(title: str) -> str:
    """take a kept event into the form by its title, to change and save it"""
    event = _find(title)
    _load(event, event.start)
    return f"In the form: {event.told()}."


@app.action(
    "delete calendar event []",
    route="delete",
    effects=["write"],
    repeat="idempotent",
    examples=["cancel the appointment []", "remove [] from the calendar"],
)
def delete(title: str, day: str = "") -> str:
    """delete a kept event by its title; with a day, only that day of a repeating one"""
    event = _find(title)
    if day and event.repeat:
        wanted = parse_when(day, now()).start.replace(hour=0, minute=0)
        found = [b for b, _, _ in between([event], wanted, wanted + timedelta(days=1))]
        if not found:
            raise Refused(f"{event.title} does not take place on {wanted:%Y-%m-%d}.", status=404)
        return _remove(event, iso(found[0]))
    return _remove(event, "")


@app.action(
    "show calendar [] of []",
    route="show",
    repeat="idempotent",
    examples=["show the [] of [] in the calendar"],
)
def show(view: Literal["day", "week"], day: str = "today") -> str:
    """show a day or a week of the calendar"""
    form().view, form().shown = view, f"{parse_when(day, now()).start:%Y-%m-%d}"
    return read(form().shown, form().view)


@app.action(
    "list calendar events of []",
    route="events",
    method="GET",
    examples=["what is in the calendar on []", "read my appointments of []"],
)
def list_events(day: str = "today", days: int = 1) -> Result:
    """the events of a day, or of several days from it"""
    first = parse_when(day.removeprefix("the "), now()).start.replace(hour=0, minute=0)
    return _listed(first, days)


def read(day: str, view: str) -> str:
    first = datetime.fromisoformat(day)
    if view == "week":
        first -= timedelta(days=first.weekday())
    return _listed(first, 7 if view == "week" else 1).text


def _listed(first: datetime, days: int) -> Result:
    last = first + timedelta(days=max(1, min(days, SPAN)))
    found = list(between(app.state.events, first, last))
    text = "\n".join(event.told(begins) for begins, _, event in found)
    data = [occurrence(*one) for one in found]
    return Result(text or f"Nothing from {first:%Y-%m-%d} to {last - timedelta(days=1):%Y-%m-%d}.", data)


def _find(title: str) -> Event:
    """The event that is meant; raises `Refused` when none or several may be."""
    wanted = " ".join(title.lower().split())
    events = app.state.events
    for fits in (lambda e: e.title.lower() == wanted, lambda e: wanted in e.title.lower()):
        found = [event for event in events if wanted and fits(event)]
        if len(found) == 1:
            return found[0]
        if found:
            names = "; ".join(event.told() for event in found[:5])
            raise Refused(f"Several events may be meant: {names}.", "Take the page.", status=409)
    raise Refused(f"The calendar has no event {title[:80]!r}.", status=404)


def _load(event: Event, at: str) -> None:
    app.store.window = Form(
        view=form().view,
        shown=at[:10],
        id=event.id,
        at=at,
        title=event.title,
        description=event.description,
        start=event.start,
        end=event.end,
        all_day=event.all_day,
        repeat=event.repeat,
        repeat_told=told(event.repeat),
    )


def _remove(event: Event, at: str) -> str:
    if at and event.repeat:
        event.without.append(at)
        what = f"{event.title} on {at[:10]}"
    else:
        app.state.events = [e for e in app.state.events if e.id != event.id]
        what = event.told()
    if form().id == event.id:
        _clear()
    return f"Deleted: {what}."


# -- what only the page uses ---------------------------------------------------------------------


def _by_id(id: str) -> Event:
    for event in app.state.events:
        if event.id == id:
            return event
    raise Refused("This event is no longer in the calendar.", status=404)


@app.action("the events from [] to []", route="between", method="GET", hidden=True)
def events_between(first: str, last: str) -> list[Any]:
    """all occurrences between two times"""
    begin, end = from_iso(first), from_iso(last)
    return [
        occurrence(*one) for one in between(app.state.events, begin, min(end, begin + timedelta(days=SPAN)))
    ]


@app.action("choose event [] at []", route="choose", hidden=True)
def choose(id: str, at: str) -> None:
    """take an event into the form"""
    _load(_by_id(id), at)


@app.action("remove event [] at []", route="remove", hidden=True)
def remove(id: str, at: str = "") -> str:
    """delete an event, or one occurrence of it"""
    return _remove(_by_id(id), at)


# -- files -------------------------------------------------------------------------------------


@app.action(
    "export calendar as []",
    route="export",
    effects=["write"],
    repeat="idempotent",
    examples=["save the calendar as the file []"],
)
def export_calendar(name: str = "calendar.ics") -> Result:
    """save all events as an iCalendar file"""
    path = save_path(name, ("ics",))
    content = write_ical(app.state.events)
    write_atomically(path, content)
    return Result(
        f"Saved {len(app.state.events)} events as {path.name}.", {"path": str(path), "ics": content.decode()}
    )


@app.action(
    "import calendar from []",
    route="import",
    effects=["read"],
    repeat="idempotent",
    examples=["read the calendar file []"],
    max_body=20_000_000,
)
def import_calendar(name: str, data: str = "") -> str:
    """take the events of an iCalendar file into the calendar; known ones are brought up to date

    The file is named as another app saved it, or by its whole path; or its content is given as base64.
    """
    try:
        content = base64.b64decode(data, validate=True) if data else find_file(name).read_bytes()
    except (binascii.Error, OSError) as error:
        raise Refused(f"{name[:100]!r} cannot be read: {error}.") from None
    events = read_ical(content)
    ids = {event.id for event in events}
    known = sum(event.id in ids for event in app.state.events)
    app.state.events = [event for event in app.state.events if event.id not in ids] + events
    return f"{len(events) - known} events came in, {known} were brought up to date."


app.example(
    "put a dentist appointment on July 12, 2024 at two in the afternoon into my calendar",
    "start calendar application",
    "set calendar event date and time to [7/12/2024 2:00 PM]",
    "set calendar event title to [Dentist]",
    "append calendar event description with [Bring the insurance card.]",
    "save calendar event",
)
app.example(
    "every Monday from nine to ten we have our team meeting, starting on 2026-03-02",
    "start calendar application",
    "set calendar event date and time to [2026-03-02 9:00 to 10:00]",
    "set calendar event title to [Team meeting]",
    "set calendar event repetition to [every Monday]",
    "save calendar event",
)
