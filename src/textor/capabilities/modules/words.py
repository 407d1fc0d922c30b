"""What a module says of its tools, held to what it said when it was added.

Who adds a module trusts its words: they stand in prompts, where nothing tells them from ours. So they
are taken once. A tool that later says something else goes on under the old words, and is not called
before a person saw the difference; one that is new is not there before. Modules that are marked as
trusted may say what they like. (The attack is known as "rug pull".)
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

from textor.values import clean_text

#: Characters of a difference that a person is shown.
LONGEST = 2_000

Words = dict[str, Any]  #: a tool as it was listed, by its own name


def words_of(raw: Iterable[Any]) -> Words:
    return {str(tool["name"]): tool for tool in raw if isinstance(tool, dict) and tool.get("name")}


def differences(accepted: Words, raw: Iterable[Any]) -> dict[str, str]:
    """The tools that are new or say something else, each with what is different, line by line."""
    found: dict[str, str] = {}
    for name, tool in words_of(raw).items():
        if tool != accepted.get(name):
            before, after = _lines(accepted.get(name)), _lines(tool)
            lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
            found[name] = clean_text("\n".join(line for line in lines if line[:2] != "@@"))[:LONGEST]
    return found


def as_accepted(accepted: Words, raw: Iterable[Any]) -> list[Any]:
    """The list with the old words; without what is new."""
    return [accepted[name] for name in words_of(raw) if name in accepted]


def _lines(tool: Any) -> list[str]:
    return [] if tool is None else json.dumps(tool, indent=1, sort_keys=True, ensure_ascii=False).splitlines()
