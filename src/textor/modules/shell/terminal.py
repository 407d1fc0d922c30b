"""One program under a terminal of its own (a pty): what it writes, what it waits for, how it ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROWS, COLUMNS = 50, 160

#: System calls that read, by machine, and those that wait for several things at once.
_READS = {"x86_64": {0, 19, 45}, "aarch64": {63, 65, 207}}
_SELECTS = {"x86_64": {7, 23, 232, 270, 271, 281, 441}, "aarch64": {22, 72, 73, 441}}


class Terminal:
    """`received` gets the bytes as they come. `ended` is done with the exit status, 128 + n after
    signal n, when the program is gone and all its output was handed over."""

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        received: Callable[[bytes], None],
    ) -> None:
        """Start it. Raises `OSError`."""
        self._received = received
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._master, slave = pty.openpty()
        try:
            self.name = os.ttyname(slave)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            self._program = subprocess.Popen(
                argv,
                cwd=folder,
                env=dict(env),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                # the terminal becomes that of its session, so that Ctrl-C and job control work
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        except BaseException:
            os.close(self._master)
            raise
        finally:
            os.close(slave)
        os.set_blocking(self._master, False)
        self._pending = bytearray()
        self._loop.add_reader(self._master, self._read)
        self._watch()

    @property
    def pid(self) -> int:
        return self._program.pid

    def write(self, data: bytes) -> None:
        """As if typed. What the program does not take yet is written when it does."""
        self._pending += data
        self._flush()

    def _flush(self) -> None:
        if self._master < 0:
            return
        with suppress(BlockingIOError):
            while self._pending:
                # a terminal takes no line over 4,095 bytes at once; the rest follows when it is read
                written = os.write(self._master, self._pending[:1024])
                del self._pending[:written]
        if self._pending:
            self._loop.add_writer(self._master, self._flush)
        else:
            self._loop.remove_writer(self._master)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except BlockingIOError:
            return
        except OSError:  # the last holder of the other side is gone
            data = b""
        if data:
            self._received(data)
        else:
            self._loop.remove_reader(self._master)

    def _watch(self) -> None:
        """Look for its end. By polling, because whoever waits for children here must not take them
        from others."""
        status = self._program.poll()
        if status is None:
            self._loop.call_later(0.02, self._watch)
            return
        for _ in range(1000):  # what it wrote last is still in the terminal
            try:
                data = os.read(self._master, 65536)
            except OSError:
                break
            if not data:
                break
            self._received(data)
        if not self.ended.done():
            self.ended.set_result(status if status >= 0 else 128 - status)

    # -- what it waits for -----------------------------------------------------------------

    @property
    def hides_input(self) -> bool:
        """Whether a line typed now would not be shown: that is how programs ask for a password."""
        if self._master < 0:
            return False
        try:
            local = termios.tcgetattr(self._master)[3]
        except (OSError, termios.error):
            return False
        # editors and readline take single keys; they do not hide a line, they draw it themselves
        return bool(local & termios.ICANON) and not local & termios.ECHO

    @property
    def foreground(self) -> int:
        """The process group that has the terminal; 0 when that cannot be told."""
        try:
            return os.tcgetpgrp(self._master)
        except OSError:
            return 0

    def reads(self) -> bool | None:
        """Whether a program waits for input from this terminal; None when that cannot be told."""
        told: bool | None = False
        machine = os.uname().machine
        for pid in group(self.foreground):
            try:
                number, *arguments = Path(f"/proc/{pid}/syscall").read_text().split()
            except OSError:  # another user's program (sudo), or no Linux
                told = None
                continue
            if not number.isdigit() or machine not in _READS:
                told = None if number != "running" else told
            elif int(number) in _READS[machine]:
                with suppress(OSError):
                    file = os.readlink(f"/proc/{pid}/fd/{int(arguments[0], 16)}")  # noqa: PTH115
                    if file in (self.name, "/dev/tty"):
                        return True
            elif int(number) in _SELECTS[machine]:
                told = None
        if not Path("/proc/self/syscall").exists():
            return None
        return told

    # -- ending ----------------------------------------------------------------------------

    def send(self, number: signal.Signals) -> None:
        """A signal to the program in the foreground."""
        keys = {signal.SIGINT: b"\x03", signal.SIGQUIT: b"\x1c", signal.SIGTSTP: b"\x1a"}
        with suppress(OSError, termios.error):
            if number in keys and termios.tcgetattr(self._master)[3] & termios.ISIG:
                # by key, which also reaches a program of another user
                self.write(keys[number])
                return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.foreground or self.pid, number)

    async def close(self) -> None:
        """Kill the program with all that belongs to its terminal or was started by it."""
        for _ in range(3):  # what forks while we look is found by the next look
            members = {*session(self.pid), *below(self.pid)}
            for pid in (self.pid, *members):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not members:
                break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        await asyncio.wait([self.ended], timeout=2)
        if self._master >= 0:
            self._loop.remove_reader(self._master)
            self._loop.remove_writer(self._master)
            os.close(self._master)
            self._master = -1


def _stats() -> list[tuple[int, int, int, int]]:
    """(pid, parent, group, session) of every living process; none where there is no `/proc`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, *fields = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state != "Z":
            found.append((int(entry.name), *(int(field) for field in fields)))
    return found  # type: ignore[return-value]


def group(number: int) -> list[int]:
    """The processes of a group."""
    return [pid for pid, _, group, _ in _stats() if group == number]


def session(number: int) -> list[int]:
    """The processes of a session."""
    return [pid for pid, _, _, session in _stats() if session == number]


def below(pid: int) -> list[int]:
    """All descendants."""
    children: dict[int, list[int]] = {}
    for child, parent, _, _ in _stats():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    todo = [pid]
    while todo:
        new = children.get(todo.pop(), [])
        found += new
        todo += new
    return found
