"""The tools of the module `shell`, for any MCP client."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from mcp.types.version import is_version_at_least
from pydantic import BaseModel, Field

from textor import __version__
from textor.modules.shell.screen import cut, plain
from textor.modules.shell.session import Seen, Session, Unusable
from textor.modules.shell.shells import found

SHOWN = 8_000  #: bytes of output in a result
LONGEST_WAIT = 600.0
MOST_SESSIONS = 16
SHELLS = ", ".join(name for name in found() if name != "python")

Name = Annotated[str, Field(description="the session; it stays as it is between two calls")]
Wait = Annotated[float, Field(ge=0, le=LONGEST_WAIT, description="return after at most so many seconds")]
Result = CallToolResult | InputRequiredResult

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

#: For Textor: what the protocol has no word for.
EXECUTES = {"textor/effects": ["execute"]}


class Secret(BaseModel):
    """What a person types where a program hides its input."""

    password: str = Field(title="Password", description="It goes to the program and nowhere else.")


class Sessions:
    """All sessions of this process by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_name: dict[str, Session] = {}

    def get(self, name: str) -> Session:
        try:
            return self.by_name[name]
        except KeyError:
            known = ", ".join(self.by_name) or "none"
            raise ToolError(f"There is no session {name!r}. Open ones: {known}.") from None

    async def get_or_open(self, name: str, kind: str, folder: str) -> Session:
        """The session, begun anew when there is none or its shell has ended."""
        known = self.by_name.get(name)
        if known is not None and not known.closed:
            if kind and kind != known.kind:
                raise ToolError(f"The session {name} is a {known.kind}. Use another name for a {kind}.")
            if folder:
                raise ToolError("folder is where a new session begins; in an open one, change it with cd.")
            return known
        if known is not None:
            await self.close(name)
        if len(self.by_name) >= MOST_SESSIONS:
            raise ToolError(f"There are {MOST_SESSIONS} sessions. Close one: {', '.join(self.by_name)}.")
        place = (self.folder / folder).expanduser()
        if not place.is_dir():
            raise ToolError(f"{place} is no folder.")
        session = Session(name, kind or next(iter(found())), place)
        self.by_name[name] = session
        return session

    async def close(self, name: str) -> None:
        await self.by_name.pop(name).close()

    async def close_all(self) -> None:
        for name in list(self.by_name):
            await self.close(name)


def make_server(folder: Path) -> MCPServer[Any]:
    """The server; sessions begin in `folder`."""
    sessions = Sessions(folder)

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.shield(sessions.close_all())

    server: MCPServer[Any] = MCPServer(
        "textor-shell",
        version=__version__,
        instructions="Programs in terminals that stay. Look at state and exit_status of every result.",
        lifespan=lifespan,
        log_level="WARNING",
    )
    _add_running(server, sessions)
    _add_looking(server, sessions)
    return server


def _add_running(server: MCPServer[Any], sessions: Sessions) -> None:
    @server.tool(meta=EXECUTES)
    async def run(
        context: Context[Any],
        command: Annotated[str, Field(description="any script of that shell, of one or many lines")],
        session: Name = "main",
        wait_seconds: Wait = 10,
        folder: Annotated[str, Field(description="where a new session begins")] = "",
        shell: Annotated[str, Field(description=f"for a new session: {SHELLS}")] = "",
    ) -> Result:
        """Run a command in a shell session (made when there is none) and return when it has ended,
        waits for input, or wait_seconds are over; it then goes on, and `read` reads on."""
        if context.request_state is not None:
            return await _answered(context, sessions)
        return await _run(context, sessions, session, shell, folder, command, wait_seconds)

    @server.tool(meta=EXECUTES)
    async def python(
        context: Context[Any],
        code: Annotated[str, Field(description="Python; the value of a last expression is shown")],
        session: Name = "python",
        wait_seconds: Wait = 10,
        folder: Annotated[str, Field(description="where a new session begins")] = "",
    ) -> Result:
        """Run Python in a session that keeps its variables, imports and folder."""
        if context.request_state is not None:
            return await _answered(context, sessions)
        return await _run(context, sessions, session, "python", folder, code, wait_seconds)

    @server.tool(meta=EXECUTES)
    async def write(
        context: Context[Any],
        text: str,
        session: Name = "main",
        enter: Annotated[bool, Field(description="end it with a new line")] = True,
        wait_seconds: Wait = 10,
    ) -> Result:
        """Type something into the program that runs in a session. Never a password: where a program
        asks for one, the person is asked by itself."""
        if context.request_state is not None:
            return await _answered(context, sessions)
        known = sessions.get(session)
        if known.terminal.hides_input and known.state == "waiting for hidden input":
            return await _told(context, known, await known.wait(0), wait_seconds)
        _usable(known.write, text + ("\n" if enter else ""))
        return await _told(context, known, await known.wait(wait_seconds), wait_seconds)

    @server.tool(name="signal", meta=EXECUTES)
    async def send_signal(
        context: Context[Any],
        session: Name = "main",
        name: Annotated[str, Field(description="INT is Ctrl-C")] = "INT",
        wait_seconds: Wait = 3,
    ) -> Result:
        """Send a signal (INT, TERM, KILL, TSTP, CONT, HUP …) to the program that runs in a session."""
        known = sessions.get(session)
        number = getattr(signal, f"SIG{name.upper().removeprefix('SIG')}", None)
        if not isinstance(number, signal.Signals):
            raise ToolError(f"There is no signal {name!r}.")
        known.signal(number)
        return _result(known, await known.wait(wait_seconds))


def _add_looking(server: MCPServer[Any], sessions: Sessions) -> None:
    @server.tool()
    async def read(context: Context[Any], session: Name = "main", wait_seconds: Wait = 10) -> Result:
        """Read on: what has been written since the last call, and what the session does now."""
        if context.request_state is not None:
            return await _answered(context, sessions)
        known = sessions.get(session)
        return await _told(context, known, await known.wait(wait_seconds), wait_seconds)

    @server.tool(annotations=READS)
    async def page(
        session: Name = "main",
        start: Annotated[
            int, Field(description="byte of the session's output; negative: from its end")
        ] = -SHOWN,
        count: Annotated[int, Field(ge=1, le=SHOWN)] = SHOWN,
    ) -> CallToolResult:
        """Page back (or on) in all that a session has written."""
        known = sessions.get(session)
        size = known.transcript.size
        begin = max(0, size + start if start < 0 else min(start, size))
        text = plain(known.transcript.read(begin, begin + count))
        note = f"[bytes {begin} to {min(begin + count, size)} of {size}]"
        return CallToolResult(
            content=[TextContent(type="text", text=f"{text}\n{note}")],
            structured_content={"start": begin, "end": min(begin + count, size), "size": size},
        )

    @server.tool(name="list", annotations=READS)
    async def list_sessions() -> CallToolResult:
        """The open sessions with what they do, and the shells that exist here."""
        rows: list[dict[str, Any]] = [
            {
                "session": known.name,
                "shell": known.kind,
                "state": known.state,
                "exit_status": known.exit_status,
                "command": known.command[:200],
                "output_bytes": known.transcript.size,
            }
            for known in sessions.by_name.values()
        ]
        lines = [
            f"{row['session']} ({row['shell']}): {row['state']}; {row['command']}".rstrip("; ")
            for row in rows
        ]
        text = "\n".join([*(lines or ["No session is open."]), f"Shells here: {', '.join(found())}."])
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content={"sessions": rows, "shells": list(found())},
        )

    @server.tool(annotations=ToolAnnotations(idempotent_hint=True, open_world_hint=False))
    async def close(session: Name) -> str:
        """End a session and all that runs in it."""
        sessions.get(session)
        await sessions.close(session)
        return f"The session {session} is closed."

    @server.resource("shell://{session}/output", mime_type="text/plain")
    async def output(session: str) -> str:
        """All output of a session."""
        known = sessions.get(session)
        return plain(known.transcript.read(0, known.transcript.size))


async def _run(
    context: Context[Any], sessions: Sessions, name: str, kind: str, folder: str, text: str, seconds: float
) -> Result:
    try:
        session = await sessions.get_or_open(name, kind, folder)
        seen = await session.run(text, seconds)
    except Unusable as error:
        raise ToolError(str(error)) from None
    return await _told(context, session, seen, seconds)


async def _told(context: Context[Any], session: Session, seen: Seen, seconds: float) -> Result:
    """The result; before that, a person is asked where a program hides what is typed."""
    start = seen.start
    while seen.state == "waiting for hidden input" and _can_ask(context):
        question = f"{session.prompt or 'A password is wanted'} (asked by: {session.command.strip()[:200]})"
        if is_version_at_least(context.protocol_version or "", "2026-07-28"):
            state = {"session": session.name, "start": start, "seconds": seconds, "count": session.count}
            return _question(question, json.dumps(state))
        answer = await context.elicit(question, Secret)
        if answer.action != "accept":
            return _result(session, seen, "[the person did not give it; the program still waits]")
        _usable(session.write_secret, answer.data.password)
        seen = await session.wait(seconds)
    return _result(session, Seen(seen.state, seen.exit_status, start, seen.end))


def _question(question: str, state: str) -> InputRequiredResult:
    schema = Secret.model_json_schema()
    fields = {
        name: {k: v for k, v in part.items() if k != "$defs"} for name, part in schema["properties"].items()
    }
    asked = {"type": "object", "properties": fields, "required": ["password"]}
    params = ElicitRequestFormParams.model_validate({"message": question, "requestedSchema": asked})
    return InputRequiredResult(input_requests={"secret": ElicitRequest(params=params)}, request_state=state)


async def _answered(context: Context[Any], sessions: Sessions) -> Result:
    """The same call again, now with a person's answer: it must not run anything a second time."""
    state = json.loads(context.request_state or "{}")
    session = sessions.get(state["session"])
    if session.count != state["count"]:
        raise ToolError(f"The session {session.name} has gone on to another command meanwhile.")
    answer = (context.input_responses or {}).get("secret")
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        seen = await session.wait(0)
        whole = Seen(seen.state, seen.exit_status, state["start"], seen.end)
        return _result(session, whole, "[the person did not give it; the program still waits]")
    _usable(session.write_secret, str((answer.content or {}).get("password", "")))
    seen = await session.wait(state["seconds"])
    whole = Seen(seen.state, seen.exit_status, state["start"], seen.end)
    return await _told(context, session, whole, state["seconds"])


def _can_ask(context: Context[Any]) -> bool:
    known = context.client_capabilities
    return known is not None and known.elicitation is not None


def _usable(write: Any, text: str) -> None:
    try:
        write(text)
    except Unusable as error:
        raise ToolError(str(error)) from None


def _result(session: Session, seen: Seen, note: str = "") -> CallToolResult:
    """State and exit status first, then what came."""
    ended = seen.state in ("idle", "closed")
    if ended:
        first = f"exit status {seen.exit_status}"
        if seen.state == "closed":
            first = f"the shell has ended, {first}"
    elif seen.state == "waiting for hidden input":
        first = f"waiting for hidden input, which only a person may give: {session.prompt}"
    else:
        first = seen.state
    output = plain(session.transcript.read(seen.start, seen.end)).rstrip("\n")
    where = f"page(session={session.name!r}, start={seen.start}) shows it"
    parts = [first, cut(output, SHOWN, where) if output else "", note]
    return CallToolResult(
        content=[TextContent(type="text", text="\n".join(part for part in parts if part))],
        structured_content={
            "session": session.name,
            "state": "ended" if seen.state == "idle" else seen.state,
            "exit_status": seen.exit_status if ended else None,
            "start": seen.start,
            "end": seen.end,
        },
    )
