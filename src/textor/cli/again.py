"""`textor sessions fork` and `replay`: a session once more, otherwise or the same way."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from textor.cli import DONE, FAILED
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.assembly import Machine
    from textor.record.iterations import Iteration
    from textor.record.review import Draft


def fork(args: argparse.Namespace) -> int:
    return asyncio.run(_fork(args))


def replay(args: argparse.Namespace) -> int:
    if (args.model is None) != (args.at is None):
        raise UseError("--model and --at belong together.", "Say which model, and at which iteration.")
    return asyncio.run(_replay(args))


async def _fork(args: argparse.Namespace) -> int:
    from textor.assembly import new_session_id, open_machine
    from textor.cli.opening import configuration
    from textor.record.forks import fork

    # it is made here, and rests until somebody resumes it, whatever else is run meanwhile
    async with open_machine(configuration(), host=False) as machine:
        session = await machine.session(args.id)
        if args.edit == "-":
            return await _show_draft(machine, session.id, args.at)
        draft = _draft(Path(args.edit)) if args.edit else None
        id = await fork(
            machine.services,
            session.id,
            args.at,
            new_session_id(),
            model=args.model or "",
            draft=draft,
            resting=True,
        )
    print(id)
    print_next(id)
    return DONE


def print_next(id: str) -> None:
    print(f"textor: `textor sessions resume {id}` goes on with it.", file=sys.stderr)


async def _show_draft(machine: Machine, session: str, at: int) -> int:
    """Print the reply of an iteration in the form in which it can be edited."""
    import msgspec

    from textor.record.review import Draft, EditedCall

    found = await _iteration(machine, session, at)
    if found.raw is None:
        raise UseError(f"The iteration {at} has no reply.")
    calls = tuple(
        EditedCall(d.action.capability, d.action.arguments) for d in found.deeds if d.action.call_id
    )
    print(msgspec.json.format(msgspec.json.encode(Draft(found.raw.text, calls)), indent=1).decode())
    return DONE


def _draft(path: Path) -> Draft:
    from textor.record.review import parse_draft

    try:
        return parse_draft(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UseError(f"{path} cannot be read: {error}.") from None


async def _iteration(machine: Machine, session: str, at: int) -> Iteration:
    from textor.record.iterations import iteration_at

    found = await iteration_at(machine.journal, session, at, machine.services.layout)
    if found is None:
        raise UseError(
            f"No iteration began with event {at}.", f"`textor iterations list {session}` shows them."
        )
    return found


async def _replay(args: argparse.Namespace) -> int:
    from textor.assembly import new_session_id, open_machine
    from textor.cli.opening import configuration
    from textor.cli.terminal import clean
    from textor.record.otherwise import otherwise
    from textor.record.replay import replay

    async with open_machine(configuration(), host=bool(args.model)) as machine:
        session = await machine.session(args.id)
        if args.model:
            iteration = await _iteration(machine, session.id, args.at)
            told = await otherwise(machine.services, session.id, iteration, args.model, new_session_id())
            print(clean(told.diff) or f"{args.model} does the same.")
            print(
                f"textor: nothing of it was done. Its reply waits for you in {told.session}:", file=sys.stderr
            )
            print_next(told.session)
            return DONE
        found = await replay(machine.services, session.id)
    for difference in found.differences:
        print(clean(f"event {difference.seq}, {difference.kind}"))
        print(clean(f"  recorded: {difference.recorded}\n  now:      {difference.now}"))
    many = len(found.differences)
    words = "no difference" if not many else f"{many} difference{'s' if many > 1 else ''}"
    print(f"{found.events} events, {found.steps} steps taken again: {words}.")
    return FAILED if many else DONE
