"""Standard input and output of this program as hands of one session (`textor run --stdio`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import Entry, parameters
from textor.containers.buffers import Buffer
from textor.errors import CapabilityError
from textor.values import BIG, Json

READ = Capability(
    "read_stdin",
    "Read what has come on standard input and was not read yet. What is not read now stays.",
    parameters(
        n={
            "type": "integer",
            "default": 4096,
            "minimum": 1,
            "description": f"at most so many bytes; more than {BIG} never come at once",
        }
    ),
    repeat="once",
)
WRITE = Capability(
    "write_stdout",
    "Write a message to standard output; a line break is added. The person there reads nothing else.",
    parameters(["message"], message={"type": "string", "description": "what to write"}),
    repeat="once",
)


#: Bytes that wait unread before no more are taken in: then who writes to us has to wait.
MOST_WAITING = 16 * 1024 * 1024


class Stdio:
    """The pipe of this process. It belongs to one session at a time; `attach` says to which.

    `write` puts a text out. Bytes come in by `feed`, the end of input by `end`; whoever feeds waits
    for `room` first.
    """

    def __init__(self) -> None:
        self.session = ""
        self.ended = False
        self.changed: set[asyncio.Event] = set()  #: set when something came
        self.room = threading.Event()
        self.room.set()
        self._buffer = Buffer()
        self._writing = asyncio.Lock()
        self._write: Callable[[str], None] = _nowhere

    def attach(self, session: str, write: Callable[[str], None]) -> None:
        self.session, self._write = session, write

    def __len__(self) -> int:
        """The bytes that wait to be read."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer.add(data)
        if len(self._buffer) >= MOST_WAITING:
            self.room.clear()
        self._tell()

    def end(self) -> None:
        self.ended = True
        self._tell()

    def take(self, most: int) -> str:
        text, count = self._buffer.peek(min(most, BIG), ended=self.ended)
        self._buffer.drop(count)
        if len(self._buffer) < MOST_WAITING:
            self.room.set()
        return text

    async def write(self, text: str) -> None:
        """Put a text out, in a thread of its own: who reads it may be slow, or not read at all, and
        an end of this program must not wait for that. Raises `OSError` when nobody can read it."""
        async with self._writing:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[OSError | None] = loop.create_future()

            def tell(fault: OSError | None) -> None:
                if not done.done():
                    done.set_result(fault)

            def work() -> None:
                fault: OSError | None = None
                try:
                    self._write(text)
                except OSError as error:
                    fault = error
                with suppress(RuntimeError):  # the loop has ended, and with it this program
                    loop.call_soon_threadsafe(tell, fault)

            threading.Thread(target=work, name="stdout", daemon=True).start()
            if (error := await done) is not None:
                raise error

    def _tell(self) -> None:
        for event in self.changed:
            event.set()


def stdio_entries(stdio: Stdio) -> list[Entry]:
    """read_stdin and write_stdout."""

    def own(scope: Scope) -> None:
        if stdio.session != scope.session:
            raise CapabilityError(
                "This session has no standard input and output.",
                "`textor run --stdio` gives it them.",
            )

    async def read(arguments: dict[str, Json], scope: Scope) -> Outcome:
        own(scope)
        text = stdio.take(arguments["n"])
        if not text:
            return Outcome("done", "[standard input has ended]" if stdio.ended else "[nothing waits]")
        return Outcome("done", text, data={"bytes": len(text.encode()), "left": len(stdio)})

    async def write(arguments: dict[str, Json], scope: Scope) -> Outcome:
        own(scope)
        try:
            await stdio.write(f"{arguments['message']}\n")
        except OSError:
            raise CapabilityError("Standard output is closed: nobody reads it any more.") from None
        return Outcome("done", "Written.")

    return [Entry(READ, read), Entry(WRITE, write)]


def _nowhere(text: str) -> None:
    """Nobody listens yet."""
