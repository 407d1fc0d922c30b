"""The command line. `main` is the program `textor`; each command has a file of its own here.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 a limit was reached, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

DONE, FAILED, WRONG_USE, LIMIT, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. No traceback reaches the terminal."""
    from textor.cli.parser import parse

    args = parse(sys.argv[1:] if argv is None else argv)
    from textor.cli.faults import log_to_file, told

    log_to_file()
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its number instead
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = args.command(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`textor … | head`); Python's last flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        return told(error)
