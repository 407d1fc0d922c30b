"""A session: a shell that stays in its terminal, and what can be done with it while it works."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from textor.modules.shell.screen import Marks, Transcript, plain
from textor.modules.shell.shells import found, prepare
from textor.modules.shell.terminal import Terminal

State = Literal["idle", "running", "waiting for input", "waiting for hidden input", "closed"]

TICK = 0.05  #: seconds between two looks at what the program does
QUIET = 0.25  #: seconds without output after which it may be waiting for input
LONG_QUIET = 2.0  #: the same where the system does not tell what a program waits for


class Unusable(Exception):
    """The session cannot do that now; the text says why and what to do."""


@dataclass(frozen=True)
class Seen:
    """What came since the last look: bytes `start` to `end` of the transcript."""

    state: State
    exit_status: int | None
    start: int
    end: int


class Session:
    """One shell. `kind` is one of `shells.found()`."""

    def __init__(self, name: str, kind: str, folder: Path) -> None:
        """Start it. Raises `Unusable`."""
        shells = found()
        if kind not in shells:
            raise Unusable(f"There is no shell {kind!r} here. There is: {', '.join(shells)}.")
        self.name, self.kind, self.folder = name, kind, folder
        self.command = ""  #: the last one
        self.exit_status: int | None = None
        self.files = Path(mkdtemp(prefix="textor-shell-"))
        nonce = secrets.token_hex(8)
        self._shell = prepare(kind, shells[kind], nonce, self.files)
        self._marks = Marks(nonce)
        self.transcript = Transcript(self.files / "output")
        self._echo = b""  #: the typed line that the terminal shows, still to be left out
        self._idle = False
        self._begun = False  #: it has been idle once
        self._seen = 0
        self.count = 0  #: of the commands
        self._last_output = time.monotonic()
        self._news = asyncio.Event()
        env = {**os.environ, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", **self._shell.env}
        try:
            self.terminal = Terminal(self._shell.argv, folder, env, self._received)
        except OSError as error:
            shutil.rmtree(self.files, ignore_errors=True)
            raise Unusable(f"{kind} cannot be started in {folder}: {error.strerror}.") from None
        self.terminal.ended.add_done_callback(lambda _: self._news.set())

    @property
    def closed(self) -> bool:
        return self.terminal.ended.done()

    def _received(self, data: bytes) -> None:
        self._last_output = time.monotonic()
        for piece in self._marks.feed(data):
            if isinstance(piece, int):
                if self._begun:
                    self.exit_status = piece
                self._idle = self._begun = True
            elif self._begun and not self._idle:
                self.transcript.add(self._without_echo(piece))
            # else: a greeting, or what a changed prompt says
        self._news.set()

    def _without_echo(self, piece: bytes) -> bytes:
        """Leave out the line that we typed, which the terminal shows first."""
        while self._echo and piece:
            if piece[:1] == self._echo[:1]:
                self._echo, piece = self._echo[1:], piece[1:]
            elif piece[:1] == b"\r" and self._echo[:1] == b"\n":
                piece = piece[1:]
            else:  # it shows none
                self._echo = b""
        return piece

    async def run(self, command: str, seconds: float) -> Seen:
        """Run a command (or code); returns when it has ended, waits for input, or after `seconds`."""
        if self.closed:
            raise Unusable(
                f"The session {self.name} has ended with exit status {self.terminal.ended.result()}."
            )
        if not self._begun:
            await self._until_begun()
        if not self._idle:
            raise Unusable(
                f"The session {self.name} still runs: {self.command[:200]}. "
                "Read on, write to it, send it a signal, or use another session."
            )
        self.count += 1
        file = self.files / f"{self.count}"
        file.write_text(command if command.endswith("\n") else command + "\n", "utf-8")
        self.command, self.exit_status = command, None
        self._seen = self.transcript.size
        self._idle = False
        line = self._shell.send(file).encode()
        self._echo = line
        self.terminal.write(line)
        return await self.wait(seconds)

    async def _until_begun(self) -> None:
        async with asyncio.timeout(20):
            while not self._begun and not self.closed:
                await self._changed(TICK)
        if self.closed:
            raise Unusable(f"The shell of the session {self.name} ended at once.")

    async def wait(self, seconds: float) -> Seen:
        """What came since the last look, once there is a reason to look or the time is over."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.state == "running":
            await self._changed(min(TICK, left))
        start, self._seen = self._seen, self.transcript.size
        return Seen(self.state, self.exit_status, start, self._seen)

    async def _changed(self, seconds: float) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    @property
    def state(self) -> State:
        if self.closed:
            if self.exit_status is None or not self._idle:
                self.exit_status = self.terminal.ended.result()
            return "closed"
        if self._idle:
            return "idle"
        quiet = time.monotonic() - self._last_output
        if quiet < QUIET or self._echo:
            return "running"
        reads = self.terminal.reads()
        if self.terminal.hides_input and reads is not False:
            return "waiting for hidden input"
        if reads or (reads is None and quiet >= LONG_QUIET and self._asks()):
            return "waiting for input"
        return "running"

    def _asks(self) -> bool:
        """Whether the output ends within a line, as a prompt does."""
        return bool(self.prompt)

    @property
    def prompt(self) -> str:
        """The unfinished last line of the output."""
        end = self.transcript.size
        return plain(self.transcript.read(max(0, end - 500), end)).rpartition("\n")[2].strip()

    def write(self, text: str) -> None:
        """Give it input, as typed. Raises `Unusable` when nothing runs."""
        if self.closed or self._idle:
            raise Unusable(f"Nothing runs in the session {self.name} that could read this.")
        self._last_output = time.monotonic()
        self.terminal.write(text.encode())

    def signal(self, number: signal.Signals) -> None:
        """A signal to what runs in the foreground."""
        self._last_output = time.monotonic()
        self.terminal.send(number)

    def write_secret(self, text: str) -> None:
        """The same for what must not be seen: only while the terminal does not show it."""
        if not self.terminal.hides_input:
            raise Unusable(f"The session {self.name} does not wait for hidden input any more.")
        self.write(text + "\n")

    async def close(self) -> None:
        await self.terminal.close()
        self.transcript.close()
        shutil.rmtree(self.files, ignore_errors=True)
