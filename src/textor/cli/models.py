"""`textor models`: the models that can be used here, with their windows and prices."""

from __future__ import annotations

import argparse

from textor.cli import DONE
from textor.cli.parser import Commands


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("models", help="list models", description=__doc__)
    parser.set_defaults(command=main)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    actions.add_parser("list", help="all models (default)").set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_list())


async def _list() -> int:
    from textor.assembly import open_machine
    from textor.cli.opening import configuration
    from textor.cli.terminal import columns

    config = configuration()
    async with open_machine(config, memory=True) as machine:
        found = await machine.models()
    rows = [
        (
            model.id,
            f"{model.window:,}" if model.window else "?",
            _dollars(model.price_input),
            _dollars(model.price_output),
            "" if model.available else "no",
            model.note,
        )
        for model in found
    ]
    # Prices in US dollars for a million tokens.
    print(columns([("MODEL", "WINDOW", "$/M IN", "$/M OUT", "USABLE", "NOTE"), *rows]))
    if not config.models:
        print("\nName one as default with TEXTOR_MODEL, or under [models] in the configuration.")
    return DONE


def _dollars(price: float | None) -> str:
    return "?" if price is None else f"{price:.4g}"
