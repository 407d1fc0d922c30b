"""`python -m textor.modules.shell [--folder DIR]`: serves over stdin and stdout."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m textor.modules.shell", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="where sessions begin")
    folder = parser.parse_args().folder
    if not folder.is_dir():
        parser.error(f"{folder} is no folder")
    # so that sessions are closed then as well
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    from textor.modules.shell.server import make_server

    try:
        make_server(folder.resolve()).run()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
