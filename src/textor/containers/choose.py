"""Which engine and which sandbox this machine has, and why: asked once when a machine opens."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from textor.capabilities.sandbox import Sandbox, find_sandbox, why_no_sandbox
from textor.containers.client import EngineError
from textor.containers.engine import Allowance, Engine, find_engine
from textor.containers.labels import Owner
from textor.containers.proxy import NetworkDoor
from textor.containers.sandbox import ContainerSandbox
from textor.containers.specs import Rules
from textor.settings import ContainerSettings, SandboxSettings


@dataclass(frozen=True)
class Choice:
    """What was found. `why_sandbox` and `why_engine` are sentences for a person."""

    sandbox: Sandbox | None
    why_sandbox: str
    engine: Engine | None
    why_engine: str


async def choose(settings: SandboxSettings, owner: Owner) -> Choice:
    """The engine that answers, and the sandbox by the order of `textor.settings`. Costs some
    milliseconds; an engine that hangs is given up after three seconds."""
    engine, why_engine = await _engine(settings)
    sandbox, why = await _sandbox(settings, engine, owner)
    return Choice(sandbox, why, engine, why_engine)


async def _engine(settings: SandboxSettings) -> tuple[Engine | None, str]:
    engine = await find_engine()
    if engine is None:
        return None, "No container engine answers: Docker or Podman is not installed or not running."
    info = await engine.info()
    if settings.kind in ("docker", "podman") and info.kind != settings.kind:
        return None, f"sandbox.kind asks for {settings.kind}, and {info.kind} answers at {info.address}."
    return engine, f"{info.kind} {info.version} answers at {info.address}."


async def _sandbox(
    settings: SandboxSettings, engine: Engine | None, owner: Owner
) -> tuple[Sandbox | None, str]:
    kind = settings.kind
    if kind == "none":
        return None, "The configuration asks for none (sandbox.kind), so each command is asked about."
    lacking = ""
    if kind in ("auto", "docker", "podman"):
        lacking = await _lacking(settings, engine)
        if engine is not None and not lacking:
            door = await _door(settings)
            why = f"The engine has the image {settings.image}."
            return ContainerSandbox(engine, settings.image, owner, door), why
        if kind != "auto":
            return None, f"{lacking} Without a sandbox each command is asked about."
    door = await _door(settings) if settings.network else None
    sandbox = await asyncio.to_thread(find_sandbox, door)
    if sandbox is None:
        if door is not None:
            door.close()
        return None, f"{lacking} {why_no_sandbox()} Without a sandbox each command is asked about.".strip()
    return sandbox, lacking or "The configuration asks for it (sandbox.kind)."


async def _lacking(settings: SandboxSettings, engine: Engine | None) -> str:
    """Why there is no sandbox by container; "" when there is one."""
    if engine is None:
        return "No container engine answers."
    try:
        if await engine.has_image(settings.image):
            return ""
    except EngineError as error:
        return str(error)
    return f"{engine.kind} has no image {settings.image} (docker/sandbox.Dockerfile makes it)."


async def _door(settings: SandboxSettings) -> NetworkDoor | None:
    if not settings.network:
        return None
    door = NetworkDoor(settings.network)
    await door.start()
    return door


def rules_of(settings: ContainerSettings) -> Rules:
    """What agents may have, from the configuration."""
    folders = [Path(os.path.expanduser(folder)) for folder in settings.folders]  # noqa: PTH111
    allowance = Allowance(settings.memory << 20, settings.cpus, settings.processes)
    return Rules(settings.images, folders, allowance)
