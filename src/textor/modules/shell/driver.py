"""The Python that a session keeps: runs one file after another in the same names.

`driver.py NONCE` prints a mark when it is idle and reads the path of the next file from the
terminal. Of the last line its value is shown, as Python's own prompt would.
"""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from pathlib import Path
from typing import Any


def run(path: str, names: dict[str, Any]) -> int:
    """Run one file; 0, or 1 after an exception, 130 after an interrupt."""
    try:
        source = Path(path).read_text("utf-8")
        linecache.cache["<code>"] = (len(source), None, source.splitlines(True), "<code>")
        tree = ast.parse(source, "<code>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<code>", "exec"), names)
        if isinstance(last, ast.Expr):
            sys.displayhook(eval(compile(ast.Expression(last.value), "<code>", "eval"), names))
        return 0
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
        return 130
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        traceback.print_exception(type(error), error, trace.tb_next if trace is not None else None)
        return 1


def main(nonce: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    status = 0
    while True:
        try:
            print(f"\x1b]7717;{nonce};{status}\x07", end="", flush=True)
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            continue
        if not line:
            return
        if line.strip():
            status = run(line.rstrip("\n"), names)


if __name__ == "__main__":
    nonce = sys.argv[1]
    sys.argv = [""]
    main(nonce)
