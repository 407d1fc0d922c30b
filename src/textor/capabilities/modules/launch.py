"""Starts one module and ends it, with all it has started, when our process is gone.

`launch.py FD COMMAND…`: FD is the reading end of a pipe whose other end our process holds and never
writes to. However our process ends, SIGKILL included, the kernel closes that pipe, and what was
started here is killed. The same happens to leftovers when the command itself ends. On Linux this
process is made the heir of all orphans below it, so that daemons which left the group are found as
well; elsewhere the process group is what is killed.

A program of its own, run as a file with only the standard library: it must start in no time.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(watch: int, command: list[str]) -> int:
    os.set_inheritable(watch, False)
    heir = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    child = _start(command)
    # the module alone holds its pipes, so that their end is its end
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)

    status = _until_over(child, watch, wake)
    if heir:
        _kill_below()
    else:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGKILL)
    return status


def _start(command: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}.\n".encode())
    os._exit(127)


def _until_over(child: int, watch: int, wake: int) -> int:
    """The child's exit status when it ended, 137 when it is to be killed."""
    while True:
        ready, _, _ = select.select([watch, wake], [], [])
        if watch in ready:
            return 137
        if set(os.read(wake, 4096)) - {signal.SIGCHLD}:
            return 137
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == child:
                    code = os.waitstatus_to_exitcode(reaped[1])
                    return code if code >= 0 else 128 - code
        except ChildProcessError:
            return 137


def _kill_below() -> None:
    """Kill all descendants. Orphans fall to this process, so in the end it has seen all of them."""
    while below := _below(os.getpid()):
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        # not a waiting one: what was just forked by one of the dead may still be alive
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.001)


def _below(pid: int) -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for word in listing.read_text().split():
                found += [int(word), *_below(int(word))]
        except OSError:
            pass
    return found


def _prctl(option: int, value: int) -> bool:
    """Whether this is a Linux that did it."""
    if sys.platform != "linux":
        return False
    if option == _PR_SET_CHILD_SUBREAPER and not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
