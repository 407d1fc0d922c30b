"""A machine for kernel tests: real journal, host, runner and dialect; a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textor import events as e
from textor.assembly import Machine, core_providers, make_services
from textor.capabilities.functions import FunctionProvider
from textor.config import Config
from textor.events import Definition, Event, Limits
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.journal.port import Journal
from textor.processors import Models
from textor.session import Session
from textor.testing import ScriptedModel


@asynccontextmanager
async def machine(
    model: ScriptedModel,
    functions: Sequence[Callable[..., Any]] = (),
    *,
    journal: Journal | None = None,
    tmp: Path = Path("/nonexistent"),
    host: bool = True,
    default: str = "",
) -> AsyncIterator[Machine]:
    """`default` is the id of the model of all agents that name none."""
    # beside the workspace: what acts on Textor's own files is asked about
    own = tmp.with_name(f"{tmp.name}-own")
    config = Config(path=own / "config.toml", data=own, models={"default": default} if default else {})
    models = Models(config)
    models.add(model)
    providers = [FunctionProvider(functions), *await core_providers()]
    services = await make_services(config, journal or MemoryJournal(), models, providers)
    made = Machine(config, services, models)
    if host:
        made.host = LocalHost(services)
        await made.host.start()
    try:
        yield made
    finally:
        if made.host:
            await made.host.close()


async def begin(
    made: Machine,
    model: ScriptedModel,
    text: str | None = None,
    *,
    capabilities: Sequence[str] = ("*",),
    limits: Limits | None = None,
    policy: str = "ask",
    attended: bool = True,
    review: bool = False,
    workspace: Path = Path(),
) -> Session:
    definition = Definition(
        "tester", capabilities=tuple(capabilities), prompt="You are tested.", review=review
    )
    return await made.create(
        text,
        workspace=workspace,
        definition=definition,
        model=model.id,
        limits=limits or Limits(iterations=20),
        policy=policy,
        attended=attended,
    )


async def until(session: Session, wanted: Callable[[Event], bool], after: int = 0) -> list[Event]:
    """The events up to and with the first that is wanted."""
    seen: list[Event] = []

    async def read() -> list[Event]:
        async for event in session.follow(after):
            seen.append(event)
            if wanted(event):
                return seen
        raise AssertionError

    try:
        return await asyncio.wait_for(read(), 20)
    except TimeoutError:
        raise AssertionError(f"never came; seen: {[s.body for s in seen]}") from None


def ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded)


def kinds(events: Sequence[Event]) -> list[str]:
    return [event.kind for event in events]


def bodies(events: Sequence[Event], kind: type[Any]) -> list[Any]:
    return [event.body for event in events if isinstance(event.body, kind)]
