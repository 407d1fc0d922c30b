"""Repetition: words as a rule of iCalendar, and the days on which a rule falls."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import datetime, time, timedelta

from textor.apps.calendar.times import parse_when
from textor.apps.store import Refused

MOST = 2000  #: occurrences of one event in a span of time
_DAYS = {"mon": "MO", "tue": "TU", "wed": "WE", "thu": "TH", "fri": "FR", "sat": "SA", "sun": "SU"}
_UNITS = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_WORDS = {
    "daily": "DAILY",
    "weekly": "WEEKLY",
    "monthly": "MONTHLY",
    "yearly": "YEARLY",
    "annually": "YEARLY",
}
_NUMBERS = {"other": 2, "second": 2, "two": 2, "third": 3, "three": 3, "four": 4}
_FREQUENCY = re.compile(r"FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;|$)")


def parse_repeat(text: str, now: datetime) -> str:
    """A rule from words ("daily", "every 2 weeks", "every Monday and Friday until 2026-12-31", "monthly,
    5 times", "never") or from a rule ("FREQ=WEEKLY;BYDAY=MO"). "" for never. Raises `Refused`."""
    told = " ".join(text.lower().split()).strip(". ")
    if told in ("", "never", "none", "no", "once"):
        return ""
    if told.removeprefix("rrule:").startswith("freq="):
        return checked(told.removeprefix("rrule:").upper())
    end = ""
    if found := re.search(r",?\s*\b(?:until|till)\s+(.+)$", told):
        day = parse_when(found[1], now).start.date()
        end, told = f";UNTIL={datetime.combine(day, time(23, 59)):%Y%m%dT%H%M%S}", told[: found.start()]
    elif found := re.search(r",?\s*(?:for\s+)?(\d+) times$", told):
        end, told = f";COUNT={found[1]}", told[: found.start()]
    return checked(_rule(told, text) + end)


def _rule(told: str, text: str) -> str:
    if told in _WORDS:
        return f"FREQ={_WORDS[told]}"
    if told in ("every weekday", "weekdays", "every working day"):
        return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
    found = re.fullmatch(r"every (?:(\d+|\w+) )?(day|week|month|year)s?(?: on (.+))?", told)
    if found and (found[1] is None or found[1].isdigit() or found[1] in _NUMBERS):
        number = int(found[1]) if (found[1] or "").isdigit() else _NUMBERS.get(found[1] or "", 1)
        days = _days(found[3] or "")
        interval = f";INTERVAL={number}" if number != 1 else ""
        return f"FREQ={_UNITS[found[2]]}{interval}" + (f";BYDAY={days}" if days else "")
    days = _days(re.sub(r"^(every|weekly on|on) ", "", told))
    if not days:
        hint = "Write it such as every 2 weeks, every Monday and Friday, or monthly until 2027-01-31."
        raise Refused(f"{text[:80]!r} is no repetition that can be read.", hint)
    return f"FREQ=WEEKLY;BYDAY={days}"


def _days(told: str) -> str:
    """ "monday and friday" -> "MO,FR"; "" when anything else is in it."""
    names = [name for name in re.split(r"[,\s]+|\band\b", told) if name]
    found = [_DAYS.get(name[:3], "") for name in names if re.fullmatch(r"\w{3,}", name)]
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    known = all(any(day.startswith(name.removesuffix("s")) for day in full) for name in names)
    return ",".join(found) if found and known and all(found) and len(found) == len(names) else ""


def checked(rule: str) -> str:
    """The rule, if it is one that a calendar of days can have. Raises `Refused`."""
    from dateutil.rrule import rrulestr

    if not _FREQUENCY.search(rule):
        raise Refused(f"{rule[:80]!r} does not repeat by days, weeks, months or years.")
    if not _happens(rule):
        raise Refused(f"{rule[:80]!r} never happens.")
    try:
        rrulestr(rule, dtstart=datetime(2026, 1, 1))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise Refused(f"{rule[:80]!r} is no rule of iCalendar: {error}.") from None
    return rule


def _happens(rule: str) -> bool:
    """False for an interval of nothing and for a day that its months do not have: looking for those
    would go on to the year 9999."""
    parts = dict(part.partition("=")[::2] for part in rule.split(";"))
    if re.fullmatch("0+", parts.get("INTERVAL", "1")):
        return False
    months, days = (re.findall(r"-?\d+", parts.get(key, "")) for key in ("BYMONTH", "BYMONTHDAY"))
    if not (months and days):
        return True
    return any(
        abs(int(day)) <= monthrange(2024, int(m))[1] for m in months if 1 <= int(m) <= 12 for day in days
    )


def occurrences(
    start: datetime, length: timedelta, rule: str, without: list[str], first: datetime, last: datetime
) -> Iterator[datetime]:
    """The beginnings of the occurrences that touch the span from `first` to `last`, at most 2000."""
    if not rule:
        if start < last and max(start + length, start + timedelta(minutes=1)) > first:
            yield start
        return
    from dateutil.rrule import rrulestr

    left_out = set(without)
    for count, found in enumerate(rrulestr(rule, dtstart=start).xafter(first - length, inc=True)):
        if found >= last or count >= MOST:
            return
        if (
            found + max(length, timedelta(minutes=1)) > first
            and found.strftime("%Y-%m-%dT%H:%M") not in left_out
        ):
            yield found


def told(rule: str) -> str:
    """A rule in words, where it is one of the usual; else the rule."""
    if not rule:
        return ""
    parts = dict(part.partition("=")[::2] for part in rule.split(";"))
    unit = {v: k for k, v in _UNITS.items()}[parts["FREQ"]]
    number = parts.get("INTERVAL", "1")
    words = f"every {unit}" if number == "1" else f"every {number} {unit}s"
    if days := parts.get("BYDAY"):
        names = {v: k.capitalize() for k, v in _DAYS.items()}
        words += " on " + ", ".join(names.get(day, day) for day in days.split(","))
    if count := parts.get("COUNT"):
        words += f", {count} times"
    if until := parts.get("UNTIL"):
        words += f" until {until[:4]}-{until[4:6]}-{until[6:8]}"
    return words
