"""`shell.run`: one command, in the sandbox where there is one, killed for certain when told to.

A command that ended by itself is *done* whatever its exit status: many programs answer by it
(`grep`, `diff`, `test`), and the model must judge. So the status is the first line of the text
and a field of the outcome. *Failed* is what was stopped: by the timeout or a limit.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from textor.actions import Capability, Outcome
from textor.capabilities.live import standing
from textor.capabilities.port import Scope
from textor.capabilities.processes import Ended, Limits, Reason, run
from textor.capabilities.sandbox import Sandbox
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.values import BIG, Json, clean_text, shown, text_value

RUN = Capability(
    "shell.run",
    "Run a shell command in the workspace and give its output and exit status. "
    "It gets no input, and what it leaves in the background is ended with it.",
    parameters(
        ["command"],
        command={"type": "string", "description": "the command line, as for bash -c"},
        timeout={
            "type": "number",
            "default": 60,
            "minimum": 0.1,
            "maximum": 3600,
            "description": "seconds after which it is stopped",
        },
    ),
    effects=("execute",),
    repeat="once",
    phrases=("run command []",),
    examples=("execute [ls -l] in the shell", "run the program [make test]"),
)

HOST = msgspec.structs.replace(
    RUN,
    name="shell.host",
    purpose="Run a shell command on the machine itself, outside the sandbox: for its processes, services "
    "and network. A person is asked. Use shell.run for everything else.",
    phrases=("run command [] on this machine",),
    examples=("find the process on port [59001] of this machine",),
)

#: Names of variables that hold secrets; they are not handed to a command on the host.
SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|(^|_)auth(_|$)")

_STOPPED: dict[Reason, str] = {
    "timeout": "stopped after {timeout:g} s (timeout)",
    "memory": "stopped: it used more than {memory} MiB of memory",
    "processes": "stopped: it ran more than {processes} processes at a time",
    "cancelled": "cancelled; all its processes are ended",
}


class ShellProvider(TableProvider):
    """The provider `shell`: `shell.run` in the sandbox, `shell.host` on purpose outside it.

    Without a sandbox `shell.run` is on the host, and the gate asks each time.
    """

    def __init__(self, sandbox: Sandbox | None, limits: Limits | None = None) -> None:
        self.sandbox = sandbox
        self.limits = limits or Limits()
        self._shell = shutil.which("bash") or "/bin/sh"
        capability = msgspec.structs.replace(RUN, sandboxed=sandbox is not None)
        on_host = [Entry(HOST, self._host)] if sandbox is not None else []
        super().__init__("shell", [Entry(capability, self._run), *on_host])

    async def _run(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        if self.sandbox is None:
            return await self._host(arguments, scope)
        timeout = arguments["timeout"]
        argv = [self.sandbox.shell, "-c", arguments["command"]]
        try:
            before = await asyncio.to_thread(standing, scope.workspace)
        except asyncio.CancelledError:
            return self._outcome(Ended("cancelled", None, b"", 0), timeout, scope)
        ended = await self.sandbox.run(
            argv, scope.workspace, timeout=timeout, limits=self.limits, on_output=_last_lines(scope)
        )
        looking = asyncio.ensure_future(asyncio.to_thread(before.changes, scope.workspace))
        while not looking.done():  # the command has ended, so a cancelling changes nothing any more
            with suppress(asyncio.CancelledError):
                await asyncio.shield(looking)
        return self._outcome(ended, timeout, scope, looking.result())

    async def _host(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        timeout = arguments["timeout"]
        ended = await run(
            [self._shell, "-c", arguments["command"]],
            cwd=scope.workspace,
            env=host_environment(),
            timeout=timeout,
            limits=self.limits,
            on_output=_last_lines(scope),
        )
        return self._outcome(ended, timeout, scope)

    async def close(self) -> None:
        if self.sandbox is not None:
            await self.sandbox.close()

    def _outcome(self, ended: Ended, timeout: float, scope: Scope, told: Sequence[str] = ()) -> Outcome:
        if ended.reason == "exit":
            first = f"exit status {ended.exit_status}"
        else:
            first = _STOPPED[ended.reason].format(
                timeout=timeout, memory=self.limits.memory >> 20, processes=self.limits.processes
            )
        output = clean_text(ended.output.decode("utf-8", "replace")).rstrip("\n")
        value = text_value(output, scope.blobs, name="output")
        text = f"{first}\n{shown(output, value.handle)}" if output else first
        text = "\n".join([text, *(f"[{each}]" for each in told)])
        return Outcome(
            {"exit": "done", "cancelled": "cancelled"}.get(ended.reason, "failed"),  # type: ignore[arg-type]
            text,
            values=(value,) if value.size > BIG else (),
            exit_status=ended.exit_status,
        )


def _last_lines(scope: Scope) -> Callable[[bytes], None]:
    """Shows a person the newest line of output, at most ten times a second."""
    shown_at = 0.0

    def show(data: bytes) -> None:
        nonlocal shown_at
        now = time.monotonic()
        lines = data[-2000:].decode("utf-8", "replace").split("\n")
        line = next((line for line in reversed(lines) if line.strip()), "")
        if line and now - shown_at >= 0.1:
            shown_at = now
            scope.progress(clean_text(line))

    return show


def host_environment() -> dict[str, str]:
    """Our environment without the variables whose names say that they hold a secret."""
    return {name: text for name, text in os.environ.items() if not SECRET_NAME.search(name)}
