"""The provider `sandbox`: a program that stays in the sandbox, with a port that a person can open.

"A web site that shows the pictures in this folder": the program has no network, and still its port
can be reached on 127.0.0.1 of this machine, through a door.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from dataclasses import dataclass

from textor.actions import Capability, Outcome
from textor.capabilities.doors import PLACE, Door
from textor.capabilities.port import Scope
from textor.capabilities.processes import Ended, Limits, run
from textor.capabilities.sandbox import Sandbox
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.containers.ports import Forwarder, through_socket
from textor.errors import CapabilityError
from textor.values import Json, clean_text

#: Seconds in which the program must listen on its port.
READY = 30.0
_SOCKET = "port.sock"

EXPOSE = Capability(
    "sandbox.expose",
    "Start a program that stays in the sandbox and publish one of its ports on 127.0.0.1 of this "
    "machine, so that a person can open it. The program itself gets no network.",
    parameters(
        ["command", "port"],
        command={"type": "string", "description": "the command line, such as python3 -m http.server 8000"},
        port={
            "type": "integer",
            "minimum": 1,
            "maximum": 65535,
            "description": "the port on which the program listens on 127.0.0.1",
        },
        outside={
            "type": "integer",
            "default": 0,
            "minimum": 0,
            "maximum": 65535,
            "description": "the port on this machine; 0 takes a free one",
        },
    ),
    effects=("execute", "network"),
    repeat="once",
    phrases=("publish port [port] of the program []",),
    sandboxed=True,
)

WITHDRAW = Capability(
    "sandbox.withdraw",
    "End a program that sandbox.expose started, and with it its port.",
    parameters(
        ["port"],
        port={"type": "integer", "minimum": 1, "maximum": 65535, "description": "its port on this machine"},
    ),
    effects=("execute",),
    repeat="idempotent",
    phrases=("withdraw port []",),
    sandboxed=True,
)


@dataclass
class Exposed:
    """A program that stays, and its way in."""

    session: str
    command: str
    inside: int
    program: asyncio.Task[Ended]
    forwarder: Forwarder
    door: Door

    async def close(self) -> None:
        await self.forwarder.close()
        self.program.cancel()
        await asyncio.gather(self.program, return_exceptions=True)
        self.door.close()


class SandboxProvider(TableProvider):
    """What agents can do with the sandbox itself."""

    def __init__(self, sandbox: Sandbox, limits: Limits | None = None) -> None:
        self._sandbox = sandbox
        self._limits = limits or Limits()
        self._exposed: dict[int, Exposed] = {}
        super().__init__("sandbox", [Entry(EXPOSE, self._expose), Entry(WITHDRAW, self._withdraw)])

    def snapshot(self, session: str) -> list[str]:
        """One line for each program of a session that is exposed, for the status part."""
        return [
            f"127.0.0.1:{port} is port {e.inside} of: {e.command}"
            for port, e in self._exposed.items()
            if e.session == session and not e.program.done()
        ]

    async def close(self) -> None:
        await asyncio.gather(*(exposed.close() for exposed in self._exposed.values()))
        self._exposed.clear()

    async def _expose(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        port = arguments["port"]
        door = Door([(f"unix:{PLACE}/{_SOCKET}", f"tcp:{port}")])
        connect = through_socket(door.socket(_SOCKET))
        forwarder = Forwarder(connect)
        program = asyncio.create_task(self._run(arguments["command"], scope, door))
        exposed = Exposed(scope.session, arguments["command"], port, program, forwarder, door)
        try:
            await _until_ready(exposed)
            outside = await forwarder.start(arguments["outside"])
        except BaseException:
            await exposed.close()
            raise
        self._exposed[outside] = exposed
        text = f"Port {port} of the program can be reached at http://127.0.0.1:{outside}/ on this machine."
        return Outcome("done", text, data={"port": outside})

    async def _run(self, command: str, scope: Scope, door: Door) -> Ended:
        argv = self._sandbox.command([self._sandbox.shell, "-c", command], scope.workspace, door)
        return await run(
            argv,
            cwd=scope.workspace,
            env=self._sandbox.env,
            timeout=math.inf,
            limits=self._limits,
            supervised=True,
        )

    async def _withdraw(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        port = arguments["port"]
        exposed = self._exposed.get(port)
        if exposed is None or exposed.session != scope.session:
            return Outcome("done", f"Nothing is published on port {port}.")
        del self._exposed[port]
        await exposed.close()
        return Outcome("done", f"The program on port {port} is ended.")


async def _until_ready(exposed: Exposed) -> None:
    """Return when the program takes connections; `CapabilityError` when it ends or does not in time."""
    probing = asyncio.create_task(_answers(exposed.door.socket(_SOCKET)))
    done, _ = await asyncio.wait(
        [probing, exposed.program], timeout=READY, return_when=asyncio.FIRST_COMPLETED
    )
    probing.cancel()
    if exposed.program in done:
        ended = exposed.program.result()
        output = clean_text(ended.output[-2000:].decode("utf-8", "replace")).strip()
        raise CapabilityError(f"The program has ended (exit status {ended.exit_status}): {output}")
    if not done:
        raise CapabilityError(
            f"The program did not listen on port {exposed.inside} within {READY:g} s.",
            f"It must listen on 127.0.0.1:{exposed.inside} inside the sandbox.",
        )


async def _answers(path: str) -> None:
    """Return when somebody takes connections behind the socket. The relay closes one at once when
    nobody does, and there is no other sign; so it is asked again and again."""
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                async with asyncio.timeout(0.1):
                    if await reader.read(1):
                        return
            except TimeoutError:
                return  # it waits for what we have to say
            finally:
                writer.close()
        await asyncio.sleep(0.05)
