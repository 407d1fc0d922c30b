"""`textor config`: where the configuration is, what is in force, and a first file to fill in."""

from __future__ import annotations

import argparse

from textor.cli import DONE
from textor.cli.parser import Commands


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("config", help="show or begin the configuration", description=__doc__)
    parser.set_defaults(command=show)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    for name, command, help in (
        ("show", show, "print what is in force and where it comes from, keys masked (default)"),
        ("path", path, "print where the file is, or would be"),
        ("init", init, "write a file with comments, if there is none"),
    ):
        actions.add_parser(name, help=help, description=help).set_defaults(command=command)


def show(args: argparse.Namespace) -> int:
    from textor.cli.opening import configuration

    print(configuration().show(), end="")
    return DONE


def path(args: argparse.Namespace) -> int:
    from textor.config import config_path

    print(config_path())
    return DONE


def init(args: argparse.Namespace) -> int:
    from textor.config import config_path
    from textor.config.text import create

    create(config_path())
    print(config_path())
    return DONE
