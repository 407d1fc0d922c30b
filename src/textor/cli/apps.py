"""`textor apps`: programs that agents and plans can drive, and what is running of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textor.broker.box import IN_THE_BOX
from textor.cli import DONE
from textor.cli.parser import Commands
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.broker.provider import AppsProvider
    from textor.config import Config
    from textor.events import Stored


LOG_LINES = 50


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("apps", help="list, install and start apps", description=__doc__)
    parser.set_defaults(command=_async(listed))
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    actions.add_parser("list", help="all apps and their windows (default)").set_defaults(
        command=_async(listed)
    )
    for name, command, help, what in (
        ("show", show, "what an app can do", "APP"),
        ("install", install, f"install one that is in the box: {', '.join(IN_THE_BOX)}", "APP"),
        ("remove", remove, "forget an app and what it registered", "APP"),
        ("start", start, "open a window of an app", "APP"),
        ("stop", stop, "end the newest window of an app, or the one of this id", "APP"),
        ("logs", logs, "what the newest window of an app, or the one of this id, said last", "APP"),
        ("approve", approve, "let an app that waits register", "APP"),
        ("deny", deny, "refuse an app that waits", "APP"),
    ):
        action = actions.add_parser(name, help=help, description=help)
        action.add_argument("app", metavar=what)
        action.set_defaults(command=_async(command))
    profile = actions.add_parser("profile", help="work with a set of apps; without a name list the sets")
    profile.add_argument("name", metavar="NAME", nargs="?", help="the profile to work with; - for all apps")
    profile.add_argument("--apps", metavar="APP,APP", help="make or change the profile: the apps in it")
    profile.add_argument("--remove", action="store_true", help="forget the profile")
    profile.set_defaults(command=_async(profiles))


def _async(command: Callable[[argparse.Namespace], Awaitable[int]]) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        import asyncio

        async def main() -> int:
            return await command(args)

        return asyncio.run(main())

    return run


@asynccontextmanager
async def _apps() -> AsyncIterator[tuple[Config, AppsProvider]]:
    """The apps of the journal; nothing is hosted, so this works beside a running server."""
    from textor.broker.provider import AppsProvider
    from textor.cli.opening import configuration
    from textor.journal.sqlite import SqliteJournal

    config = configuration()
    journal = SqliteJournal(config.data / "journal.db")
    try:
        apps = AppsProvider(journal, config.data)
        await apps.store.load()
        yield config, apps
    finally:
        await journal.close()


def _meant(apps: AppsProvider, name: str) -> str:
    """The class that a person means: by its name, or by the one word of it that no other has."""
    having = [each for each in apps.book.apps if name.lower() in each.lower().split()]
    known = name in apps.book.apps or name in apps.book.records or len(having) != 1
    return name if known else having[0]


async def listed(args: argparse.Namespace) -> int:
    from textor.cli.terminal import columns

    async with _apps() as (config, apps):
        records = await apps.prune()
        rows = [("APP", "CAPABILITIES", "WINDOWS", "PROGRAM")]
        for app in apps.book.apps.values():
            windows = ", ".join(f"{r.id} (port {r.port})" for r in records if r.app_class == app.name)
            program = " ".join((app.owner[0], *app.owner[1]))
            rows.append((app.name, str(len(app.entries) + 1), windows or "-", program))
        print(columns(rows) if len(rows) > 1 else f"No apps. In the box: {', '.join(IN_THE_BOX)}.")
        if apps.book.active:
            print(f"profile: {apps.book.active}")
        for waits in await _pending(config):
            print(f"{waits['class']} waits for your yes ({' '.join(waits['program'])}).", file=sys.stderr)
    return DONE


async def show(args: argparse.Namespace) -> int:
    from textor.cli.terminal import clean
    from textor.dialects.plan_lines import phrases_of

    async with _apps() as (_, apps):
        app = apps.book.app(_meant(apps, args.app))
        names = [f"{app.launch.area}.start", *(entry.name for entry in app.entries.values())]
        print(clean(f"{app.launch.form.title or app.name}: {app.launch.form.description}"))
        for name in names:
            capability = apps.book.capabilities[name]
            effects = f" ({', '.join(capability.effects)})" if capability.effects else ""
            purpose = " ".join(capability.purpose.split())
            print(clean(f"  {phrases_of(capability)[0].shown}{effects}\n      {name}: {purpose}"))
        for record in await apps.prune():
            if record.app_class == app.name:
                print(f"  window {record.id}: {apps.address(record)}")
        for example in apps.book.examples_of(app):
            answers = "\n".join(f"    {line}" for line in example.answers)
            print(clean(f"  example: {example.question}\n{answers}"))
    return DONE


async def install(args: argparse.Namespace) -> int:
    """Run the program's own --install against our server, or against one that lives as long as that."""
    from textor.broker import box
    from textor.server.token import load_token

    async with _apps() as (config, _):
        pass
    async with _address(config) as address:
        print(await box.install(args.app, address, load_token(config.data), config.data))
    return DONE


@asynccontextmanager
async def _address(config: Config) -> AsyncIterator[str]:
    """Where registrations are taken: the server that runs, else one for this moment."""
    import asyncio

    address = f"http://127.0.0.1:{config.server.port}"
    if config.server.port and await asyncio.to_thread(_answers, address):
        yield address
        return
    from textor.assembly import open_machine
    from textor.server.app import create_app
    from textor.server.serve import address_of, listen, make_server
    from textor.server.token import load_token

    listener = listen("127.0.0.1", 0)
    async with open_machine(config) as machine:
        server = make_server(create_app(machine, load_token(config.data)))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            await serving
            listener.close()


def _answers(address: str) -> bool:
    import urllib.request

    try:
        with urllib.request.urlopen(f"{address}/api/health", timeout=2) as answer:
            return "version" in json.load(answer)
    except (OSError, ValueError, TypeError):
        return False


async def remove(args: argparse.Namespace) -> int:
    async with _apps() as (_, apps):
        name = apps.book.app(_meant(apps, args.app)).name
        await apps.store.write(lambda: apps.book.remove(name))
        print(f"{name} is forgotten; its windows and documents stay.")
    return DONE


async def start(args: argparse.Namespace) -> int:
    async with _apps() as (_, apps):
        record = await apps.start(_meant(apps, args.app))
        print(f"{record.app_class} runs at {apps.address(record)} ({record.id})")
    return DONE


async def stop(args: argparse.Namespace) -> int:
    async with _apps() as (_, apps):
        record = await apps.stop(_meant(apps, args.app))
        print(f"{record.id} has ended.")
    return DONE


async def logs(args: argparse.Namespace) -> int:
    from textor.cli.terminal import clean

    async with _apps() as (_, apps):
        meant = _meant(apps, args.app)
        known = apps.book.apps.get(meant)
        id, lines = apps.launcher.said(known.launch.area if known is not None else meant, LOG_LINES)
        if not id:
            apps.book.app(meant)
            raise UseError(f"{meant} was never started, or what it said is no longer kept.")
        print(clean("\n".join(lines)) if lines else f"{id} has said nothing.")
    return DONE


async def profiles(args: argparse.Namespace) -> int:
    async with _apps() as (_, apps):
        book = apps.book
        if args.name is None:
            for name, profile in book.profiles.items():
                print(f"{'*' if profile.active else ' '} {name}: {', '.join(profile.apps)}")
            if not book.profiles:
                print("No profiles: all apps are offered. --apps makes one.")
            return DONE
        name = "" if args.name == "-" else args.name
        classes = [part.strip() for part in (args.apps or "").split(",") if part.strip()]
        if args.remove:
            await apps.store.write(lambda: book.set_profile(name, None))
            print(f"{name} is forgotten.")
            return DONE
        if classes:
            await apps.store.write(
                lambda: book.set_profile(name, [book.app(_meant(apps, each)).name for each in classes])
            )
        await apps.store.write(lambda: _activated(apps, name))
        print(f"Plans use {book.active or 'all apps'} now.")
    return DONE


def _activated(apps: AppsProvider, name: str) -> list[Stored]:
    return apps.book.activate(name)


# -- what waits: only the server knows it ----------------------------------------------------


async def approve(args: argparse.Namespace) -> int:
    return await _decide(args.app, True)


async def deny(args: argparse.Namespace) -> int:
    return await _decide(args.app, False)


async def _decide(name: str, allow: bool) -> int:
    from urllib.parse import quote

    from textor.cli.opening import configuration

    config = configuration()
    told = await _ask(config, f"/api/apps/pending/{quote(name)}", {"allow": allow})
    print(f"{name}: {told['registered']} registrations count now." if allow else f"{name} is refused.")
    return DONE


async def _pending(config: Config) -> list[dict[str, Any]]:
    try:
        told = await _ask(config, "/api/apps/pending", None)
    except UseError:
        return []
    found: list[dict[str, Any]] = told["pending"]
    return found


async def _ask(config: Config, path: str, body: Any) -> dict[str, Any]:
    """Ask the server that runs. Raises `UseError` with its sentence, or that none answers."""
    import asyncio

    return await asyncio.to_thread(_asked, config, path, body)


def _asked(config: Config, path: str, body: Any) -> dict[str, Any]:
    import urllib.error
    import urllib.request

    from textor.server.token import load_token

    content = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {load_token(config.data)}", "content-type": "application/json"}
    address = f"http://127.0.0.1:{config.server.port}"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address + path, content, headers), timeout=10
        ) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        raise UseError(json.loads(error.read() or b"{}").get("error", error.reason)) from None
    except (OSError, ValueError):
        raise UseError(f"No Textor answers at {address}.", "Start `textor serve`.") from None
