"""One HTTP call to an app, and what its answer is as an outcome.

Answers are read up to a limit, never followed elsewhere and never past their time; whatever comes,
there is one outcome with a sentence that says what it was.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import re
from typing import Any, NamedTuple
from urllib.parse import quote

from textor.actions import Outcome
from textor.broker.forms import Form
from textor.errors import CapabilityError
from textor.values import BIG, Blobs, Json, Value, blob_value, shown, text_value

TIMEOUT = 60.0  #: seconds for one call
PROBE = 2.0  #: seconds for a question after health
MOST = 20_000_000  #: bytes of an answer


class Unsure(CapabilityError):
    """The call went out and no answer came: it may have acted or not."""


class Answer(NamedTuple):
    status: int
    media_type: str
    content: bytes


async def health(port: int, nonce: str) -> Json:
    """What an app of our SDK says of itself; None for one that knows no such thing."""
    try:
        answer = await _ask(port, "GET", f"health?nonce={nonce}", None, "", PROBE, 100_000)
        return json.loads(answer.content) if answer.status == 200 else None
    except (CapabilityError, ValueError):
        return None


async def call(
    form: Form, port: int, token: str, arguments: dict[str, Json], timeout: float = TIMEOUT
) -> Answer:
    """Send one action. Raises `CapabilityError` when no whole answer came."""
    path, body = quote(form.route, safe="/-._~"), None
    given = arguments
    if form.schema is None:
        text = str(arguments.get("text", ""))
        given = {"Text": text} if form.contract or "text" in arguments else {}
    if form.method in ("GET", "DELETE"):
        if given:
            path += "?" + "&".join(
                f"{quote(k, safe='')}={quote(_plain(v), safe='')}" for k, v in given.items()
            )
    else:
        body = given
    return await _ask(port, form.method, path, body, token, timeout, MOST)


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def _ask(
    port: int, method: str, path: str, body: Json, token: str, timeout: float, most: int
) -> Answer:
    import httpx

    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        async with (
            asyncio.timeout(timeout),
            httpx.AsyncClient(trust_env=False, timeout=None) as client,
            client.stream(method, f"http://127.0.0.1:{port}/{path}", json=body, headers=headers) as answer,
        ):
            content = bytearray()
            async for chunk in answer.aiter_bytes():
                content += chunk
                if len(content) > most:
                    raise CapabilityError(
                        f"Its answer is bigger than {most // 1_000_000} MB and was not taken."
                    )
            media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            return Answer(answer.status_code, media_type, bytes(content))
    except TimeoutError:
        raise Unsure(f"It did not answer within {timeout:g} seconds.") from None
    except httpx.ConnectError as error:
        raise CapabilityError(f"It takes no connection: {error}.") from None
    except httpx.HTTPError as error:
        raise Unsure(f"It broke the connection off: {str(error) or type(error).__name__}.") from None


# -- outcomes --------------------------------------------------------------------------------


def outcome_of(answer: Answer, what: str, app_class: str, blobs: Blobs) -> Outcome:
    """What came of a call. `what` is the action in words, for an answer that says nothing."""
    if answer.status >= 400 or answer.status < 200:
        return Outcome.failed(f"{app_class} answered {answer.status}{_reason(answer)}")
    if 300 <= answer.status < 400:
        return Outcome.failed(f"{app_class} answered {answer.status}: calls are not sent on elsewhere.")
    labels = (f"app:{app_class}",)
    if not answer.content.strip():
        return Outcome("done", f"Done: {what}.")
    if answer.media_type == "application/json" or answer.media_type.endswith("+json"):
        return _from_json(answer.content, what, labels, blobs)
    if answer.media_type.startswith("text/") or not answer.media_type:
        return _text(answer.content.decode("utf-8", "replace"), labels, blobs)
    value = _blob(answer.content, answer.media_type, "", labels, blobs)
    return Outcome("done", f"Done: {what}. It gave a {value.kind}.", (value,), labels=labels)


def _reason(answer: Answer) -> str:
    """The sentence in an error's body, as ours and others write them."""
    text = answer.content[:4_000].decode("utf-8", "replace").strip()
    with contextlib.suppress(ValueError):
        told = json.loads(text)
        for key in ("error", "message", "detail", "title"):
            if isinstance(told, dict) and isinstance(told.get(key), str):
                return f": {told[key]}"
    return f": {text[:500]}" if text and not text.startswith("<") else "."


def _from_json(content: bytes, what: str, labels: tuple[str, ...], blobs: Blobs) -> Outcome:
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        return _text(content.decode("utf-8", "replace"), labels, blobs)
    if not (isinstance(told, dict) and ("text" in told or "image" in told) and set(told) <= _OURS):
        return _text(json.dumps(told, ensure_ascii=False, indent=1), labels, blobs, data=told)
    text, data, image = (
        str(told.get("text") or ""),
        told.get("data"),
        _image(told.get("image"), labels, blobs),
    )
    if data is not None:
        text = "\n".join(filter(None, (text, json.dumps(data, ensure_ascii=False))))
    plain = data is None and image is None and text.startswith("Done: ")
    outcome = _text(text or f"Done: {what}.", () if plain else labels, blobs, data=data)
    if image is None:
        return outcome
    return Outcome("done", outcome.text, (*outcome.values, image), data, labels=labels)


_MEDIA = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_OURS = {"text", "data", "image", "version"}  #: the form of our SDK


def _image(told: Any, labels: tuple[str, ...], blobs: Blobs) -> Value | None:
    if not isinstance(told, dict) or not isinstance(told.get("data"), str):
        return None
    try:
        content = base64.b64decode(told["data"], validate=True)
    except (binascii.Error, ValueError):
        return None
    return _blob(content, str(told.get("type") or "image/png"), str(told.get("name") or ""), labels, blobs)


def _blob(content: bytes, media_type: str, name: str, labels: tuple[str, ...], blobs: Blobs) -> Value:
    if not _MEDIA.fullmatch(media_type):  # it becomes a header one day
        media_type = "application/octet-stream"
    kind = media_type.partition("/")[0]
    plain = "".join(c if c.isalnum() else "_" for c in name.rpartition(".")[0] or name).strip("_")
    name = plain if plain[:1].isalpha() else ""
    known = kind if kind in ("image", "audio", "video") else "file"
    return blob_value(content, known, media_type, blobs, name=name, labels=labels)  # type: ignore[arg-type]


def _text(text: str, labels: tuple[str, ...], blobs: Blobs, data: Json = None) -> Outcome:
    value = text_value(text, blobs, labels=labels)
    if value.size <= BIG:
        return Outcome("done", value.text or "", data=data, labels=labels)
    return Outcome("done", shown(text, value.handle), (value,), data=data, labels=labels)
