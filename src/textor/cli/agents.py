"""`textor agents`: the agent types of this folder, your own and those in the box."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from textor.cli import DONE
from textor.cli.parser import Commands


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("agents", help="list or show agent types", description=__doc__)
    parser.set_defaults(command=listed)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    actions.add_parser("list", help="all types (default)").set_defaults(command=listed)
    one = actions.add_parser("show", help="one type as a whole")
    one.add_argument("type", metavar="TYPE")
    one.set_defaults(command=show)


def _folders() -> tuple[Path, ...]:
    from textor.config import config_path
    from textor.definitions import agent_folders

    return agent_folders(Path.cwd(), config_path().parent / "agents")


def listed(args: argparse.Namespace) -> int:
    from textor.cli.terminal import columns
    from textor.definitions import list_definitions
    from textor.errors import DefinitionError

    faults: list[DefinitionError] = []
    rows = [(d.type, ", ".join(d.dialects), d.purpose) for d in list_definitions(_folders(), faults)]
    print(columns([("TYPE", "DIALECTS", "PURPOSE"), *rows]))
    for fault in faults:
        print(f"textor: {fault}", file=sys.stderr)
    return DONE


def show(args: argparse.Namespace) -> int:
    from textor.cli.terminal import clean
    from textor.definitions import load_definition

    made = load_definition(args.type, _folders())
    limits = [
        f"{name} {value}" for name in made.limits.__struct_fields__ if (value := getattr(made.limits, name))
    ]
    facts = [
        ("type", made.type),
        ("purpose", made.purpose),
        ("dialects", ", ".join(made.dialects)),
        ("model", made.model or "(the configured one)"),
        ("capabilities", ", ".join(made.capabilities)),
        ("layout", made.layout),
        ("limits", ", ".join(limits) or "(those of the session)"),
        ("temperature", "(the configured one)" if made.temperature is None else f"{made.temperature:g}"),
    ]
    for name, text in facts:
        print(f"{name}: {clean(text)}")
    for message in made.examples:
        print(f"example, {message.role}: {clean(message.text)}")
    print(f"\n{clean(made.prompt)}")
    for sentence in _misspelt(made.capabilities):
        print(f"textor: {sentence}", file=sys.stderr)
    return DONE


def _misspelt(names: tuple[str, ...]) -> list[str]:
    """Sentences for names that look like one that is there and are none. Others, and patterns, may
    be of modules and apps to come."""
    import asyncio
    from difflib import SequenceMatcher

    from textor.near import did_you_mean

    known = asyncio.run(_known())
    told = []
    for name in names:
        if name in known or "*" in name:
            continue
        score, near = max((SequenceMatcher(None, name, each).ratio(), each) for each in known)
        if score > 0.8:
            told.append(f"There is no capability {name}. {did_you_mean([near])}")
    return told


async def _known() -> set[str]:
    from textor.assembly import open_machine
    from textor.config import load

    async with open_machine(load(), host=False) as machine:
        return set(machine.services.registry.names)
