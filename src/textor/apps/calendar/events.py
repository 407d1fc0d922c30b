"""What a calendar keeps: events, by the clock of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from textor.apps.calendar.repeat import checked, occurrences
from textor.apps.calendar.times import from_iso, iso
from textor.errors import TextorError


class Event(msgspec.Struct, kw_only=True):
    """One event. Times are "2026-07-12T14:00"; a whole day has 00:00, and `end` is its last day.

    `repeat` is a rule of iCalendar, "" for none; `without` the beginnings that are left out.
    """

    id: str
    title: str
    start: str
    end: str
    description: str = ""
    all_day: bool = False
    repeat: str = ""
    without: list[str] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if from_iso(self.end) < from_iso(self.start):
            raise ValueError("an event cannot end before it begins")
        if self.repeat:
            try:
                checked(self.repeat)
            except TextorError as error:
                raise ValueError(str(error)) from None

    def span(self) -> tuple[datetime, datetime]:
        """Its beginning and its end, the end of a whole day being the midnight behind it."""
        end = from_iso(self.end)
        return from_iso(self.start), end + timedelta(days=1) if self.all_day else end

    def told(self, start: datetime | None = None) -> str:
        """On one line: "2026-07-12 14:00-15:00 Dentist"."""
        begins, ends = self.span()
        start = start or begins
        if self.all_day:
            return f"{start:%Y-%m-%d} {self.title}"
        end = start + (ends - begins)
        until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
        return f"{start:%Y-%m-%d %H:%M}-{until} {self.title}"


def between(
    events: Iterable[Event], first: datetime, last: datetime
) -> Iterator[tuple[datetime, datetime, Event]]:
    """Beginning, end and event of all that happens from `first` to `last`, in order."""
    found = []
    for event in events:
        start, end = event.span()
        for begins in occurrences(start, end - start, event.repeat, event.without, first, last):
            found.append((begins, begins + (end - start), event))
    yield from sorted(found, key=lambda one: (one[0], one[2].title, one[2].id))


def occurrence(begins: datetime, ends: datetime, event: Event) -> dict[str, Any]:
    """One occurrence for the page."""
    return {
        "id": event.id,
        "title": event.title,
        "description": event.description,
        "start": iso(begins),
        "end": iso(ends),
        "all_day": event.all_day,
        "repeats": bool(event.repeat),
    }
