"""How endpoints answer: behind the token, every error as a status and a sentence."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from textor.errors import JournalError, TextorError, UseError
from textor.guard import bearer, holds_token, problem

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

MAX_BODY = 4_000_000  #: bytes of a request's body

logger = logging.getLogger("textor.server")


class Refused(Exception):
    """A request that ends with this status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def answering(endpoint: Endpoint, token: str | None) -> Endpoint:
    """`endpoint` behind the token (None: open to all whom the guard lets in)."""

    async def answer(request: Request) -> Response:
        if token is not None and not holds_token(bearer(request), token):
            return unknown_caller()
        try:
            return await endpoint(request)
        except Refused as refused:
            return problem(refused.status, str(refused))
        except JournalError as error:
            return problem(503, str(error))
        except TextorError as error:
            return problem(400, str(error))
        except Exception as error:
            logger.error("%s %s failed: %r", request.method, request.url.path, error)
            logger.debug("where it failed", exc_info=True)
            return problem(500, "Textor failed inside; its log says where.")

    return answer


def unknown_caller(
    sentence: str = "The token is missing or wrong: use the address that Textor printed.",
) -> Response:
    response = problem(401, sentence)
    response.headers["www-authenticate"] = "Bearer"
    return response


def as_json(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")


async def body_of(request: Request, most: int = MAX_BODY) -> bytes:
    """The body; `Refused` (413) when it is bigger than `most` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise Refused(413, f"The request is bigger than {most // 1_000_000 or 1} MB.")
    return bytes(body)


def read_json(body: bytes, type: type[T]) -> T:
    """The body as a `type`; `UseError` with what is wrong with it."""
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UseError(f"The request cannot be read: {str(error).rstrip('.')}.") from None
