"""`textor self`: the versions of Textor on this machine, tried and changed under supervision."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from textor.cli import DONE, FAILED
from textor.cli.parser import Commands
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.versions import Ledger, Version, Versions

EPILOG = """\
Tags come from a checkout of Textor's source: where this program lies in one, or TEXTOR_REPOSITORY.
`build` and `try` make an image of the version as well, textor:TAG, where [self] base in the configuration
names what to make it over and a container engine answers. A trial runs in a container of that image,
else in bubblewrap, without network, on a copy of the state; it says where it ran.
`serve` keeps the page running under supervision: `use TAG` then tries that version on a copy of the
state and lets it take over when all sessions rest; it is watched for a minute and taken back by
itself when it does not hold.
"""


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "self", help="versions of Textor itself", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, help, run in (
        ("status", "which version is in use, where it runs, how it was tried", status),
        ("list", "the tags, and what is known of them", listed),
        ("build", "build a tag: an environment that runs it, and an image", build),
        ("try", "build a tag and try it on a copy of the state", try_),
        ("use", "go over to a tag; it is tried before", use),
        ("rollback", "go back to the version before", rollback),
    ):
        one = actions.add_parser(name, help=help)
        if name in ("build", "try", "use"):
            one.add_argument("tag", metavar="TAG")
        one.set_defaults(command=run)
    server = actions.add_parser("serve", help="serve the page under supervision")
    server.add_argument("--port", type=int, default=7771, help="the port (default: 7771)")
    server.set_defaults(command=serve)


def _versions() -> Versions:
    return _configured()[0]


def _configured() -> tuple[Versions, str]:
    """The versions of the data folder, and the configured base of images."""
    from textor.cli.opening import configuration
    from textor.versions import Versions

    config = configuration()
    return Versions(config.data), config.own.base


def status(args: argparse.Namespace) -> int:
    versions = _versions()
    ledger = versions.read()
    print(f"in use: {_described(versions, ledger, ledger.current)}")
    print(f"before: {_described(versions, ledger, ledger.previous)}")
    if ledger.wanted is not None:
        print(f"asked for: {ledger.wanted or 'the installed version'}")
    for line in ledger.log[-10:]:
        print(f"  {line}")
    if ledger.doing:
        print(f"now: {ledger.doing}")
    return DONE


def _described(versions: Versions, ledger: Ledger, tag: str) -> str:
    """A version: what runs when it is in use, which images there are, and how it was tried."""
    version = ledger.versions.get(tag)
    if version is None:
        return tag or f"the installed version, {versions.python('')}"
    parts = [tag, f"runs on this machine from {versions.home(version.commit)}", _tried(version)]
    return "; ".join([*parts, f"image {version.image}"] if version.image else parts)


def _tried(version: Version) -> str:
    return f"tried {version.tried}" if version.tried else "not tried yet"


def listed(args: argparse.Namespace) -> int:
    from textor.cli.terminal import columns

    versions = _versions()
    ledger = versions.read()
    rows = []
    for tag in versions.tags():
        known = ledger.versions.get(tag)
        mark = "in use" if tag == ledger.current else (known.state if known else "")
        tried = known.tried.partition(": ")[0] if known else ""
        rows.append((tag, mark, tried, known.why if known else ""))
    print(columns([("TAG", "STATE", "TRIED", "WHY"), *rows]) if rows else "The repository has no tags.")
    return DONE


def build(args: argparse.Namespace) -> int:
    from textor.versions.images import build_version

    versions, base = _configured()
    _, told = asyncio.run(build_version(versions, args.tag, base))
    print(told)
    return DONE


def try_(args: argparse.Namespace) -> int:
    from textor.supervisor.supervisor import try_version

    versions, base = _configured()
    version = asyncio.run(try_version(versions, args.tag, base))
    print(f"{version.tag}: {version.state}" + (f": {version.why}" if version.why else ""))
    print(_tried(version))
    return DONE if version.state == "passed" else FAILED


def use(args: argparse.Namespace) -> int:
    versions = _versions()
    versions.commit(args.tag)
    return _ask(versions, args.tag)


def rollback(args: argparse.Namespace) -> int:
    versions = _versions()
    ledger = versions.read()
    if ledger.previous == ledger.current:
        raise UseError("There is no version before.", "`textor self list` shows what there is.")
    return _ask(versions, ledger.previous)


def _ask(versions: Versions, tag: str) -> int:
    """Leave the wish for the supervisor."""
    versions.want(tag)
    print(f"{tag or 'The installed version'} is asked for; `textor self status` tells how it went.")
    return DONE


def serve(args: argparse.Namespace) -> int:
    return asyncio.run(_serve(args.port))


async def _serve(port: int) -> int:
    import contextlib
    import signal

    from textor.supervisor.supervisor import Supervisor, answers

    argv = ["serve", "--no-browser", "--port", str(port)]
    versions, base = _configured()
    supervisor = Supervisor(versions, argv, answers(f"http://127.0.0.1:{port}/"), base=base)
    work = asyncio.create_task(supervisor.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work
    return DONE
