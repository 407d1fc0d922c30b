"""`textor rules`: the rules of the gate, and taking back an answer that was given for always."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from textor.cli import DONE
from textor.cli.parser import Commands

if TYPE_CHECKING:
    from textor.config import Config
    from textor.journal.port import Journal


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("rules", help="list or remove rules of the gate", description=__doc__)
    parser.set_defaults(command=listed)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    help = "the rules of the configuration, then the answers given for always (default)"
    actions.add_parser("list", help=help, description=help).set_defaults(command=listed)
    help = "take back an answer that was given for always"
    one = actions.add_parser("remove", help=help, description=help)
    one.add_argument("key", metavar="KEY", help="the rule, as `textor rules list` shows it")
    one.set_defaults(command=remove)


def listed(args: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_list())


def remove(args: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_remove(args.key))


async def _list() -> int:
    import msgspec

    from textor.cli.opening import configuration
    from textor.cli.terminal import columns
    from textor.machine_state import MachineState
    from textor.policy.rules import kept

    config = configuration()
    rows: list[tuple[str, ...]] = []
    for rule in config.gate.rules:
        given = msgspec.to_builtins(rule)
        conditions = [
            f"{k} {_shown(v)}" for k, v in given.items() if v and k not in ("capability", "verdict")
        ]
        rows.append(("config", rule.verdict, rule.capability, "; ".join(conditions)))
    async with _journal(config) as journal:
        state = MachineState(journal)
        await state.read()
        for key, answer in kept(state.stored):
            what = f"command {answer.command}" if answer.command else answer.shown
            rows.append((key, "allow", answer.capability, f"{what} ({answer.place})"))
    if not rows:
        print("There are no rules. The policy of a session says what is asked about.")
        return DONE
    print(columns([("KEY", "VERDICT", "CAPABILITY", "WHAT IT COVERS"), *rows]))
    return DONE


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    return str(value)


async def _remove(key: str) -> int:
    import time

    from textor.cli.opening import configuration
    from textor.errors import UseError
    from textor.events import Event, Stored, new_id
    from textor.machine_state import MachineState, store
    from textor.policy.rules import AREA, kept

    async with _journal(configuration()) as journal:
        state = MachineState(journal)
        await state.read()
        known = [each for each, _ in kept(state.stored)]
        if key not in known:
            hint = f"There are: {', '.join(known)}." if known else "No answer was given for always."
            raise UseError(f"There is no rule {key!r} that could be removed.", hint)
        await store(journal, Event(Stored(AREA, key, None), new_id(), time.time()))
    print(f"The rule {key} is removed; what it covered is asked about again.")
    return DONE


@asynccontextmanager
async def _journal(config: Config) -> AsyncIterator[Journal]:
    from textor.journal.sqlite import SqliteJournal

    journal = SqliteJournal(config.data / "journal.db")
    try:
        yield journal
    finally:
        await journal.close()
