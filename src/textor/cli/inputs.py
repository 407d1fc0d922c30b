"""What `parse` and `match` are given: texts, lines in JSON, lists of capabilities."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textor.actions import Catalogue
from textor.errors import UseError
from textor.near import excerpt


def text_of(named: str) -> str:
    """The text of a file, or of stdin for "-"; bytes that are no UTF-8 become U+FFFD."""
    if named == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return Path(named).expanduser().read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UseError(f"{named} cannot be read: {error.strerror or error}.") from error


def catalogue(named: str | None) -> Catalogue:
    """The capabilities of a file; without one those that every machine has."""
    if named is not None:
        from textor.capabilities.listed import read_capabilities

        return Catalogue(read_capabilities(Path(named).expanduser()))
    import asyncio

    return asyncio.run(_core())


async def _core() -> Catalogue:
    from textor.assembly import core_providers

    found = [c for provider in await core_providers() for c in await provider.capabilities()]
    return Catalogue(found)


def labelled(named: str) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, each with a text `line`. Raises `UseError` that says in
    which line of the file what is wrong."""
    for number, text in enumerate(text_of(named).split("\n"), 1):
        if not text.strip():
            continue
        where = f"{'stdin' if named == '-' else named}, line {number}"
        try:
            found = json.loads(text)
        except json.JSONDecodeError as error:
            raise UseError(f"{where}, column {error.colno}: this is no valid JSON ({error.msg}).") from error
        except (ValueError, RecursionError) as error:
            raise UseError(f"{where}: this is no JSON that can be read.") from error
        if not isinstance(found, dict) or not isinstance(found.get("line"), str):
            raise UseError(
                f'{where}: {excerpt(found)} is no object with a text "line".', 'Write {"line": "…"}.'
            )
        yield found


def label(entry: dict[str, Any], known: Catalogue, where: str) -> str:
    """What a labelled line should be: the name of a capability, "" for none of them."""
    if "expected" not in entry:
        raise UseError(
            f'{where}: "expected" is missing.', "It is the name of a capability, or null for none."
        )
    expected = entry["expected"]
    if expected is None:
        return ""
    if not isinstance(expected, str) or expected not in known:
        raise UseError(f"{where}: there is no capability {excerpt(expected)} in the list.")
    return expected
