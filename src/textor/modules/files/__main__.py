"""`python -m textor.modules.files [--root DIR]…`: serves over stdin and stdout."""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m textor.modules.files", description=__doc__)
    parser.add_argument(
        "--root", type=Path, action="append", help="a folder that may be touched (default: this one)"
    )
    roots = parser.parse_args().root or [Path.cwd()]
    for root in roots:
        if not root.is_dir():
            parser.error(f"{root} is no folder")
    from textor.modules.files.server import make_server

    try:
        make_server(roots).run()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
