"""`textor doctor`: which sandbox, engine, model, embedder and browser are in use here, and why."""

from __future__ import annotations

import argparse
import json
import shutil
from typing import TYPE_CHECKING

from textor.cli import DONE, FAILED
from textor.cli.parser import Commands

if TYPE_CHECKING:
    from textor.capabilities.sandbox import Sandbox
    from textor.config import Config

#: (what is in use, why); "" in use means that there is none.
Finding = tuple[str, str]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("doctor", help="say what is in use here, and why", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    import asyncio

    from textor.cli.opening import configuration

    findings = asyncio.run(examine(configuration()))
    if args.json:
        told = {name: {"in_use": used or None, "why": why} for name, (used, why) in findings.items()}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        from textor.cli.terminal import columns

        rows = [(name, used or "none", why) for name, (used, why) in findings.items()]
        print(columns([("PART", "IN USE", "WHY"), *rows]))
    return DONE if findings["model"][0] else FAILED


async def examine(config: Config) -> dict[str, Finding]:
    """Look at each part, the sandbox by running a command in it."""
    from textor.containers.choose import choose
    from textor.containers.labels import this_process

    choice = await choose(config.sandbox, this_process())
    try:
        sandbox = ("", choice.why_sandbox)
        if choice.sandbox is not None:
            fault = await _tried(choice.sandbox)
            sandbox = (choice.sandbox.name, f"{choice.why_sandbox} {fault}".strip())
    finally:
        if choice.sandbox is not None:
            await choice.sandbox.close()
    return {
        "sandbox": sandbox,
        "engine": (choice.engine.kind if choice.engine else "", choice.why_engine),
        "model": await _model(config),
        "embedder": _embedder(config),
        "browser": _browser(),
    }


async def _tried(sandbox: Sandbox) -> str:
    """What is wrong with the sandbox; "" when a command runs in it."""
    import tempfile
    from pathlib import Path

    from textor.capabilities.processes import Limits
    from textor.errors import TextorError

    with tempfile.TemporaryDirectory() as folder:
        try:
            argv = [sandbox.shell, "-c", "true"]
            ended = await sandbox.run(argv, Path(folder), timeout=30, limits=Limits())
        except TextorError as error:
            return f"But it does not work: {error}"
    return "" if ended.exit_status == 0 else f"But `true` ended with {ended.reason} {ended.exit_status}."


async def _model(config: Config) -> Finding:
    from textor.errors import TextorError
    from textor.processors import BOX_MODEL, Models

    named = config.models.get("default", "")
    id = named or BOX_MODEL
    why = "None is configured; this is the one in the box."
    if named:
        why = f"It is {config.where('models.default')}."
    models = Models(config)
    try:
        models(id)
    except TextorError as error:
        return "", f"{id} cannot be used: {error}"
    finally:
        await models.close()
    return id, why


def _embedder(config: Config) -> Finding:
    from textor.memory.embedder import MiniLM

    found = MiniLM(config.data)
    if found.fetched:
        return found.model_id, "Its files are in the data folder."
    return "", "Its files are not here; `make setup` fetches them."


def _browser() -> Finding:
    for name in BROWSERS:
        if path := shutil.which(name):
            return name, f"It is {path}."
    return "", f"None of {', '.join(BROWSERS)} is installed."
