"""Collects the events of one `feed`: prose that came in many pieces becomes one event."""

from __future__ import annotations

from textor.dialects.port import ParseEvent, Prose


class Sink:
    """`prose` and `add` in the order of the text; `take` gives the events and begins anew."""

    def __init__(self) -> None:
        self._events: list[ParseEvent] = []
        self._prose: list[str] = []

    def prose(self, text: str) -> None:
        if text:
            self._prose.append(text)

    def add(self, event: ParseEvent) -> None:
        if self._prose:
            self._flush()
        self._events.append(event)

    def take(self) -> list[ParseEvent]:
        if self._prose:
            self._flush()
        events = self._events
        if events:
            self._events = []
        return events

    def _flush(self) -> None:
        self._events.append(Prose("".join(self._prose)))
        self._prose = []
