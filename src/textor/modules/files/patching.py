"""Applies unified diffs: every line of context must be there, only the line numbers may be wrong.

No fuzz: a hunk that does not fit is refused with the nearest lines, and then nothing is changed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from textor.modules.files.roots import Refused

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class Hunk:
    """`old` and `new` lines without line ends; `start` is the line of the first old one, from 1."""

    start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    new_ends: bool = True  #: False: the last new line has no line end


@dataclass
class Change:
    """What a diff does to one file. `old` None: it is made; `new` None: it is removed."""

    old: str | None
    new: str | None
    hunks: list[Hunk] = field(default_factory=list)


def parse(diff: str) -> list[Change]:
    """The changes of a unified diff. Raises `Refused` where it cannot be read."""
    lines = diff.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    changes: list[Change] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            changes.append(Change(_path(line), _path(lines[at + 1])))
            at += 2
        elif found := _HUNK.match(line):
            if not changes:
                raise Refused("The diff has no line '--- path' before its first hunk.")
            hunk, at = _hunk(lines, at, found)
            changes[-1].hunks.append(hunk)
        elif changes and line[:1] in ("+", "-", " ") and line.strip() and not line.startswith("-- "):
            raise Refused(f"Line {at + 1} of the diff stands outside of a hunk: {line[:80]!r}.")
        else:  # a headline of git or of diff, or a signature
            at += 1
    if not changes or not all(change.hunks for change in changes):
        raise Refused("This is no unified diff: '--- path', '+++ path', '@@ -1,2 +1,2 @@', lines.")
    return changes


def _path(line: str) -> str | None:
    path = line[4:].split("\t")[0].strip()
    if path.startswith('"') and path.endswith('"'):
        path = path[1:-1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
    if path == "/dev/null":
        return None
    return path[2:] if path[:2] in ("a/", "b/") else path


def _hunk(lines: list[str], at: int, found: re.Match[str]) -> tuple[Hunk, int]:
    """One hunk and the place behind it. The counts of its headline say where it ends."""
    hunk = Hunk(int(found[1]))
    old_count, new_count = int(found[2] or 1), int(found[4] or 1)
    first = at
    at += 1
    kind = " "
    while at < len(lines) and (len(hunk.old) < old_count or len(hunk.new) < new_count):
        line = lines[at]
        if line.startswith("\\"):
            hunk.new_ends = hunk.new_ends and kind == "-"
            at += 1
            continue
        kind = line[:1] or " "  # editors strip the blank of an empty line of context
        if kind not in "+- ":
            break
        if kind != "+":
            hunk.old.append(line[1:])
        if kind != "-":
            hunk.new.append(line[1:])
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        hunk.new_ends = hunk.new_ends and kind == "-"
        at += 1
    if (len(hunk.old), len(hunk.new)) != (old_count, new_count):
        raise Refused(
            f"The hunk in line {first + 1} of the diff has {len(hunk.old)} old and {len(hunk.new)} new "
            f"lines; its headline says {old_count} and {new_count}."
        )
    return hunk, at


def apply(text: str, hunks: list[Hunk], name: str, newline: str) -> str:
    """The text with all hunks applied. Raises `Refused`; line ends of what stays are kept."""
    whole = text.splitlines(keepends=True) if "\r" not in text else _split(text)
    bare = [line.rstrip("\r\n") for line in whole]
    result: list[str] = []
    done = 0
    for number, hunk in enumerate(hunks, 1):
        at = _find(bare, hunk, done, number, name)
        result += whole[done:at]
        result += _replaced(whole[at : at + len(hunk.old)], hunk, newline)
        done = at + len(hunk.old)
    result += whole[done:]
    joined = [line if line.endswith("\n") else line + newline for line in result[:-1]]
    return "".join(joined + result[-1:])


def _split(text: str) -> list[str]:
    """By newline alone: a lone carriage return is part of its line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _replaced(old: list[str], hunk: Hunk, newline: str) -> list[str]:
    """The new lines; those of the context stay exactly as they were."""
    bare = [line.rstrip("\r\n") for line in old]
    matcher = difflib.SequenceMatcher(None, bare, hunk.new, autojunk=False)
    made: list[str] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        made += old[i:j] if tag == "equal" else [line + newline for line in hunk.new[k:m]]
    if made and not hunk.new_ends:
        made[-1] = made[-1].rstrip("\r\n")
    elif made and not made[-1].endswith("\n"):
        made[-1] += newline
    return made


def _find(lines: list[str], hunk: Hunk, after: int, number: int, name: str) -> int:
    """Where the old lines are: the place nearest to the one that the hunk gives."""
    wanted = max(hunk.start - 1, 0) if hunk.old else min(hunk.start, len(lines))
    if not hunk.old:
        return max(wanted, after)
    length = len(hunk.old)
    places = [at for at in range(after, len(lines) - length + 1) if lines[at : at + length] == hunk.old]
    if places:
        return min(places, key=lambda at: abs(at - wanted))
    near = difflib.get_close_matches(next(filter(str.strip, hunk.old), ""), lines, 1, 0.6)
    hint = f" The nearest line is {lines.index(near[0]) + 1}: {near[0][:120]!r}." if near else ""
    raise Refused(
        f"Hunk {number} of {name} does not fit: its old lines do not stand together in the file, "
        f"beginning with {hunk.old[0][:120]!r}.{hint} Nothing was changed."
    )
