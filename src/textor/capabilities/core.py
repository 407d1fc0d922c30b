"""The capabilities that every machine has: reply, tell the time, wait, read on in a stored value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import Entry, TableProvider, parameters, text_outcome
from textor.errors import CapabilityError
from textor.values import BIG, Json, Value, content_of

#: The longest wait, in seconds. Longer ones belong to a schedule, not to a turn.
LONGEST_WAIT = 3600

RESPOND = Capability(
    "respond",
    "Reply to whoever asked. This ends the turn.",
    parameters(["text"], text={"type": "string", "description": "the reply"}),
    effects=("read",),
    repeat="idempotent",
    phrases=("respond to user with []",),
    examples=("tell the user [all done]", "answer [Paris]", "reply with [42]"),
    ends_turn=True,
)

TIME = Capability(
    "time.now",
    "Tell the date and time of this machine, with its zone (ISO 8601).",
    repeat="idempotent",
    phrases=("tell the time",),
    examples=("what time is it", "what is the date today"),
)

WAIT = Capability(
    "wait",
    "Do nothing for a number of seconds.",
    parameters(
        ["seconds"],
        seconds={
            "type": "number",
            "minimum": 0,
            "maximum": LONGEST_WAIT,
            "description": f"how long, at most {LONGEST_WAIT}",
        },
    ),
    repeat="idempotent",
    phrases=("wait [] seconds",),
    examples=("pause for [10] seconds", "sleep [5]"),
)

PRINT = Capability(
    "print",
    "Show a text or a variable back to yourself.",
    parameters(["text"], text={"type": "string", "description": "what to show"}),
    repeat="idempotent",
)

READ_VALUE = Capability(
    "values.read",
    "Read a part of a big text that was shown only by its head, tail and handle.",
    parameters(
        ["handle"],
        handle={"type": "string", "description": "the handle that was shown, or the name of a variable"},
        start={
            "type": "integer",
            "default": 0,
            "description": "the first character (code point), from 0; negative counts from the end",
        },
        count={
            "type": "integer",
            "default": 6000,
            "minimum": 1,
            "maximum": BIG,
            "description": "how many characters",
        },
    ),
    repeat="idempotent",
    phrases=("read value []",),
    examples=("show more of the stored text [3f2a9c01b7de]",),
)


def local_now() -> datetime:
    return datetime.now().astimezone()


def core_provider(
    clock: Callable[[], datetime] = local_now,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> TableProvider:
    """The provider `core`. `clock` gives an aware time, `sleep` waits that many seconds."""

    async def respond(arguments: dict[str, Json], scope: Scope) -> Outcome:
        return Outcome("done", arguments["text"])

    async def show(arguments: dict[str, Json], scope: Scope) -> Outcome:
        return text_outcome(arguments["text"], scope)

    async def now(arguments: dict[str, Json], scope: Scope) -> Outcome:
        return Outcome("done", clock().isoformat(timespec="seconds"))

    async def wait(arguments: dict[str, Json], scope: Scope) -> Outcome:
        seconds = arguments["seconds"]
        try:
            await sleep(seconds)
        except asyncio.CancelledError:
            return Outcome("cancelled", f"The wait of {seconds:g} seconds was cancelled.")
        return Outcome("done", f"Waited {seconds:g} seconds.")

    return TableProvider(
        "core",
        [
            Entry(RESPOND, respond),
            Entry(PRINT, show),
            Entry(TIME, now),
            Entry(WAIT, wait),
            Entry(READ_VALUE, read_value),
        ],
    )


async def read_value(arguments: dict[str, Json], scope: Scope) -> Outcome:
    """A page of a stored text, with a note that says where it stands and how to go on."""
    value = _find(arguments["handle"], scope)
    try:
        text = content_of(value, scope.blobs).decode()
    except UnicodeDecodeError:
        return Outcome(
            "done",
            f"[{value.name or 'The value'} is no text: {value.media_type}, {value.size} bytes]",
            values=(value,),
            labels=value.labels,
        )
    start = arguments["start"]
    if start < 0:
        start = max(0, len(text) + start)
    if start >= len(text) > 0:
        raise CapabilityError(f"The value has {len(text)} characters; there is nothing from {start} on.")
    # a page must not itself become a big value, so it is cut by bytes as well
    page = text[start : start + arguments["count"]].encode()[: BIG - 200].decode("utf-8", "ignore")
    end = start + len(page)
    if start == 0 and end == len(text):
        return Outcome("done", page, labels=value.labels)
    more = f"; go on with start={end}" if end < len(text) else "; this is its end"
    return Outcome("done", f"{page}\n[characters {start} to {end} of {len(text)}{more}]", labels=value.labels)


def _find(handle: str, scope: Scope) -> Value:
    try:
        return scope.value(handle.strip())
    except KeyError:
        raise CapabilityError(
            f"No value has the handle {handle!r}.", "Use the handle that was shown with the text."
        ) from None
