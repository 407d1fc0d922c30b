"""The HTTP interface over a machine: events out, commands in, and the page.

| way | |
|---|---|
| GET /api/health | the version; the only one that needs no token |
| GET /api/sessions | the sessions, the last used first |
| POST /api/sessions | `commands.Create` -> `{session}` |
| GET /api/sessions/ID/events?after=N | the events above N; as SSE, for ever, when asked to |
| POST /api/sessions/ID/commands | one of `commands` -> `{id}`; its effect comes as events |
| GET /api/models, /api/agents | what can be chosen |
| WebSocket /api/stream | see `stream` |
| /capability, /example, /api/apps…, /api/profiles…, /v1/embeddings | see `broker_routes` |
| /v1/plans… | see `plan_routes` |

An error is `{"error": sentence}` with a status of 4xx, or 5xx where it is ours.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

import textor
from textor.errors import JournalError, UseError
from textor.events import to_json
from textor.guard import LOOPBACK, Guard, problem
from textor.processors import model_for
from textor.server import commands
from textor.server.answers import Endpoint, Refused, answering, as_json, body_of
from textor.server.broker_routes import broker_routes
from textor.server.plan_routes import plan_routes
from textor.server.stream import Early, stream

if TYPE_CHECKING:
    from textor.assembly import Machine
    from textor.session import Session

PAGE = Path(__file__).parent / "page"


def create_app(
    machine: Machine,
    token: str,
    *,
    workspace: Path | None = None,
    allowed_hosts: Iterable[str] = LOOPBACK,
) -> Starlette:
    """The application. New sessions work in `workspace`, by default the current folder."""
    api = Api(machine, workspace or Path.cwd())

    def private(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        return Route(path, answering(endpoint, token), methods=[method])

    async def streaming(websocket: WebSocket) -> None:
        await stream(websocket, machine, token, api.early)

    routes = [
        Route("/api/health", answering(health, None), methods=["GET"]),
        private("/api/sessions", api.sessions),
        private("/api/sessions", api.create, "POST"),
        private("/api/sessions/{session}/events", api.events),
        private("/api/sessions/{session}/commands", api.command, "POST"),
        private("/api/models", api.models),
        private("/api/agents", api.agents),
        WebSocketRoute("/api/stream", streaming),
        *broker_routes(machine, token),
        *plan_routes(machine, token, api.workspace),
        Mount("/", StaticFiles(directory=PAGE, html=True)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, allowed_hosts=allowed_hosts)],
        exception_handlers={HTTPException: _http_problem},
    )


async def health(request: Request) -> Response:
    return JSONResponse({"version": textor.__version__})


class Api:
    """The endpoints, over one machine."""

    def __init__(self, machine: Machine, workspace: Path) -> None:
        self.machine = machine
        self.workspace = workspace
        self.early = Early(machine.services.hub)

    async def sessions(self, request: Request) -> Response:
        return as_json({"sessions": await self.machine.sessions()})

    async def create(self, request: Request) -> Response:
        wanted = commands.read_create(await body_of(request))
        journal = self.machine.journal
        if await journal.session(wanted.id) is None:
            self.early.expect(wanted.id)
            try:
                await self.machine.create(
                    wanted.text,
                    workspace=self.workspace,
                    agent=wanted.agent,
                    model=wanted.model,
                    id=wanted.id,
                )
            except JournalError:
                if await journal.session(wanted.id) is None:
                    raise  # else the same request came twice at once, and the other was first
        return as_json({"session": wanted.id}, 201)

    async def events(self, request: Request) -> Response:
        session = await self._session(request)
        if "text/event-stream" in request.headers.get("accept", ""):
            after = _number(request.headers.get("last-event-id") or request.query_params.get("after", "0"))
            headers = {"cache-control": "no-store"}
            return StreamingResponse(_sse(session, after), media_type="text/event-stream", headers=headers)
        after = _number(request.query_params.get("after", "0"))
        return as_json({"events": [to_json(e) async for e in self.machine.journal.read(session.id, after)]})

    async def command(self, request: Request) -> Response:
        session = await self._session(request)
        command = commands.read_command(await body_of(request))
        return as_json({"id": await commands.perform(session, command)})

    async def models(self, request: Request) -> Response:
        machine = self.machine
        definition = machine.definition(machine.default_agent(), self.workspace)
        usual = model_for(machine.config, definition)
        config = str(machine.config.path)
        return as_json({"models": await machine.models(), "default": usual, "config": config})

    async def agents(self, request: Request) -> Response:
        types = self.machine.agent_types(self.workspace)
        usual = self.machine.default_agent()
        return as_json({"agents": [{"type": t.type, "purpose": t.purpose} for t in types], "default": usual})

    async def _session(self, request: Request) -> Session:
        try:
            return await self.machine.session(request.path_params["session"])
        except UseError as error:
            raise Refused(404, str(error)) from None


async def _sse(session: Session, after: int) -> AsyncIterator[str]:
    async for event in session.follow(after):
        yield f"id: {event.seq}\ndata: {json.dumps(to_json(event), ensure_ascii=False)}\n\n"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UseError(f"`after` must be the number of an event, not {text[:40]!r}.")
    return int(text)


async def _http_problem(request: Request, error: Exception) -> Response:
    """What starlette itself refuses: unknown paths and methods."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    sentences = {
        404: f"There is nothing at {request.url.path[:200]!r}.",
        405: "This method is not for this path.",
    }
    return problem(status, sentences.get(status, str(error)))
