"""A machine for the tests of agents that see themselves: real journal, host, provider and layouts."""

from __future__ import annotations

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textor import events as e
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.port import Provider
from textor.config import Config
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.layouts.monitor import Monitor
from textor.messages import Context
from textor.processors import Models
from textor.session import Session
from textor.testing import ScriptedModel

Clock = Callable[[], float]


class Time:
    """A clock that stands still until it is moved. Seconds since 1970."""

    def __init__(self, now: float = 1_729_252_800.0) -> None:  # 2024-10-18T12:00:00Z
        self.now = now

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def machine(
    *models: ScriptedModel,
    tmp: Path,
    monitor: Monitor | None = None,
    providers: Sequence[Provider] = (),
    journal: Journal | None = None,
    clock: Clock | None = None,
    names: Sequence[str] = (),
) -> AsyncIterator[Machine]:
    """`names` are the models that the configuration names besides."""
    config = Config(path=tmp / "config.toml", data=tmp / "data", models={n: n for n in names})
    made_models = Models(config)
    for model in models:
        made_models.add(model)
    everything = [*await core_providers(), *providers, monitor or Monitor()]
    more: dict[str, Any] = {"clock": clock} if clock else {}
    services = await make_services(config, journal or MemoryJournal(), made_models, everything, **more)
    made = Machine(config, services, made_models, everything)
    made.host = LocalHost(services)
    await made.host.start()
    try:
        yield made
    finally:
        await made.host.close()
        for provider in everything:
            await provider.close()


async def until(session: Session, wanted: Callable[[e.Event], bool], after: int = 0) -> list[e.Event]:
    """The events up to and with the first that is wanted."""
    seen: list[e.Event] = []

    async def read() -> None:
        async for event in session.follow(after):
            seen.append(event)
            if wanted(event):
                return

    try:
        await asyncio.wait_for(read(), 60)
    except TimeoutError:
        raise AssertionError(f"never came; seen: {[s.kind for s in seen]}") from None
    return seen


def ended(event: e.Event) -> bool:
    return isinstance(event.body, e.TurnEnded)


def context_of(context: Context) -> ET.Element:
    """The XML of a regenerated context; fails when it is not well-formed."""
    text = context.messages[-1].text
    return ET.fromstring(text[text.index("<context>") :])
