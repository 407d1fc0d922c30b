"""How fast the dialects read. CPU time, best of several runs.

    python benchmarks/parse.py [DIALECT …] [--check]

* argument: one open 64 kB argument streamed in 4-character chunks; to be under 50 ms in all;
* hostile: 1 MB of prose full of half marks; to be under 1 s;
* ms per kB from 4 kB to 1 MB, in chunks of 64 characters: to be flat (the greatest at most three
  times the least).

`--check` ends with 1 when one of these is not met.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial

from textor.actions import Action, Capability, Catalogue
from textor.dialects import DIALECTS, Dialect, dialect
from textor.dialects.port import ActionRead
from textor.messages import CallChunk

WRITE = Capability(
    "files.write",
    "Write a text to a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
    },
    phrases=("write [] to file []",),
)
CATALOGUE = Catalogue([WRITE])

#: Beginnings of marks of all dialects, none of them whole.
HALF = (
    '<tool_cal {"name <func =x [TOOL_CALLS <|python_ta ! BASH<! x := <!y <actions <action > <thin </thin '
    '`a` ``b` [x [y] ``` z {"thought <![CDATA [ !NAME <! | & < \\ " \' 1. - * <co </acti\n'
)
LINE = "the quick brown fox & 'friends' jump: 1 < 2, \"yes\" (it is so)\n"


def timed(work: Callable[[], object], runs: int = 3) -> float:
    """The least CPU seconds of several runs."""
    best = float("inf")
    for _ in range(runs):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def read(made: Dialect, text: str, chunk: int) -> int:
    """Parse a text in chunks; the number of actions in it."""
    parser = made.parser(CATALOGUE)
    feed, actions = parser.feed, 0
    for start in range(0, len(text), chunk):
        for event in feed(text[start : start + chunk]):
            actions += isinstance(event, ActionRead)
    return actions + sum(isinstance(event, ActionRead) for event in parser.close("stop"))


def written(made: Dialect, size: int) -> str:
    """An action with a text of so many characters, as the dialect writes it."""
    text = (LINE * (size // len(LINE) + 1))[:size]
    if made.name == "plan":
        text = text.replace("\n", " ")
    action = Action("", WRITE.name, {"path": "a.txt", "text": text})
    return made.write([action], [WRITE])


def argument(made: Dialect) -> float:
    text = written(made, 64_000)
    assert read(made, text, 4) == 1, f"{made.name} does not read what it writes"
    return timed(lambda: read(made, text, 4)) * 1000


def hostile(made: Dialect) -> float:
    text = (HALF * (1_000_000 // len(HALF) + 1))[:1_000_000]
    return timed(lambda: read(made, text, 64), runs=2)


def flat(made: Dialect) -> list[float]:
    """ms per kB at 4, 16, 64, 256 and 1024 kB of an open argument."""
    found: list[float] = []
    for kb in (4, 16, 64, 256, 1024):
        text = written(made, kb * 1000)
        found.append(timed(partial(read, made, text, 64)) * 1000 / kb)
    return found


def native() -> float:
    """The argument as a native function call, in pieces of 4 characters."""
    text = json.dumps({"path": "a.txt", "text": (LINE * 1100)[:64_000]})
    pieces = [CallChunk(0, "", "", text[start : start + 4]) for start in range(0, len(text), 4)]

    def work() -> None:
        parser = dialect("tools").parser(CATALOGUE)
        parser.feed_call(CallChunk(0, "call_1", "files_write"))
        for piece in pieces:
            parser.feed_call(piece)
        (found,) = [event for event in parser.close("tool_calls") if isinstance(event, ActionRead)]
        assert not found.action.fault

    return timed(work) * 1000


def main(arguments: list[str]) -> int:
    wrong = 0
    chosen = [name for name in arguments if not name.startswith("-")] or list(DIALECTS)
    print(f"{'dialect':8} {'argument ms':>12} {'hostile s':>10}   ms per kB at 4, 16, 64, 256, 1024 kB")
    for name in chosen:
        made = dialect(name)
        first, second, each = argument(made), hostile(made), flat(made)
        wrong += first > 50 or second > 1 or max(each) > 3 * min(each)
        print(f"{name:8} {first:12.1f} {second:10.2f}   " + " ".join(f"{ms:.4f}" for ms in each))
    if "tools" in chosen:
        first = native()
        wrong += first > 50
        print(f"{'native':8} {first:12.1f}")
    return int("--check" in arguments and wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
