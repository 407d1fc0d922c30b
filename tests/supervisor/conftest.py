"""The real engine of this machine, and a repository of Textor's own source with it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator

import pytest
from version_parts import BASE, MARK, Workshop, own_repository

from textor.containers.engine import find_engine
from textor.containers.images import Image, look
from textor.containers.labels import INSTANCE
from textor.versions import Versions


@pytest.fixture(scope="session")
def engine_here() -> Generator[None]:
    """There is an engine with the base of images. No container of ours is left in it, and no image of
    a version; what versions need is kept, for the next run."""

    async def missing() -> str:
        engine = await find_engine()
        if engine is None:
            return "no container engine answers; scripts/engine.sh starts one"
        return "" if await engine.has_image(BASE) else f"there is no {BASE}; scripts/engine.sh makes it"

    async def tidy() -> list[str]:
        engine = await find_engine()
        assert engine is not None
        for image in await engine.client.call("GET", "/images/json"):
            for name in image["RepoTags"] or ():
                if name.startswith(f"textor:{MARK}-"):
                    await engine.client.call("DELETE", f"/images/{name}", {"force": True})
        mine = f"{os.getpid()}-"
        left = await engine.list({INSTANCE: ""})
        return [state.name for state in left if state.labels[INSTANCE].startswith(mine)]

    if told := asyncio.run(missing()):
        assert os.environ.get("CI") != "true", f"CI must have an engine: {told}"
        pytest.skip(told)
    yield
    assert asyncio.run(tidy()) == []


@pytest.fixture(scope="session")
def workshop(engine_here: None, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    place = own_repository(tmp_path_factory.mktemp("own"))
    return Workshop(Versions(tmp_path_factory.mktemp("data"), place))


@pytest.fixture
def looked() -> Callable[[str], Image]:
    """What the engine knows of an image."""

    async def read(name: str) -> Image:
        engine = await find_engine()
        assert engine is not None
        image = await look(engine, name)
        assert image is not None
        return image

    return lambda name: asyncio.run(read(name))
