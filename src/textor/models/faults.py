"""The errors of the client library as `ModelError`: a sentence, the address, what to do.

Imports the library, so it is itself imported only when a request is made.
"""

from __future__ import annotations

import json

import httpx2
from pydantic_ai import exceptions as library

from textor.errors import ModelError, ModelFault
from textor.models.server import Server

#: How much of a server's own words is repeated.
QUOTED = 300


def model_error(error: Exception, server: Server, *, begun: bool) -> ModelError:
    """`error` in our words. `begun`: something of the reply had come already."""
    if isinstance(error, ModelError):
        return error
    fault = _fault(error, begun)
    status = error.status_code if isinstance(error, library.ModelHTTPError) else None
    retry_after = error.retry_after if isinstance(error, library.ModelAPIError) else None
    said = said_by(error, server)
    sentence, hint = _words(fault, error, server, status)
    if said and fault not in ("timeout", "cut"):
        sentence = f"{sentence} It said: {said}"
    return ModelError(sentence, hint, fault=fault, retry_after=retry_after, status=status)


def said_by(error: BaseException, server: Server) -> str:
    """The server's own words, on one line, short, and without the key."""
    text = ""
    body = error.body if isinstance(error, library.ModelAPIError) else None
    if isinstance(body, dict):
        inner = body.get("error", body)
        found = inner.get("message", inner) if isinstance(inner, dict) else inner
        text = found if isinstance(found, str) else json.dumps(found, default=str)
    elif isinstance(body, str):
        text = body
    elif isinstance(error, library.AgentRunError | library.UserError | httpx2.HTTPError):
        text = "" if isinstance(error, library.ModelHTTPError) else str(error)
    if server.api_key:
        text = text.replace(server.api_key, "…")
    text = " ".join(text.split())
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


_CLASSES: tuple[tuple[type[Exception], ModelFault], ...] = (
    # the first that fits: an error is often of several of these classes
    (library.ModelRequestTimeout, "timeout"),
    (library.ModelTimeoutError, "timeout"),
    (library.ModelContextWindowExceededError, "context"),
    (library.ModelAuthenticationError, "auth"),
    (library.ModelQuotaExceededError, "refused"),
    (library.ModelRequestRejectedError, "refused"),
    (library.ModelRateLimitError, "rate"),
    (library.ModelUnavailableError, "server"),
    (library.ModelServerError, "server"),
)


def _fault(error: Exception, begun: bool) -> ModelFault:
    for kind, fault in _CLASSES:
        if isinstance(error, kind):
            return fault
    if isinstance(error, library.ModelConnectionError | httpx2.TransportError | httpx2.StreamError):
        return "cut" if begun else "server"
    if isinstance(error, library.ModelHTTPError):
        return "server" if error.status_code >= 500 else "refused"
    if isinstance(error.__cause__, json.JSONDecodeError | UnicodeDecodeError):
        return "junk"
    if isinstance(error, library.ModelAPIError):
        return "cut" if "finish_reason" in error.message else "server"
    if isinstance(error, library.UnexpectedModelBehavior):
        return "cut" if not begun else "junk"
    if isinstance(error, library.UserError):
        return "refused"
    return "junk"


def _words(fault: ModelFault, error: Exception, server: Server, status: int | None) -> tuple[str, str]:
    """What happened and what to do."""
    who = f"{server.id} at {server.base_url}"
    key = f"[providers.{server.provider}]"
    if fault == "auth":
        return f"{who} refused the key.", f"Check `api_key` of {key} (see `textor config path`)."
    if fault == "rate":
        return f"{who} has had too many requests.", "Wait a little, or use another model."
    if fault == "context":
        hint = f"Start a new session, or set `context_window` of {key} to what the server has."
        return f"The prompt is longer than {who} can read.", hint
    if fault == "timeout":
        return f"{who} did not answer in time ({_timeout(error)}).", f"Raise it under {key}, or try again."
    if fault == "cut":
        return f"The reply of {who} broke off before its end.", "Try again."
    if fault == "junk":
        return f"{who} sent something that is no reply.", f"Check `base_url` of {key}."
    if fault == "refused":
        if isinstance(error, library.ModelQuotaExceededError):
            return f"The credit at {who} is used up.", "Top it up, or use another model."
        if isinstance(error, library.ModelNotFoundError):
            hint = f"Check the model's name and `base_url` of {key}; see `textor models list`."
            return f"There is no {who}.", hint
        code = f" with status {status}" if status else ""
        return f"{who} refused the request{code}.", "Its words say why."
    if isinstance(error, library.ModelConnectionError | httpx2.TransportError):
        return f"{who} cannot be reached.", "Check that the server runs and the network is there."
    code = f" with status {status}" if status else ""
    return f"{who} failed{code}.", "Try again later, or use another model."


def _timeout(error: Exception) -> str:
    if isinstance(error, library.ModelRequestTimeout):
        return f"{error.setting} = {error.timeout:g} s"
    return "the connection timed out"
