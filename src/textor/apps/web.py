"""The web server of an app: its actions, its page, and the stream that keeps pages up to date.

| way | |
|---|---|
| METHOD /route | an action: parameters as JSON (or in the query of a GET) -> `{text, data, image, version}` |
| GET /health?nonce=N | name, version, pid, proof = HMAC-SHA-256 of N with the launch token; needs no token |
| GET / and /static/… | the page; needs no token, since there is nothing in it |
| GET /app/state | the document with its version |
| GET /app/events | the same as server-sent events, at once and after each change |
| POST /app/edit | `{path, value, base, document}`: a person changed one field |
| POST /app/undo | takes back the last change of the AI |
| GET /app/picture.svg, /app/picture.png | the picture of the document, where the app draws one |
| GET /app/documents, POST /app/open `{id}`, POST /app/new | the kept documents |

An error is `{"error": sentence}` with a status of 4xx, or 5xx where the app is at fault.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from textor.apps.action import Action
from textor.apps.pictures import picture_of
from textor.apps.store import By, Refused
from textor.errors import TextorError
from textor.guard import LOOPBACK, Guard, bearer, holds_token, problem
from textor.near import did_you_mean, nearest

if TYPE_CHECKING:
    from textor.apps.sdk import App

Endpoint = Callable[[Request], Awaitable[Response]]

STATIC = Path(__file__).parent / "static"
MAX_BODY = 4_000_000  #: bytes of a request that is no action
BY = "x-textor-by"  #: the page of an app says "person" here; it tells who did what, and opens nothing

logger = logging.getLogger("textor.apps")


class Edit(msgspec.Struct, frozen=True):
    path: str
    value: Any
    base: Any = None
    document: str = ""


class Open(msgspec.Struct, frozen=True):
    id: str


def proof(token: str, nonce: str) -> str:
    """What only the process shows that was given this launch token; "" without one."""
    return hmac.new(token.encode(), nonce.encode(), hashlib.sha256).hexdigest() if token else ""


def create_app(app: App[Any], token: str = "") -> Starlette:
    """The application over `app`; with a token, every way to the document needs it."""
    pages = Pages(app)

    def private(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        return Route(path, _answering(endpoint, token), methods=[method])

    async def health(request: Request) -> Response:
        nonce = request.query_params.get("nonce", "")[:200]
        told = {"name": app.name, "title": app.title, "version": app.version, "pid": os.getpid()}
        return JSONResponse(told | {"proof": proof(token, nonce)})

    routes: list[Route | Mount] = [
        Route("/health", _answering(health, ""), methods=["GET"]),
        private("/app/state", pages.state),
        private("/app/events", pages.events),
        private("/app/edit", pages.edit, "POST"),
        private("/app/undo", pages.undo, "POST"),
        private("/app/picture.svg", pages.svg),
        private("/app/picture.png", pages.png),
        private("/app/documents", pages.documents),
        private("/app/open", pages.open, "POST"),
        private("/app/new", pages.new, "POST"),
    ]
    routes += [private(f"/{a.route}", _performing(app, a), a.method) for a in app.actions.values()]
    routes += [
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/", _answering(pages.page, ""), methods=["GET"]),
        Mount("/", StaticFiles(directory=app.page or STATIC)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, allowed_hosts=LOOPBACK)],
        exception_handlers={HTTPException: _unknown(app)},
    )


class Pages:
    """What every app's page needs."""

    def __init__(self, app: App[Any]) -> None:
        self.app = app

    async def page(self, request: Request) -> Response:
        from textor.apps.frame import framed

        whole = self.app.page / "index.html" if self.app.page else None
        return FileResponse(whole) if whole and whole.is_file() else HTMLResponse(framed(self.app))

    async def state(self, request: Request) -> Response:
        self.app.store.reload()
        return _json(self.app.store.snapshot())

    async def events(self, request: Request) -> Response:
        headers = {"cache-control": "no-store"}
        return StreamingResponse(self._events(), media_type="text/event-stream", headers=headers)

    async def _events(self) -> AsyncIterator[str]:
        async for snapshot in self.app.store.follow():
            yield f"id: {snapshot['version']}\ndata: {json.dumps(snapshot)}\n\n"

    async def edit(self, request: Request) -> Response:
        edit = _decode(await _body(request, MAX_BODY), Edit)
        if edit.document not in ("", self.app.store.id):
            raise Refused("Another document was opened meanwhile.", status=409)
        may_edit, field = self.app.may_edit, edit.path.partition(".")[0]
        if may_edit and not may_edit(self.app.state, field):
            raise Refused(f"{field[:80]} cannot be edited here.", status=409)
        self.app.store.edit(edit.path, edit.value, edit.base)
        return _json({"version": self.app.store.version})

    async def undo(self, request: Request) -> Response:
        label = self.app.store.undo()
        return _json({"text": f"Took back: {label}.", "version": self.app.store.version})

    async def svg(self, request: Request) -> Response:
        return self._picture("svg")

    async def png(self, request: Request) -> Response:
        return self._picture("png")

    def _picture(self, ending: Literal["svg", "png"]) -> Response:
        made = picture_of(self.app, ending)
        headers = {"content-disposition": f'attachment; filename="{made.name}"'}
        return Response(made.content, media_type=made.type, headers=headers)

    async def documents(self, request: Request) -> Response:
        return _json({"documents": self.app.saved(), "open": self.app.store.id})

    async def open(self, request: Request) -> Response:
        self.app.open(_decode(await _body(request, MAX_BODY), Open).id)
        return _json({"version": self.app.store.version})

    async def new(self, request: Request) -> Response:
        if self.app.documents is None:
            raise Refused("This app has one document.", status=409)
        self.app.new()
        return _json({"version": self.app.store.version})


def _performing(app: App[Any], action: Action) -> Endpoint:
    async def perform(request: Request) -> Response:
        if action.method == "GET":
            body: Any = dict(request.query_params)
        else:
            body = _object(await _body(request, action.max_body))
        by: By = "person" if request.headers.get(BY) == "person" else "ai"
        return _json(await app.run(action, action.arguments(body), by))

    return perform


def _answering(endpoint: Endpoint, token: str) -> Endpoint:
    """`endpoint` behind the token, with every error as a status and a sentence."""

    async def answering(request: Request) -> Response:
        if token and not holds_token(bearer(request), token):
            response = problem(401, "The launch token is missing or wrong.")
            response.headers["www-authenticate"] = "Bearer"
            return response
        try:
            return await endpoint(request)
        except Refused as refused:
            return problem(refused.status, str(refused))
        except TextorError as error:
            return problem(422, str(error))
        except Exception as error:
            logger.error("%s %s failed: %r", request.method, request.url.path, error, exc_info=True)
            return problem(500, f"The app failed inside: {type(error).__name__}. Nothing was changed.")

    return answering


def _unknown(app: App[Any]) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What starlette itself refuses: unknown paths and methods."""

    async def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        path = request.url.path.strip("/")
        routes = {action.route: action.method for action in app.actions.values()}
        if path in routes:
            return problem(405, f"/{path} takes {routes[path]}, not {request.method}.")
        if status in (404, 405):
            near = did_you_mean(f"/{route}" for route in nearest(path, routes))
            return problem(404, f"{app.title} has nothing at /{path[:100]}. {near}".strip())
        return problem(status, str(error))

    return answer


async def _body(request: Request, limit: int) -> bytes:
    """The body, read no further than its limit; a length that is announced is not read at all."""
    told = request.headers.get("content-length", "")
    sentence = f"The request is bigger than {limit // 1_000_000 or 1} MB."
    if told.isdigit() and int(told) > limit:
        raise Refused(sentence, status=413)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise Refused(sentence, status=413)
    return bytes(body)


def _object(content: bytes) -> dict[str, Any]:
    if not content.strip():
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Refused(f"The body is not JSON: {error}.", status=400) from None
    if not isinstance(found, dict):
        raise Refused('The body must be a JSON object, such as {"Text": "…"}.', status=400)
    return found


def _decode(content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise Refused(f"The request does not fit: {error}.", status=400) from None


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")
