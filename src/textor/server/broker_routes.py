"""The broker over HTTP: programs register here, and a person decides about them.

| way | |
|---|---|
| POST /capability | one capability in the JSON of the document, or a list of them |
| GET /capability | all but LAUNCH, as the document lists them |
| DELETE /capability/CLASS | forget a class |
| POST, GET /example | the same for examples |
| GET /api/apps | the apps, their windows, what waits for a yes |
| GET /api/apps/pending | what waits |
| POST /api/apps/pending/CLASS | `{allow}` |
| POST /api/apps/install | `{app}`: one that is in the box |
| POST /api/apps/start, /stop, /point | `{app}`: a class, or the id of an instance |
| GET /api/profiles; POST | `{name, apps}` makes one, `{name, remove: true}`, `{active: NAME}` |
| POST /v1/embeddings | as OpenAI has it |

A registration with the token counts at once; without one the answer is 401, and it waits for a yes of
the person. Paths of the document may end with a slash.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from textor.broker.book import Conflict
from textor.broker.box import install, missing
from textor.broker.forms import ExampleForm, Form, read_example, read_form
from textor.broker.view import app_json, document_example, document_form, instance_json, profiles_json
from textor.errors import CapabilityError, ModelError, UseError
from textor.events import Stored
from textor.guard import bearer, holds_token
from textor.server.answers import (
    Endpoint,
    Refused,
    answering,
    as_json,
    body_of,
    read_json,
    unknown_caller,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from textor.assembly import Machine
    from textor.values import Json

MAX_FORMS = 2_000_000  #: bytes of a registration
MAX_INPUTS = 2_048  #: texts of a request for embeddings
WAITS = "This registration waits for a yes of the person; with the token it counts at once."


def broker_routes(machine: Machine, token: str) -> list[Route]:
    """The routes, in front of the page's."""
    api = Registering(machine, token)
    desk = Desk(machine, token)

    def private(path: str, endpoint: Endpoint, method: str = "GET") -> Route:
        return Route(path, answering(endpoint, token), methods=[method])

    routes: list[Route] = []
    for end in ("", "/"):
        routes += [
            Route(f"/capability{end}", answering(api.capability, None), methods=["POST"]),
            Route(f"/example{end}", answering(api.example, None), methods=["POST"]),
            private(f"/capability{end}", api.capabilities),
            private(f"/example{end}", api.examples),
            private("/capability/{name}" + end, api.remove, "DELETE"),
        ]
    return [
        *routes,
        private("/api/apps", desk.apps),
        private("/api/apps/pending", desk.pending),
        private("/api/apps/pending/{name}", desk.decide, "POST"),
        private("/api/apps/install", desk.install, "POST"),
        private("/api/apps/start", desk.start, "POST"),
        private("/api/apps/stop", desk.stop, "POST"),
        private("/api/apps/point", desk.point, "POST"),
        private("/api/profiles", desk.profiles),
        private("/api/profiles", desk.change_profile, "POST"),
        private("/v1/embeddings", desk.embeddings, "POST"),
    ]


class Registering:
    """The ways of the document."""

    def __init__(self, machine: Machine, token: str) -> None:
        self._machine = machine
        self._token = token

    async def capability(self, request: Request) -> Response:
        return await self._register(request, read_form)

    async def example(self, request: Request) -> Response:
        return await self._register(request, read_example)

    async def _register(self, request: Request, read: Callable[[Json], Form | ExampleForm]) -> Response:
        given = bearer(request)
        if given and not holds_token(given, self._token):
            return unknown_caller("The token is wrong.")
        content = read_json(await body_of(request, MAX_FORMS), Any)
        broker = self._machine.broker
        forms = [read(each) for each in (content if isinstance(content, list) else [content])]
        if not given:
            for form in forms:
                broker.waiting.add(form)
            return unknown_caller(WAITS)
        try:
            await broker.register(forms)
        except Conflict as error:
            raise Refused(409, str(error)) from None
        return as_json({"registered": len(forms)})

    async def capabilities(self, request: Request) -> Response:
        book = self._machine.broker.apps.book
        return as_json([document_form(e.form) for app in book.apps.values() for e in app.entries.values()])

    async def examples(self, request: Request) -> Response:
        return as_json([document_example(x) for x in self._machine.broker.apps.book.examples.values()])

    async def remove(self, request: Request) -> Response:
        apps = self._machine.broker.apps
        try:
            found = apps.book.app(request.path_params["name"]).name
        except UseError as error:
            raise Refused(404, str(error)) from None
        await apps.store.write(lambda: apps.book.remove(found))
        return as_json({"removed": found})


class Wish(msgspec.Struct, frozen=True):
    """An app by its class, or an instance by its id."""

    app: str


class Decision(msgspec.Struct, frozen=True):
    allow: bool


class ProfileWish(msgspec.Struct, frozen=True):
    name: str = ""
    apps: tuple[str, ...] = ()
    remove: bool = False
    active: str | None = None


class Texts(msgspec.Struct, frozen=True):
    """A request for embeddings; `model` may be anything, there is one."""

    input: str | list[str]
    model: str = ""
    encoding_format: str = "float"
    dimensions: int | None = None


class Desk:
    """What the person's faces ask for."""

    def __init__(self, machine: Machine, token: str) -> None:
        self._machine = machine
        self._token = token

    async def apps(self, request: Request) -> Response:
        broker = self._machine.broker
        records = await broker.apps.prune()
        book = broker.apps.book
        return as_json(
            {
                "apps": [app_json(app, broker.apps, records) for app in book.apps.values()],
                "pending": broker.waiting.listed(book),
                "profile": book.active,
                "box": missing(app.launch.form.arguments for app in book.apps.values()),
            }
        )

    async def install(self, request: Request) -> Response:
        wish = read_json(await body_of(request), Wish)
        host, port = request.scope["server"]
        address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        told = await install(wish.app, address, self._token, self._machine.config.data)
        return as_json({"text": told}, 201)

    async def pending(self, request: Request) -> Response:
        broker = self._machine.broker
        return as_json({"pending": broker.waiting.listed(broker.apps.book)})

    async def decide(self, request: Request) -> Response:
        wish = read_json(await body_of(request), Decision)
        broker, name = self._machine.broker, request.path_params["name"]
        try:
            registered = await broker.decide(name, wish.allow)
        except Conflict as error:
            raise Refused(409, str(error)) from None
        except UseError as error:
            raise Refused(404, str(error)) from None
        return as_json({"registered": registered})

    async def start(self, request: Request) -> Response:
        wish = read_json(await body_of(request), Wish)
        try:
            record = await self._machine.broker.apps.start(wish.app)
        except CapabilityError as error:
            raise Refused(424, str(error)) from None
        return as_json(instance_json(record, self._machine.broker.apps), 201)

    async def stop(self, request: Request) -> Response:
        wish = read_json(await body_of(request), Wish)
        apps = self._machine.broker.apps
        return as_json(instance_json(await apps.stop(wish.app), apps) | {"state": "ended"})

    async def point(self, request: Request) -> Response:
        wish = read_json(await body_of(request), Wish)
        apps = self._machine.broker.apps
        return as_json(instance_json(await apps.point_at(wish.app), apps))

    async def profiles(self, request: Request) -> Response:
        return as_json(profiles_json(self._machine.broker.apps.book))

    async def change_profile(self, request: Request) -> Response:
        wish = read_json(await body_of(request), ProfileWish)
        apps = self._machine.broker.apps

        def change() -> list[Stored]:
            if wish.active is not None:
                return apps.book.activate(wish.active)
            return apps.book.set_profile(wish.name, None if wish.remove else wish.apps)

        await apps.store.write(change)
        return as_json(profiles_json(apps.book))

    async def embeddings(self, request: Request) -> Response:
        wish = read_json(await body_of(request), Texts)
        texts = [wish.input] if isinstance(wish.input, str) else wish.input
        if not texts or len(texts) > MAX_INPUTS:
            raise UseError(f"input holds {len(texts)} texts; it takes from 1 to {MAX_INPUTS}.")
        if wish.encoding_format not in ("float", "base64"):
            raise UseError("encoding_format must be float or base64.")
        vectors, model = await vectors_of(self._machine, texts)
        if wish.dimensions not in (None, vectors.shape[1]):
            raise UseError(f"The vectors of {model} have {vectors.shape[1]} dimensions, and no others.")
        plain = wish.encoding_format == "float"
        data = [
            {
                "object": "embedding",
                "index": at,
                "embedding": row.tolist() if plain else base64.b64encode(row.tobytes()).decode(),
            }
            for at, row in enumerate(vectors)
        ]
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return as_json({"object": "list", "data": data, "model": model, "usage": usage})


async def vectors_of(machine: Machine, texts: list[str]) -> tuple[Any, str]:
    """The vectors, one a row, and the model's name. `Refused` (503) where there is no model."""
    import asyncio

    embedder = machine.broker.embedder
    if embedder is None:
        raise Refused(
            503, "There is no embedding model here; `python -m textor.memory.embedder_fetch` fetches it."
        )
    try:
        return await asyncio.to_thread(embedder.encode, texts, "query"), embedder.model_id
    except ModelError as error:
        raise Refused(503, str(error)) from None
