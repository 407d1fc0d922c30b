"""What a scripted model or server says: replies, native calls, gates in the middle, faults.

Nothing here sleeps. Where a test needs "later", a `Gate` stands in the reply: the stand-in waits at
it until the test opens it, and the test can wait until the stand-in has reached it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from textor.messages import Usage


class Flag:
    """An event that may be set and awaited from any thread and any event loop."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def set(self) -> None:
        with self._lock:
            self._event.set()
            waiters, self._waiters = self._waiters, []
        for loop, future in waiters:
            try:
                loop.call_soon_threadsafe(_resolve, future)
            except RuntimeError:  # its loop was closed: nobody waits there any more
                continue

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        with self._lock:
            if self._event.is_set():
                return
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._waiters.append((loop, future))
        await future

    def wait_blocking(self, seconds: float = 30.0) -> None:
        """Wait without an event loop. Raises `TimeoutError` after `seconds`."""
        if not self._event.wait(seconds):
            raise TimeoutError(f"The flag was not set within {seconds:g} seconds.")


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Gate:
    """A place in a reply where the stand-in waits until `open()` is called."""

    def __init__(self) -> None:
        self.reached = Flag()  #: set when the stand-in waits here
        self._opened = Flag()

    def open(self) -> None:
        self._opened.set()

    async def passed(self) -> None:
        """Wait here; for stand-ins."""
        self.reached.set()
        await self._opened.wait()


@dataclass(frozen=True)
class Call:
    """A native function call. `arguments` is an object, or the JSON text exactly as sent."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""  #: empty: "call_1", "call_2", … in order

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """One scripted reply.

    It is sent in pieces of `chunk` characters (0: each text and each call at once): the reasoning,
    the text, then the calls. `gates` maps a number of characters of `text` to a `Gate` that is
    waited at before more is sent. `cut` is the number of characters of `text` after which the
    connection breaks. `finish` is the finish reason: empty means "tool_calls" or "stop", None
    means that none is sent. `usage` None is counted by the stand-in; `usage_sent` False sends none.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    chunk: int = 8
    gates: Mapping[int, Gate] = field(default_factory=dict)
    cut: int | None = None
    finish: str | None = ""
    usage: Usage | None = None
    usage_sent: bool = True

    @property
    def reason(self) -> str | None:
        """The finish reason as it is sent."""
        if self.finish == "":
            return "tool_calls" if self.calls else "stop"
        return self.finish

    def text_pieces(self) -> Iterator[str | Gate | None]:
        """The text in pieces, the gates between them, and None where the connection breaks."""
        end = len(self.text) if self.cut is None else min(self.cut, len(self.text))
        at, gates = 0, sorted(self.gates.items())
        while True:
            while gates and gates[0][0] <= at:
                yield gates.pop(0)[1]
            if at >= end:
                break
            step = min(at + self.chunk if self.chunk > 0 else end, end, gates[0][0] if gates else end)
            yield self.text[at:step]
            at = step
        if self.cut is not None:
            yield None


def pieces(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of `size` characters; 0 means all at once."""
    if size <= 0:
        if text:
            yield text
        return
    for at in range(0, len(text), size):
        yield text[at : at + size]
