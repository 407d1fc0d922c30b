"""What may be written behind `textor`. Commands import what they need when they run, so that
`textor --help` stays quick."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from textor import __version__
from textor.cli import WRONG_USE

EPILOG = """\
Without a configuration the small model in the box does what it can. `textor config init` writes a
configuration file in which a bigger model can be named. Each command has its own --help.
"""


class Parser(argparse.ArgumentParser):
    """One that names the nearest word for one that it does not know, in the usage where it was met."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # as argparse has it
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        from textor.near import did_you_mean, nearest

        known, word = list(self._option_string_actions), ""
        if message.startswith("unrecognized arguments: "):
            word = message.split()[2].partition("=")[0]
        elif found := re.search(r"invalid choice: '(.+?)' \(choose from (.*)\)", message, re.S):
            word, known = found[1], [name.strip("' ") for name in found[2].split(",")]
        near = did_you_mean(nearest(word, known, 1)) if word else ""
        super().error(f"{message}. {near}" if near else message)


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

    parser = Parser(
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
    if not argv:
        parser.print_help(sys.stderr)
        raise SystemExit(WRONG_USE)
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
