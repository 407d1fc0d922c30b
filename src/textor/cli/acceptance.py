"""`textor modules accept`: a person looks at what a module says otherwise of its tools than before."""

from __future__ import annotations

import argparse
import sys

from textor.cli import DONE, FAILED
from textor.cli.modules import entry_of, made, open_journal
from textor.errors import TextorError


async def accept(args: argparse.Namespace) -> int:
    from textor.capabilities.modules.spec import write_entry
    from textor.cli.terminal import clean

    async with open_journal() as (journal, entries):
        entry = entry_of(entries, args.name)
        module = made(entry.spec)
        try:
            await module.ready()
            if not module.held:
                print(f"{args.name} says the same of its tools as before.")
                return DONE
            for name, difference in module.held.items():
                print(clean(f"{name}\n{difference}\n"))
            if not args.yes and not _sure(f"Take what {args.name} says now?"):
                return FAILED
            module.accept()
            await write_entry(journal, args.name, entry)  # so that a running Textor looks again
        except TextorError as error:
            print(f"textor: {error}", file=sys.stderr)
            return FAILED
        finally:
            await module.close()
    print(f"What {args.name} says of its tools is accepted.")
    return DONE


def _sure(question: str) -> bool:
    """Whether a person says yes; nobody there is a no."""
    if not sys.stdin.isatty():
        print("textor: nobody is here to be asked; --yes accepts it.", file=sys.stderr)
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
