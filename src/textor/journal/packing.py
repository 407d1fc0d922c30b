"""An event as the journals keep it: plain columns and JSON bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from textor.errors import Fenced, JournalError
from textor.events import Body, Event, SessionCreated, decode, encode


class Packed(NamedTuple):
    """One event without its number. `time` in seconds since 1970 UTC, `data` JSON in UTF-8."""

    id: str
    kind: str
    version: int
    time: float
    data: bytes


def pack(event: Event) -> Packed:
    """Raises `JournalError` for what JSON or UTF-8 cannot hold (a lone surrogate, an object)."""
    try:
        event.id.encode()
        kind, version, data = encode(event.body)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise JournalError(
            f"The event {event.id!r} ({event.kind}) cannot be written as JSON: {error}.",
            "Clean its texts with textor.values.clean_text and keep to JSON's types.",
        ) from error
    return Packed(event.id, kind, version, event.time, data)


def unpack(where: str, seq: int, id: str, kind: str, version: int, time: float, data: bytes) -> Event:
    """The event that was packed. `where` names the session in the `JournalError` of a damaged one."""
    try:
        body: Body = decode(kind, version, data)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        raise JournalError(
            f"Event {seq} of session {where} ({kind}, version {version}) cannot be read: {error}.",
            "The journal was changed by something else than Textor, or an upcaster is missing.",
        ) from error
    return Event(body, id, time, seq)


def numbered(events: Sequence[Event], first: int) -> list[Event]:
    """The events with the numbers `first`, `first + 1`, …"""
    return [Event(e.body, e.id, e.time, seq) for seq, e in enumerate(events, first)]


def title_of(events: Sequence[Event]) -> str:
    """The title that the session was created with, "" without one."""
    return next((e.body.title for e in events if isinstance(e.body, SessionCreated)), "")


# -- the refusals that all journals share --------------------------------------------------


def no_session(session: str) -> JournalError:
    return JournalError(f"There is no session {session!r} in this journal.", "`textor sessions` lists them.")


def session_exists(session: str) -> JournalError:
    return JournalError(f"A session {session!r} exists already.", "Append to it, or take another id.")


def no_events(session: str) -> JournalError:
    return JournalError(f"The session {session!r} was to be made without events.", "Give at least one.")


def doubled(session: str, id: str) -> JournalError:
    return JournalError(
        f"The session {session!r} already holds an event with the id {id!r}.",
        "An event of the host is appended once; fold the journal again before going on.",
    )


def fenced(session: str, epoch: int) -> Fenced:
    return Fenced(
        f"Another host has taken the session {session!r} over; epoch {epoch} is past.",
        "This host stops here; the session goes on where it was claimed.",
    )


def closed() -> JournalError:
    return JournalError("The journal is closed.", "Open it again before appending.")
