"""Images of versions: what Textor needs is one image for each set of packages, a version a thin layer
over it.

Nothing of a version runs while its image is made, and no step of that reaches the network but the
fetching of packages: the Dockerfile is that of the program that runs this, not that of the version,
which an agent may have written.
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

import textor
from textor.containers.client import EngineError
from textor.containers.engine import Engine, find_engine
from textor.containers.images import ask, build, look, packed, prune
from textor.containers.labels import this_process
from textor.errors import TextorError, UseError
from textor.values import sha256_of
from textor.versions import Version, Versions, needs, wheels

#: The label of a version's image: the commit, and what it was made over.
MADE = "textor.made"
#: The extra of pyproject.toml with what a patch is checked with.
TOOLS = "test"
_PROBE = (
    "import json, platform, sys; "
    "print(json.dumps([list(sys.version_info[:2]), platform.machine(), platform.libc_ver()]))"
)


class Images:
    """Images over `base` in one engine. Methods raise `EngineError` or `UseError`."""

    def __init__(self, versions: Versions, base: str, engine: Engine) -> None:
        self.engine = engine
        self._versions = versions
        self._base = base
        self._owner = this_process(versions.data)

    async def version(self, version: Version) -> str:
        """The image of a version whose source is built, by its name."""
        source = self._versions.home(version.commit) / "source"
        over = await self._needs(self._base, needs(source))
        name, made = image_name(version), f"{version.commit} {over}"
        known = await look(self.engine, name)
        if known is not None and MADE not in known.labels:
            raise UseError(f"There is an image {name} that was not made here.", "Choose another tag.")
        if known is None or known.labels[MADE] != made:
            context = packed({**_recipe(()), "src/textor": source / "src" / "textor"})
            await build(self.engine, context, name, arguments={"BASE": over}, labels={MADE: made})
        return name

    async def tools(self, source: Path) -> str:
        """An image with what a source tree needs and what it is checked with, but not itself."""
        over = await self._needs(self._base, needs(source))
        return await self._needs(over, needs(source, TOOLS))

    async def _needs(self, base: str, wanted: Sequence[str]) -> str:
        """An image with packages over another one; made once for each set."""
        below = await look(self.engine, base)
        if below is None:
            await self.engine.pull(base)
            below = await look(self.engine, base)
        assert below is not None  # pulling says why not
        files = _recipe(wanted)
        name = f"textor-needs:{sha256_of(json.dumps([below.id, files]).encode())[:16]}"
        if await look(self.engine, name) is not None:
            return name
        lying: dict[str, Path] = {}
        if await self._fits(base):
            folder = self._versions.folder / "wheels"
            lying = {"wheels": await asyncio.to_thread(wheels, wanted, folder)}
        context = await asyncio.to_thread(packed, {**files, **lying})
        arguments = {"BASE": base}
        await build(self.engine, context, name, arguments=arguments, target="needs", network=not lying)
        await prune(self.engine, "textor.stage=made")
        return name

    async def _fits(self, base: str) -> bool:
        """Whether wheels for the Python that runs here are right for that of an image; else the
        image fetches them itself, while it is built."""
        if find_spec("pip") is None or sys.platform != "linux":
            return False
        told = json.loads(await ask(self.engine, base, ["python3", "-I", "-c", _PROBE], self._owner))
        version, machine, (libc, number) = told
        ours, here = platform.libc_ver()
        same = (version, machine, libc) == (list(sys.version_info[:2]), platform.machine(), ours)
        return same and _numbers(number) >= _numbers(here)


def _recipe(wanted: Sequence[str]) -> dict[str, str]:
    """The files of a context that say how, with the packages that are wanted."""
    root = Path(textor.__file__).resolve().parents[2]
    try:
        files = {name: (root / name).read_text("utf-8") for name in ("Dockerfile", "docker/needs.py")}
    except OSError:
        raise UseError(
            "This program has no Dockerfile beside it, so it makes no images.",
            "Run Textor from a checkout of its source.",
        ) from None
    return {**files, "pyproject.toml": f"[project]\ndependencies = {json.dumps(list(wanted))}\n"}


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def image_name(version: Version) -> str:
    """`textor:TAG`; a tag that no image can have is told apart by its commit."""
    clean = re.sub(r"[^A-Za-z0-9_.-]", "-", version.tag)
    return f"textor:{clean if clean == version.tag else f'{clean}-{version.commit[:8]}'}"


async def images(versions: Versions, base: str) -> Images:
    """Raises `UseError` that says why no images can be made."""
    if not base:
        raise UseError("No base for images is configured ([self] base).")
    engine = await find_engine()
    if engine is None:
        raise UseError("No container engine answers.")
    return Images(versions, base, engine)


async def build_version(versions: Versions, tag: str, base: str) -> tuple[Version, str]:
    """Build a tag as an environment and, where that can be, as an image; with a sentence that says
    what there is now. Raises `UseError` when there is not even the environment."""
    version = await asyncio.to_thread(versions.build, tag)
    begin = f"{tag} is built from {version.commit[:10]}"
    try:
        image = await (await images(versions, base)).version(version)
    except (EngineError, UseError) as error:
        version, told = replace(version, image=""), f"{begin} as an environment only: {_brief(error)}"
    else:
        version, told = replace(version, image=image), f"{begin}: an environment, and the image {image}."
    await asyncio.to_thread(versions.note, version)
    return version, told


def _brief(error: TextorError) -> str:
    """What went wrong, without the whole of what a builder said."""
    text = str(error)
    return text if len(text) <= 1000 else f"{text[:300]} … {text[-600:]}"
