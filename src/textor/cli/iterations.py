"""`textor iterations`: what a model was shown, what it said and what came of it, step by step."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textor.cli import DONE
from textor.cli.parser import Commands
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.record.iterations import Iteration
    from textor.values import Blobs

T = TypeVar("T")


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("iterations", help="read the iterations of a session", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, help, run in (
        ("list", "one line for each", listed),
        ("show", "one of them whole", show),
        ("export", "all as files, in a folder that containers can mount", export),
    ):
        one = actions.add_parser(name, help=help)
        one.add_argument("session", metavar="SESSION", help="the session, or the beginning of its id")
        one.set_defaults(command=run)
        if name == "show":
            one.add_argument("number", metavar="N", type=int, help="its number, as `list` shows it")
        if name == "export":
            one.add_argument("--to", metavar="FOLDER", help="where to (default: iterations-SESSION here)")
            one.add_argument(
                "--last", metavar="N", type=count, help="only the last N; each holds its context"
            )


def count(text: str) -> int:
    """A number of at least 1, for `argparse`."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def listed(args: argparse.Namespace) -> int:
    from textor.cli.sessions import moment
    from textor.cli.terminal import columns
    from textor.record.provider import line

    rows = [("N", "AGENT", "BEGAN", "SECONDS", "TOKENS", "WHAT")]
    for found in _read(args.session)[1]:
        seconds = f"{max(found.over or found.replied, found.began) - found.began:.1f}"
        what = found.failure or line(found).partition(": ")[2]
        rows.append(
            (str(found.seq), found.agent, moment(found.began), seconds, str(found.usage.total), what[:120])
        )
    print(columns(rows) if len(rows) > 1 else "There are no iterations yet.")
    return DONE


def show(args: argparse.Namespace) -> int:
    from textor.cli.terminal import clean
    from textor.record.provider import whole

    session, found = _read(args.session)
    for iteration in found:
        if iteration.seq == args.number:
            told = f"{iteration.agent}, iteration {iteration.number}, {iteration.model}"
            print(clean(f"{told}, Textor {iteration.version or 'of unknown version'}\n"))
            print(clean(whole(iteration, "all")))
            return DONE
    raise UseError(
        f"Session {session} has no iteration {args.number}.",
        f"`textor iterations list {session}` shows them.",
    )


def export(args: argparse.Namespace) -> int:
    from textor.record.iterations import write_files

    def write(session: str, found: list[Iteration], blobs: Blobs) -> str:
        folder = Path(args.to or f"iterations-{session}")
        found = found[-args.last :] if args.last else found
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for iteration in found:
                write_files(iteration, folder, blobs)
        except OSError as error:
            raise UseError(f"{folder} cannot be written: {error.strerror}.") from None
        return f"{len(found)} iteration{'' if len(found) == 1 else 's'} in {folder}"

    print(_with(args.session, write))
    return DONE


def _read(session: str) -> tuple[str, list[Iteration]]:
    return _with(session, lambda id, found, blobs: (id, found))


def _with(session: str, then: Callable[[str, list[Iteration], Blobs], T]) -> T:
    """What `then` gives for the full id, the iterations in the order of their beginning, and the
    values of a session."""
    import asyncio

    async def read() -> T:
        from textor.assembly import open_machine
        from textor.cli.opening import configuration
        from textor.record.iterations import iterations

        async with open_machine(configuration(), host=False) as machine:
            known = await machine.session(session)
            found = [i async for i in iterations(machine.journal, known.id, machine.services.layout)]
            return then(known.id, sorted(found, key=lambda i: i.seq), machine.journal.blobs)

    return asyncio.run(read())
