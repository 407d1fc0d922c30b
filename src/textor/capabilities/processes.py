"""Runs one program to its end: output kept within bounds, time and memory limited, killed for certain.

The limits are watched from outside (the process tree in `/proc`, five times a second), because the
kernel's own per-process limits do not add up over a tree and do not bind root; control groups would
be better and are not ours to use on most machines. Where there is no `/proc` only time is limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from textor.errors import CapabilityError

Reason = Literal["exit", "timeout", "cancelled", "full", "memory", "processes"]

#: How many bytes of output are kept, half from the beginning and half from the end.
KEEP = 8_000_000
WATCH_EVERY = 0.2  #: seconds


def half_of_memory() -> int:
    """Half of the machine's memory in bytes, at most 8 GiB."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        total = 8 << 30
    return min(total // 2, 8 << 30)


@dataclass(frozen=True)
class Limits:
    """What a program with all its children may use. `memory` in bytes."""

    memory: int = field(default_factory=half_of_memory)
    processes: int = 512


@dataclass(frozen=True)
class Ended:
    """How a program ended. `exit_status` is 128 + n after signal n, None when we stopped it."""

    reason: Reason
    exit_status: int | None
    output: bytes
    left_out: int  #: bytes dropped from the middle of the output
    errors: bytes = b""  #: stderr, where it was asked for apart


class Tape:
    """Output as it comes: the first and the last half of `keep` bytes, and a count of the rest."""

    def __init__(self, keep: int) -> None:
        self._half = max(1, keep // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.left_out = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # cut only when it has doubled: cutting at every piece would copy the tail each time
        if len(self._tail) > 2 * self._half:
            self._cut()

    def _cut(self) -> None:
        excess = len(self._tail) - self._half
        if excess > 0:
            del self._tail[:excess]
            self.left_out += excess

    def content(self) -> bytes:
        self._cut()
        if not self.left_out:
            return bytes(self._head + self._tail)
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % self.left_out + bytes(self._tail)


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    limits: Limits | None = None,
    keep: int = KEEP,
    stop_when_full: bool = False,
    supervised: bool = False,
    apart: bool = False,
    on_output: Callable[[bytes], None] | None = None,
) -> Ended:
    """Run `argv` with nothing on stdin; stdout and stderr come as one stream, in order, or `apart`.

    When the calling task is cancelled the program is killed and the reason is "cancelled": the
    cancelling is then confirmed, so it is not raised. `stop_when_full` ends the program after
    `keep` bytes instead of dropping what follows. `supervised` says that `argv` is a supervisor
    (bubblewrap) that ends by itself after the last of its children. Whatever the program leaves
    in the background is ended with it. `CapabilityError` when it cannot be started.
    """
    watched = _Watched(Tape(keep), Tape(keep), keep if stop_when_full else None, on_output)
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: watched,
            *argv,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if apart else asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    )
    early = False
    try:
        while not starting.done():
            # a cancelling while it starts waits for the process, so as to end it for certain
            try:
                await asyncio.shield(starting)
            except asyncio.CancelledError:
                early = True
        transport, _ = starting.result()
    except (OSError, ValueError) as error:
        raise CapabilityError(f"{argv[0]} cannot be started: {error}.") from None
    watching = asyncio.create_task(_watch(transport.get_pid(), limits))
    try:
        reason = "cancelled" if early else await _until_over(watched, watching, timeout)
    except asyncio.CancelledError:
        reason = "cancelled"
    ending = asyncio.create_task(_end(transport, watched, watching, supervised))
    while not ending.done():
        # a second cancelling must not leave the program half killed
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(ending)
    ending.result()
    code = transport.get_returncode()
    status = None if reason != "exit" or code is None else code if code >= 0 else 128 - code
    errors = watched.errors.content()
    return Ended(reason, status, watched.tape.content(), watched.tape.left_out, errors)


class _Watched(asyncio.SubprocessProtocol):
    """Hears of a program's output and end.

    A protocol and not `asyncio.create_subprocess_exec`, whose `wait` also waits for the end of the
    output, which anything left in the background would hold open.
    """

    def __init__(
        self, tape: Tape, errors: Tape, full_at: int | None, on_output: Callable[[bytes], None] | None
    ) -> None:
        self.tape = tape
        self.errors = errors  #: of stderr, when it has a pipe of its own
        self._open: set[int] = set()
        self.exited = asyncio.get_running_loop().create_future()
        self.full = asyncio.get_running_loop().create_future()
        self.silent = asyncio.get_running_loop().create_future()  # the end of the output
        self._total = 0
        self._full_at = full_at
        self._on_output = on_output

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._open = {fd for fd in (1, 2) if transport.get_pipe_transport(fd) is not None}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.errors if fd == 2 else self.tape).add(data)
        self._total += len(data)
        if self._on_output is not None:
            self._on_output(data)
        if self._full_at is not None and self._total >= self._full_at and not self.full.done():
            self.full.set_result(None)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.silent.set_result(None)

    def process_exited(self) -> None:
        self.exited.set_result(None)


async def _until_over(watched: _Watched, watching: asyncio.Task[Reason], timeout: float) -> Reason:
    waiting: list[asyncio.Future[Any]] = [watched.exited, watched.full, watching]
    done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    if watched.exited in done:
        return "exit"
    if watching in done:
        return watching.result()
    return "full" if done else "timeout"


async def _watch(pid: int, limits: Limits | None) -> Reason:
    """Return when the tree below `pid` uses more than it may; for ever otherwise."""
    if limits is None:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
    while True:
        tree = descendants(pid, at_most=limits.processes)
        if len(tree) > limits.processes:
            return "processes"
        if memory_of([pid, *tree]) > limits.memory:
            return "memory"
        await asyncio.sleep(WATCH_EVERY)


async def _end(
    transport: asyncio.SubprocessTransport,
    watched: _Watched,
    watching: asyncio.Task[Reason],
    supervised: bool,
) -> None:
    watching.cancel()
    kill_tree(transport.get_pid(), supervised=supervised and not watched.exited.done())
    await asyncio.wait([watched.exited], timeout=2)
    if not watched.exited.done():  # a supervisor that was caught half way and waits for the dead
        kill_tree(transport.get_pid(), supervised=False)
        await watched.exited
    # all that could write is gone, so the end of the output is here; the bound is for a
    # process that got away on the host (a daemon that left our session) and holds the pipe
    await asyncio.wait([watched.silent], timeout=1)
    transport.close()


def kill_tree(pid: int, *, supervised: bool) -> None:
    """SIGKILL `pid`, its process group and all below it.

    With `supervised` only the supervisor's child: the first process of a PID namespace, whose
    death takes everything inside along. The supervisor's own end then tells that it is done.

    Each is stopped before its children are looked up: from then on it makes no more of them. A
    bubblewrap killed outright may have made one that does not know yet to die with its parent.
    """
    if supervised:
        _send(pid, signal.SIGSTOP)
        inside = _children(pid)
        for child in inside:
            _send(child, signal.SIGKILL)
        _send(pid, signal.SIGCONT if inside else signal.SIGKILL)
        return
    below: list[int] = []
    todo = [pid]
    while todo:
        parent = todo.pop()
        _send(parent, signal.SIGSTOP)
        children = _children(parent)
        below += children
        todo += children
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for child in below:
        _send(child, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has just ended
            found += [int(word) for word in listing.read_text().split()]
    return found


def descendants(pid: int, at_most: int) -> list[int]:
    """The processes below `pid`, some more than `at_most` at the most; none where there is no `/proc`."""
    found: list[int] = []
    todo = [pid]
    while todo and len(found) <= at_most:
        children = _children(todo.pop())
        found += children
        todo += children
    return found


def memory_of(pids: Sequence[int]) -> int:
    """Bytes of memory that only these processes use: private pages added up, shared ones once."""
    private = shared = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    private += int(line.split()[1])
                elif line.startswith("RssShmem:"):
                    shared = max(shared, int(line.split()[1]))
    return (private + shared) * 1024
