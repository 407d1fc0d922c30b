"""Reasoning that a server leaves in the text: `<think>…</think>` at the very start of a reply.

Only there: the same tag further on is text like any other. Chunk-invariant and linear.
"""

from __future__ import annotations

from collections.abc import Iterator

from textor.messages import ReasoningChunk, TextChunk

OPEN, CLOSE = "<think>", "</think>"


class Thinking:
    """Feed text, get text and reasoning; `end` gives what was held back."""

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, text: str) -> Iterator[TextChunk | ReasoningChunk]:
        if self._state == "text":
            yield TextChunk(text)
            return
        self._held += text
        if self._state == "start":
            begun = self._held.lstrip()
            if len(begun) < len(OPEN) and OPEN.startswith(begun):
                return  # it may still become the tag
            if not begun.startswith(OPEN):
                yield from self._plain()
                return
            self._state, self._held = "thinking", begun[len(OPEN) :]
        yield from self._thinking()

    def end(self) -> Iterator[TextChunk | ReasoningChunk]:
        if self._held:
            yield ReasoningChunk(self._held) if self._state == "thinking" else TextChunk(self._held)
        self._held = ""

    def _thinking(self) -> Iterator[TextChunk | ReasoningChunk]:
        at = self._held.find(CLOSE)
        if at >= 0:
            if at:
                yield ReasoningChunk(self._held[:at])
            self._held = self._held[at + len(CLOSE) :]
            if self._held:
                yield from self._plain()
            self._state, self._held = "text", ""
            return
        keep = next((n for n in range(len(CLOSE) - 1, 0, -1) if self._held.endswith(CLOSE[:n])), 0)
        sure, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        if sure:
            yield ReasoningChunk(sure)

    def _plain(self) -> Iterator[TextChunk | ReasoningChunk]:
        self._state, held, self._held = "text", self._held, ""
        yield TextChunk(held)
