"""Searches text in files where ripgrep is not installed. Runs as a program of its own.

A regular expression of a model may take for ever, and Python's `re` lets nothing else run
meanwhile; a process can be killed. Only the standard library, so that it starts quickly.

`walker.py QUERY TARGET PATTERN REGEX SKIP…` writes a line `path NUL number:text` for each hit, as
`rg --null` does. QUERY without capitals ignores case. PATTERN is a glob or empty, REGEX `1` or
empty, SKIP names of folders. Exit status 2 and a sentence for a bad expression.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST_LINE = 300
BIGGEST_FILE = 50_000_000
PER_FILE = 100


def main(query: str, target: str, pattern: str, regex: str, *skip: str) -> int:
    try:
        flags = re.IGNORECASE if query == query.lower() else 0
        wanted = re.compile(query if regex else re.escape(query), flags)
    except re.error as error:
        print(f"bad regular expression: {error}")
        return 2
    found = False
    for path in _files(target, pattern, frozenset(skip)):
        for number, line in _hits(path, wanted):
            found = True
            out = f"{path}\0{number}:{line[:LONGEST_LINE]}\n"
            sys.stdout.buffer.write(out.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    return 0 if found else 1


def _files(target: str, pattern: str, skip: frozenset[str]) -> Iterator[str]:
    if not os.path.isdir(target):  # noqa: PTH112
        yield target
        return
    for folder, folders, names in os.walk(target):
        folders[:] = sorted(name for name in folders if name not in skip)
        for name in sorted(names):
            path = f"{folder}/{name}"
            matched = path.removeprefix("./") if "/" in pattern else name
            if (not pattern or fnmatch.fnmatch(matched, pattern)) and os.path.isfile(path):  # noqa: PTH113
                yield path


def _hits(path: str, wanted: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        if os.path.islink(path) or os.path.getsize(path) > BIGGEST_FILE:  # noqa: PTH114, PTH202
            return
        content = Path(path).read_bytes()
    except OSError:
        return
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16", "replace")
    elif b"\0" in content[:8192]:
        return
    else:
        text = content.decode("utf-8", "replace")
    hits = 0
    for number, line in enumerate(text.split("\n"), 1):
        if wanted.search(line):
            yield number, line.rstrip("\r")
            hits += 1
            if hits == PER_FILE:
                return


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
