"""Images: built by the engine from a folder that is sent along, looked at, and asked what they hold."""

from __future__ import annotations

import asyncio
import io
import json
import secrets
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textor.containers.client import EngineError, Missing
from textor.containers.engine import Engine, Spec, output_of
from textor.containers.labels import SANDBOX, Owner
from textor.values import Json

#: Where programs are, for images that do not say.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Bytes of memory that a build may use.
MEMORY = 4 << 30
#: Seconds that a program is given which only looks at an image.
PATIENCE = 60.0


@dataclass(frozen=True)
class Image:
    """An image that the engine has."""

    id: str
    labels: dict[str, str]


async def look(engine: Engine, name: str) -> Image | None:
    """The image of a name; None when there is none."""
    try:
        told = await engine.client.call("GET", f"/images/{name}/json")
    except Missing:
        return None
    config = told.get("Config") or told.get("ContainerConfig") or {}
    return Image(told["Id"], dict(config.get("Labels") or {}))


def packed(files: Mapping[str, str | Path]) -> bytes:
    """A context: texts, files and folders by their names in it. Compiled Python stays out."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, content in files.items():
            if isinstance(content, Path):
                archive.add(content, name, filter=_plain)
                continue
            data = content.encode()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return held.getvalue()


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if info.name.endswith("__pycache__"):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


async def build(
    engine: Engine,
    context: bytes,
    name: str,
    *,
    arguments: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    target: str = "",
    network: bool = False,
) -> str:
    """Build an image from a context with a Dockerfile, and give its id. Its steps have a network
    only with `network`. `EngineError` with the end of what was said when it fails."""
    query: dict[str, Json] = {
        "t": name,
        "buildargs": dict(arguments),
        "labels": dict(labels or {}),
        "target": target,
        "networkmode": "" if network else "none",
        "memory": MEMORY,
        "memswap": MEMORY,
        "rm": True,
        "forcerm": True,
    }
    query = {key: value for key, value in query.items() if value != ""}
    stream = await engine.client.open("POST", "/build", query, context, patience=None)
    try:
        told = b"".join([piece async for piece in stream.pieces()]).decode("utf-8", "replace")
    finally:
        stream.close()
    said = ""
    for line in told.splitlines():
        event = _event(line)
        said = (said + str(event.get("stream", "")))[-2000:]
        if "error" in event:
            raise EngineError(f"The image {name} cannot be built: {event['error']}\n{said.strip()}")
    image = await look(engine, name)
    if image is None:
        raise EngineError(f"The image {name} was not built: {said.strip()}")
    return image.id


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


async def prune(engine: Engine, label: str) -> None:
    """Remove images without a name that have a label: the stages of a build that is done."""
    filters = {"dangling": ["true"], "label": [label]}
    await engine.client.call("POST", "/images/prune", {"filters": filters}, patience=120.0)


async def ask(engine: Engine, image: str, argv: Sequence[str], owner: Owner) -> str:
    """What a program of an image prints, in a container like any other (no network, no privileges).
    `EngineError` when it fails."""
    spec = Spec(
        name=f"textor-ask-{secrets.token_hex(6)}",
        image=image,
        entrypoint=list(argv[:1]),
        command=list(argv[1:]),
        environment={"PATH": PATH},
        labels=owner.labels(SANDBOX),
        user="65534:65534",
    )
    id = await engine.create(spec)
    try:
        await engine.start(id)
        async with asyncio.timeout(PATIENCE):
            status = await engine.wait(id)
        stream = await engine.logs(id, follow=False)
        try:
            told = [(number, data) async for number, data in output_of(stream)]
        finally:
            stream.close()
    except TimeoutError:
        raise EngineError(f"{argv[0]} in {image} did not end within {PATIENCE:g} s.") from None
    finally:
        await asyncio.shield(engine.remove(id))
    if status:
        errors = b"".join(data for number, data in told if number == 2).decode("utf-8", "replace")
        raise EngineError(f"{argv[0]} in {image} ended with {status}: {errors.strip()[-300:]}")
    return b"".join(data for number, data in told if number == 1).decode("utf-8", "replace")
