"""Local model servers that are running now: Ollama and LM Studio on their usual ports.

Asked with the standard library: the client library need not be loaded to find that nothing runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from textor.models.known import KNOWN

#: Seconds that a server on this machine may take to answer.
PATIENCE = 0.5

#: More than this is no list of models (bytes).
LONGEST_ANSWER = 1_000_000

LOCAL: dict[str, str] = {p.name: p.base_url for p in KNOWN.values() if p.free}


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] = []


async def discover(
    addresses: Mapping[str, str] | None = None, *, patience: float = PATIENCE
) -> tuple[str, ...]:
    """The ids ("ollama:llama3.2") of the models that local servers offer.

    `addresses` maps providers to base URLs (".../v1"); by default Ollama and LM Studio. All are
    asked at once; one that does not answer within `patience` seconds is not there. Never raises.
    """
    asked = LOCAL if addresses is None else addresses
    found = await asyncio.gather(*(_models(url, patience) for url in asked.values()))
    return tuple(f"{provider}:{name}" for provider, names in zip(asked, found, strict=True) for name in names)


async def _models(base_url: str, patience: float) -> list[str]:
    try:
        async with asyncio.timeout(patience):
            answer = await _get(f"{base_url.rstrip('/')}/models")
        return [model.id for model in msgspec.json.decode(answer, type=_Models).data]
    except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, msgspec.MsgspecError):
        return []


async def _get(url: str) -> bytes:
    """The body of a plain GET on this machine."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        # HTTP/1.0, so that the answer ends with the connection and comes in one piece.
        head = f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode("latin-1"))
        head_bytes = await reader.readuntil(b"\r\n\r\n")
        if b" 200" not in head_bytes.split(b"\r\n", 1)[0]:
            raise ValueError("no list of models")
        fields = dict(_field(line) for line in head_bytes.split(b"\r\n"))
        if length := int(fields.get("content-length", "0")):
            return await reader.readexactly(min(length, LONGEST_ANSWER))
        return await _to_the_end(reader)
    finally:
        writer.close()


async def _to_the_end(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while len(body) < LONGEST_ANSWER and (piece := await reader.read(65_536)):
        body += piece
    return bytes(body)


def _field(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("latin-1").partition(":")
    return name.strip().lower(), value.strip()
