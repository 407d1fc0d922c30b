"""The stream of one tab: one WebSocket that carries what happens in the session it shows.

The first frame is `{token, session, after}`; further frames `{session, after}` switch to another
session ("" to none). What comes back, a frame being one object or a list of them:

    {"type": "session", "session": ID, "head": N}   what follows is of this session
    {"type": "event", "event": {...}}               durable, `events.to_json`, in order
    {"type": "delta", "agent", "kind", "text", "action"}   decoration until the event arrives
    {"type": "error", "error": SENTENCE}            this session cannot be followed

A slow tab never holds a session back. Events wait in the journal, where they are anyway, until
the tab has taken those before. Deltas are merged while they wait, and dropped beyond a bound.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from textor.errors import TextorError
from textor.events import to_json
from textor.guard import holds_token
from textor.live import Delta, Hub

if TYPE_CHECKING:
    from textor.assembly import Machine
    from textor.session import Session

BAD_TOKEN = 4401  #: close codes, which the page knows
BAD_FRAME = 4400

EARLY = 8  #: new sessions whose first deltas are kept until a tab asks for them
EVENT_TEXT = 500_000  #: characters of events in the outbox, beyond which the journal is not read on
DELTA_TEXT = 250_000  #: characters of deltas in the outbox, beyond which further ones are dropped
FIRST_FRAME = 10.0  #: seconds in which a tab has to say who it is

#: Kinds of deltas that are pieces of one text; of the others a later one is a new thing.
_PIECES = ("text", "reasoning", "argument", "output")


class Frame(msgspec.Struct, frozen=True):
    """What a tab sends."""

    session: str = ""
    after: int = 0
    token: str = ""


class Early:
    """The first deltas of sessions that were just made: they come before the tab that made the
    session can ask for them."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._queues: OrderedDict[str, asyncio.Queue[Delta]] = OrderedDict()

    def expect(self, session: str) -> None:
        """Keep what comes of a session that is about to be made."""
        if session not in self._queues:
            self._queues[session] = self._hub.subscribe(session)
        if len(self._queues) > EARLY:
            self._hub.unsubscribe(*self._queues.popitem(last=False))

    def take(self, session: str) -> asyncio.Queue[Delta]:
        """The deltas of a session, to be given back to the hub."""
        return self._queues.pop(session, None) or self._hub.subscribe(session)


class Outbox:
    """What waits to be sent, in order: events as JSON already, deltas still to be merged."""

    def __init__(self) -> None:
        self._items: deque[str | dict[str, Any]] = deque()
        self._event_text = 0
        self._delta_text = 0
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()

    async def event(self, event: dict[str, Any]) -> None:
        """Add an event; waits while too much waits already."""
        while self._event_text >= EVENT_TEXT:
            self._drained.clear()
            await self._drained.wait()
        item = _encode({"type": "event", "event": event})
        self._event_text += len(item)
        self._add(item)

    def delta(self, delta: Delta) -> None:
        """Add a delta, merged into the one before where it goes on from it; never waits."""
        if self._delta_text + len(delta.text) > DELTA_TEXT:
            return
        self._delta_text += len(delta.text)
        item = {"type": "delta", **msgspec.structs.asdict(delta)}
        last = self._items[-1] if self._items else ""
        if isinstance(last, dict) and delta.kind in _PIECES and {**last, "text": delta.text} == item:
            last["text"] += delta.text
        else:
            self._add(item)

    def _add(self, item: str | dict[str, Any]) -> None:
        self._items.append(item)
        self._filled.set()

    async def take(self) -> list[str]:
        """All that waits, each as JSON; at least one item."""
        await self._filled.wait()
        taken = [item if isinstance(item, str) else _encode(item) for item in self._items]
        self._items.clear()
        self._event_text = self._delta_text = 0
        self._filled.clear()
        self._drained.set()
        return taken


def _encode(item: dict[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


async def stream(websocket: WebSocket, machine: Machine, token: str, early: Early) -> None:
    """Serve one tab until it closes."""
    await websocket.accept()
    shown: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(FIRST_FRAME):
            frame = await _receive(websocket)
        if not holds_token(frame.token, token):
            await websocket.close(BAD_TOKEN, "The token is wrong.")
            return
        while True:
            if shown is not None:
                await _cancel(shown)
            shown = asyncio.create_task(_show(websocket, machine, frame, early)) if frame.session else None
            frame = await _receive(websocket)
    except TimeoutError:
        await websocket.close(BAD_FRAME, "No first frame came.")
    except msgspec.DecodeError:
        await websocket.close(BAD_FRAME, "The frame cannot be read.")
    except WebSocketDisconnect:
        pass
    finally:
        if shown is not None:
            await _cancel(shown)


async def _receive(websocket: WebSocket) -> Frame:
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    try:
        return msgspec.json.decode(message.get("text") or message.get("bytes") or b"", type=Frame)
    except UnicodeError as error:
        raise msgspec.DecodeError(str(error)) from None


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def _show(websocket: WebSocket, machine: Machine, frame: Frame, early: Early) -> None:
    """Send what happens in one session, until cancelled or until the tab is gone."""
    deltas = early.take(frame.session)
    try:
        session = await machine.session(frame.session)
        info = await machine.journal.session(session.id)
        marker = {"session": frame.session, "head": info.head if info else 0}
        await _send(websocket, [_encode({"type": "session", **marker})])
        outbox = Outbox()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_take_deltas(deltas, outbox))
            tasks.create_task(_take_events(session, frame.after, outbox))
            tasks.create_task(_send_all(websocket, outbox))
    except* TextorError as errors:
        with suppress(WebSocketDisconnect):
            await _send(websocket, [_encode({"type": "error", "error": str(_first(errors))})])
    except* WebSocketDisconnect:
        pass
    finally:
        machine.services.hub.unsubscribe(frame.session, deltas)


def _first(errors: BaseExceptionGroup[Any]) -> BaseException:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _take_events(session: Session, after: int, outbox: Outbox) -> None:
    async for event in session.follow(after):
        await outbox.event(to_json(event))


async def _take_deltas(deltas: asyncio.Queue[Delta], outbox: Outbox) -> None:
    while True:
        outbox.delta(await deltas.get())


async def _send_all(websocket: WebSocket, outbox: Outbox) -> None:
    while True:
        await _send(websocket, await outbox.take())


async def _send(websocket: WebSocket, items: list[str]) -> None:
    frame = items[0] if len(items) == 1 else f"[{','.join(items)}]"
    try:
        await websocket.send_text(frame)
    except RuntimeError:  # starlette's word for a connection that was closed meanwhile
        raise WebSocketDisconnect(1006) from None
