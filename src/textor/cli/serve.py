"""`textor serve`: the page in the browser, on this machine."""

from __future__ import annotations

import argparse

from textor.cli import DONE
from textor.cli.parser import Commands


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("serve", help="serve the page", description=__doc__)
    parser.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="the port, 0 for a free one (default: 7771)")
    parser.add_argument("--no-browser", action="store_true", help="do not open the browser")
    parser.add_argument("--json", action="store_true", help="print address and token as one line of JSON")
    parser.add_argument("--workspace", metavar="FOLDER", help="the folder to work in (default: this one)")
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    import asyncio

    from textor.cli.opening import configuration, workspace
    from textor.server.serve import serve

    config = configuration(server__host=args.host, server__port=args.port)
    asyncio.run(
        serve(
            config,
            host=config.server.host,
            port=config.server.port,
            browser=not args.no_browser,
            json=args.json,
            workspace=workspace(args),
        )
    )
    return DONE
