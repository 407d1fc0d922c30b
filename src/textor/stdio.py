"""Standard input and output of this program as hands of one session (`textor run --stdio`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
            "maximum": BIG,
            "description": "at most so many bytes",
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


class Stdio:
    """The pipe of this process. It belongs to one session at a time; `attach` says to which.

    `write` puts a text out. Bytes come in by `feed`, the end of input by `end`.
    """

    def __init__(self) -> None:
        self.session = ""
        self.ended = False
        self.changed: set[asyncio.Event] = set()  #: set when something came
        self._buffer = Buffer()
        self._write: Callable[[str], None] = _nowhere

    def attach(self, session: str, write: Callable[[str], None]) -> None:
        self.session, self._write = session, write

    def __len__(self) -> int:
        """The bytes that wait to be read."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer.add(data)
        self._tell()

    def end(self) -> None:
        self.ended = True
        self._tell()

    def take(self, most: int) -> str:
        text, count = self._buffer.peek(most, ended=self.ended)
        self._buffer.drop(count)
        return text

    def write(self, text: str) -> None:
        self._write(text)

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
        stdio.write(f"{arguments['message']}\n")
        return Outcome("done", "Written.")

    return [Entry(READ, read), Entry(WRITE, write)]


def _nowhere(text: str) -> None:
    """Nobody listens yet."""
