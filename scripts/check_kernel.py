"""Law 10: the kernel stays readable in an hour. Exits with 1 and sentences when it is not."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

MOST_LINES = 1500  #: of all files in kernel/ together
MOST_IN_FUNCTION = 60


def faults(kernel: Path) -> list[str]:
    """What is too long, one sentence each."""
    found: list[str] = []
    total = 0
    for path in sorted(kernel.rglob("*.py")):
        text = path.read_text("utf-8")
        total += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MOST_IN_FUNCTION:
                    place = f"{path.relative_to(kernel.parent)}:{node.lineno}"
                    found.append(f"{place}: {node.name} has {length} lines; {MOST_IN_FUNCTION} are allowed.")
    if total > MOST_LINES:
        found.append(f"kernel/ has {total} lines; {MOST_LINES} are allowed.")
    return found


def main() -> int:
    found = faults(Path(__file__).resolve().parent.parent / "src" / "textor" / "kernel")
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
