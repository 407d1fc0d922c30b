"""Dates and times as people and models write them, in the clock of this machine.

`7/12/2024 2:00 PM` is July 12, `12.07.2024` as well (points put the day first), `2024-07-12 14:00`,
`tomorrow 9 am`, `next Monday 10:00 to 11:30`, `Friday 2 - 3 PM`, `2024-07-12 14:00 for 2 hours`.
A date without a time is a whole day.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import NamedTuple

from textor.apps.store import Refused

USUAL = timedelta(minutes=30)  #: the length of an event that names no end
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_RANGE = re.compile(r"\s+(?:to|until|till|-)\s+|\s*[–—]\s*", re.IGNORECASE)
_DURATION = re.compile(
    r"(?:for\s+)?(\d+(?:\.\d+)?)\s*(minutes?|mins?|m|hours?|hrs?|h|days?|d)", re.IGNORECASE
)
_FOR = re.compile(r"\s+for\s+(.+)$", re.IGNORECASE)
_HALF = re.compile(r"(am|pm|a\.m\.|p\.m\.)\s*$", re.IGNORECASE)
_BARE_HOUR = re.compile(r"(^|[\s,])(\d{1,2})(:\d{2})?$")


class When(NamedTuple):
    """`end` is None where none was said; `whole_day` where no time was."""

    start: datetime
    end: datetime | None
    whole_day: bool


def parse_when(text: str, now: datetime, day: date | None = None) -> When:
    """A point or a span of time. `day` is meant where only a time is said, by default today.

    Raises `Refused` for what cannot be read.
    """
    told = re.sub(r"(:\d{2}(?:\s*[ap]m)?)-(?=\d{1,2}:)", r"\1 - ", " ".join(text.split())).removeprefix(
        "from "
    )
    length = None
    if (found := _FOR.search(told)) and (length := parse_duration(found[1])) is not None:
        told = told[: found.start()]
    parts = _RANGE.split(told)
    if len(parts) > 2:
        raise Refused(f"{text[:80]!r} has more than a beginning and an end.")
    first = parts[0]
    if len(parts) == 2 and (half := _HALF.search(parts[1])) and _BARE_HOUR.search(first):
        first = _with_half(first, half[1], parts[1])
    day = day or now.date()
    if len(parts) == 2 and not _names_day(first, now):  # "2 pm to 3 pm on Friday"
        day = _point(parts[1], now, day)[0].date()
    start, whole_day = _point(first, now, day)
    end = start + length if length else None
    if len(parts) == 2:
        end, _ = _point(parts[1], now, start.date())
        if end <= start and not whole_day:
            end += timedelta(days=1)
    if end is not None and end < start:
        raise Refused(f"{text[:80]!r} ends before it begins.")
    if length and length < timedelta(days=1):
        whole_day = False
    return When(start, end, whole_day)


def parse_duration(text: str) -> timedelta | None:
    """`45 minutes`, `2 hours`, `1 day`; None where it is none."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) > 10_000:
        return None
    number, unit = float(found[1]), found[2][0].lower()
    return timedelta(minutes=number * {"m": 1, "h": 60, "d": 1440}[unit])


def _with_half(first: str, half: str, second: str) -> str:
    """`2` of "2 - 3 PM" as `2 PM`; of "11 - 1 PM" as `11 AM`."""
    begins, ends = (
        re.search(r"(\d{1,2})(?::\d{2})?\s*(?:[ap]\.?m\.?)?\s*$", t, re.IGNORECASE) for t in (first, second)
    )
    if begins and ends and int(begins[1]) % 12 > int(ends[1]) % 12:
        half = "am" if half[0].lower() == "p" else "pm"
    return f"{first} {half}"


def _point(text: str, now: datetime, day: date) -> tuple[datetime, bool]:
    """One point in time, and whether it is a day without a time."""
    from dateutil import parser

    plain = _absolute(text.lower(), now)
    day_first = bool(re.search(r"\b\d{1,2}\.\d{1,2}\.", plain))
    noon = datetime(day.year, day.month, day.day)
    try:
        found = parser.parse(plain, default=noon, dayfirst=day_first)
        other = parser.parse(plain, default=noon.replace(hour=11, minute=11), dayfirst=day_first)
        whole_day = found.hour != other.hour
        if found.tzinfo is not None:  # a zone may be none: 30 hours away
            found = found.astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError, TypeError):
        hint = "Write it such as 2026-07-12 14:00, or tomorrow 9 am."
        raise Refused(f"{text[:80]!r} is no date or time that can be read.", hint) from None
    if not 1900 <= found.year <= 2999:
        raise Refused(f"The year {found.year} is too far away.")
    return found.replace(second=0, microsecond=0), whole_day


def _names_day(text: str, now: datetime) -> bool:
    one, other = date(2001, 1, 1), date(2002, 2, 12)
    return _point(text, now, one)[0].date() == _point(text, now, other)[0].date()


def _absolute(text: str, now: datetime) -> str:
    """Words that only mean something today, as dates."""
    today = now.date()
    near = {"day after tomorrow": 2, "tomorrow": 1, "today": 0, "tonight": 0, "yesterday": -1}
    for word, days in near.items():
        text = re.sub(rf"\b{word}\b", f"{today + timedelta(days):%Y-%m-%d}", text)
    for number, name in enumerate(_DAYS):
        ahead = (number - today.weekday()) % 7 or 7
        text = re.sub(rf"\bnext {name}\b", f"{today + timedelta(ahead):%Y-%m-%d}", text)
    text = re.sub(r"\b(at|on)\b", " ", text)
    return re.sub(r"\bnoon\b", "12:00", re.sub(r"\bmidnight\b", "00:00", text)).strip()


def iso(moment: datetime) -> str:
    """How the calendar keeps a time: 2026-07-12T14:00."""
    return moment.strftime("%Y-%m-%dT%H:%M")


def from_iso(text: str) -> datetime:
    """The inverse of `iso`; raises `ValueError`."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None or not 1900 <= found.year <= 2999:
        raise ValueError(f"{text!r} is no time of the calendar")
    return found
