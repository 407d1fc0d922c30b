"""Searching with patterns that strangers wrote, in bounded time.

A schema of a module or an app may hold any pattern, and Python's own search takes exponential time for
some (`^(a+)+$`), in which nothing else of this process runs. RE2 is linear in the text. Where it is not
installed, or a pattern is not of its language, Python searches only what is plain and short.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

LONGEST = 2_000  #: characters that Python itself searches: one repetition in a pattern is at worst quadratic


def found(pattern: str, text: str) -> bool | None:
    """Whether `pattern` occurs in `text`; None where that cannot be told in bounded time."""
    linear = _linear(pattern)
    if linear is not None:
        return bool(linear.search(text))
    plain = _plain(pattern)
    return None if plain is None or len(text) > LONGEST else bool(plain.search(text))


@lru_cache(256)
def _linear(pattern: str) -> Any:
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except (re2.error, UnicodeError):
        return None


@lru_cache(256)
def _plain(pattern: str) -> re.Pattern[str] | None:
    """Compiled, where at most one thing in it is repeated, and that holds neither a repetition itself
    nor a choice."""
    try:
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
        return re.compile(pattern) if _repetitions(parsed) <= 1 else None
    except (re.error, RecursionError, OverflowError):
        return None


def _repetitions(parsed: Any) -> float:
    """How many repetitions there are: a choice, and what may only be left out, count for a quarter;
    each of these within a repetition for many."""
    count = 0.0
    for what, told in parsed:
        name = str(what)
        if name.endswith("_REPEAT"):
            least, most, inner = told
            within = _repetitions(inner)
            own = 0.0 if least == most else 0.25 if most == 1 else 1.0
            count += (within * MANY if most > 1 else within) + own
        elif name == "BRANCH":
            count += 0.25 + sum(map(_repetitions, told[1]))
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            count += MANY
        else:
            count += sum(_repetitions(part) for part in _parts(told))
    return count


def _parts(told: Any) -> list[Any]:
    """What is parsed within groups and assertions."""
    parts = told if isinstance(told, tuple | list) else [told]
    return [part for part in parts if isinstance(part, re._parser.SubPattern)]  # type: ignore[attr-defined]


MANY = 1_000
