"""What may be written behind `textor`. Commands import what they need when they run, so that
`textor --help` stays quick."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from textor import __version__

EPILOG = """\
Without a configuration the small model in the box does what it can. `textor config init` writes a
configuration file in which a bigger model can be named. Each command has its own --help.
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the arguments; ends the program with 2 and a sentence when they are wrong."""
    from textor.cli import (
        agents,
        apps,
        chat,
        config,
        doctor,
        iterations,
        match,
        models,
        modules,
        own,
        plan,
        rules,
        run,
        serve,
        sessions,
    )
    from textor.cli import parse as parse_command

    parser = argparse.ArgumentParser(
        prog="textor",
        description="A text computer: agents that work for you in a folder, with any language model.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"textor {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    first = (run, chat, plan, serve, sessions, iterations, models, agents, modules, apps, rules, config, own)
    for module in (*first, parse_command, match, doctor):
        module.add(commands)
    return parser.parse_args(match.arranged(argv))


def add_choices(parser: argparse.ArgumentParser) -> None:
    """The options that choose who works where, for `run` and `chat`."""
    parser.add_argument("--model", metavar="ID", help="the model, as provider:name (see `textor models`)")
    parser.add_argument("--agent", metavar="TYPE", help="the agent type (see `textor agents`)")
    parser.add_argument("--workspace", metavar="FOLDER", help="the folder to work in (default: this one)")
    parser.add_argument(
        "--yes", action="store_true", help="do not ask before writing files and running programs"
    )
    parser.add_argument(
        "--review", action="store_true", help="each reply waits for you before anything of it runs"
    )


Commands = argparse._SubParsersAction  # argparse has no public name for it
