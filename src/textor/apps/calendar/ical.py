"""iCalendar files, read and written by the library `icalendar`.

Times are those of this machine's clock: a time with a zone is converted when it is read, and what is
written has no zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from textor.apps.calendar.events import Event
from textor.apps.calendar.repeat import checked
from textor.apps.calendar.times import iso
from textor.apps.store import Refused


def write_ical(events: list[Event]) -> bytes:
    """The events as one calendar file."""
    import icalendar

    calendar = icalendar.Calendar()
    calendar.add("prodid", "-//Textor//Calendar//EN")
    calendar.add("version", "2.0")
    for event in events:
        part = icalendar.Event()
        part.add("uid", event.id)
        part.add("dtstamp", datetime.now(UTC))
        part.add("summary", event.title)
        if event.description:
            part.add("description", event.description)
        start, end = event.span()
        if event.all_day:
            part.add("dtstart", start.date())
            part.add("dtend", end.date())
        else:
            part.add("dtstart", start)
            part.add("dtend", end)
        if event.repeat:
            part.add("rrule", icalendar.vRecur.from_ical(event.repeat))
        for left_out in event.without:
            moment = datetime.fromisoformat(left_out)
            part.add("exdate", moment.date() if event.all_day else moment)
        calendar.add_component(part)
    return bytes(calendar.to_ical())


def read_ical(content: bytes) -> list[Event]:
    """The events of a calendar file; those that are cancelled are left out. Raises `Refused`."""
    import icalendar

    try:
        calendars = icalendar.Calendar.from_ical(content, multiple=True)
        parts: list[Any] = [part for calendar in calendars for part in calendar.walk("VEVENT")]
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        raise Refused(f"This is no iCalendar file: {error}.") from None
    if not calendars:
        raise Refused("This is no iCalendar file.")
    events: dict[str, Event] = {}
    moved: list[tuple[str, str]] = []
    for part in parts:
        if str(part.get("STATUS", "")).upper() == "CANCELLED":
            continue
        event = _event(part)
        if "RECURRENCE-ID" in part:  # one occurrence that was moved: an event of its own
            at = iso(_local(part["RECURRENCE-ID"].dt))
            moved.append((event.id, at))
            event.id, event.repeat = f"{event.id}-{at}", ""
        events[event.id] = event
    for id, at in moved:
        if id in events:
            events[id].without.append(at)
    return list(events.values())


def _event(part: Any) -> Event:
    try:
        began = part["DTSTART"].dt
        start = _local(began)
        all_day = not isinstance(began, datetime)
        if "DTEND" in part:
            end = _local(part["DTEND"].dt)
        else:
            end = start + part["DURATION"].dt if "DURATION" in part else start + timedelta(days=int(all_day))
        rule = part["RRULE"].to_ical().decode() if "RRULE" in part else ""
        if all_day:
            end = max(start, end - timedelta(days=1))
        return Event(
            id=str(part.get("UID", "")) or f"{iso(start)}-{part.get('SUMMARY', '')}",
            title=str(part.get("SUMMARY", "")) or "Untitled",
            description=str(part.get("DESCRIPTION", "")),
            start=iso(start),
            end=iso(max(start, end)),
            all_day=all_day,
            repeat=checked(_local_until(rule)) if rule else "",
            without=_left_out(part.get("EXDATE")),
        )
    except (KeyError, ValueError, AttributeError, TypeError, OverflowError) as error:
        name = str(part.get("SUMMARY", "without a title"))[:60]
        raise Refused(f"The event {name!r} of the file cannot be read: {error}.") from None


def _local(moment: date | datetime) -> datetime:
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    return moment.astimezone().replace(tzinfo=None) if moment.tzinfo else moment


def _local_until(rule: str) -> str:
    """A rule whose UNTIL is a time of this machine, as its beginning is."""

    def local(found: re.Match[str]) -> str:
        moment = datetime.strptime(found[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return f"UNTIL={moment.astimezone():%Y%m%dT%H%M%S}"

    return re.sub(r"UNTIL=(\d{8}T\d{6}Z)", local, rule)


def _left_out(found: Any) -> list[str]:
    lists = found if isinstance(found, list) else [found] if found is not None else []
    return [iso(_local(one.dt)) for each in lists for one in each.dts]
