"""The embedding service of the document, on a port of its own (7770 there) when it is configured.

| way | |
|---|---|
| GET / | a word that it is there |
| GET /embedding/TEXT | `{"Vector": [...]}` |
| GET /compare?phrase1=&phrase2= | `{"dot", "v1", "v2"}` |

It needs no token, since programs of the document bring none; host and origin are checked as always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from textor.errors import UseError
from textor.guard import LOOPBACK, Guard
from textor.server.answers import answering, as_json
from textor.server.broker_routes import vectors_of

if TYPE_CHECKING:
    from textor.assembly import Machine

LONGEST = 20_000  #: characters of a text


def create_embedding_app(machine: Machine) -> Starlette:
    async def home(request: Request) -> Response:
        return PlainTextResponse("Textor: the embedding model answers at /embedding/TEXT.")

    async def embedding(request: Request) -> Response:
        vectors, _ = await vectors_of(machine, [_checked(request.path_params["text"])])
        return as_json({"Vector": vectors[0].tolist()})

    async def compare(request: Request) -> Response:
        texts = [_checked(request.query_params.get(name, "")) for name in ("phrase1", "phrase2")]
        vectors, _ = await vectors_of(machine, texts)
        first, second = vectors.tolist()
        dot = sum(a * b for a, b in zip(first, second, strict=True))
        return as_json({"dot": dot, "v1": first, "v2": second})

    return Starlette(
        routes=[
            Route("/", answering(home, None)),
            Route("/embedding/{text:path}", answering(embedding, None)),
            Route("/compare", answering(compare, None)),
        ],
        middleware=[Middleware(Guard, allowed_hosts=LOOPBACK)],
    )


def _checked(text: str) -> str:
    if not text.strip() or len(text) > LONGEST:
        raise UseError(f"The text has {len(text)} characters; from 1 to {LONGEST} can be embedded.")
    return text
