"""Rules: those of the configuration, and answers at the gate that hold for longer than once.

A rule covers exactly what it says. The first rule of the configuration that fits counts; where
none does, answers for this session and for always.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from textor.addresses import host_of
from textor.capabilities.places import resolve
from textor.errors import CapabilityError, UseError
from textor.policy import commands
from textor.policy.look import Look, folded
from textor.settings import RuleSettings
from textor.values import Json, sha256_of

#: The area of `events.Stored` in which answers are kept: for always in the journal of `machine`,
#: for one session in its own.
AREA = "rule"


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer that is kept: a capability at a place, with exactly these arguments (`digest`) or
    with a command that the pattern covers. `shown` is the call as the person saw it."""

    capability: str
    place: str
    digest: str = ""
    command: str = ""
    shown: str = ""

    def covers(self, call: Look) -> bool:
        if self.capability != call.capability.name or self.place != call.place:
            return False
        if self.command:
            return _covers_command(self.command, call, ())
        return bool(self.digest) and self.digest == call.digest


def answered(call: Look, command: str = "") -> Kept:
    """What is kept of a yes to a call: the call itself, or all commands that a pattern covers.

    Raises `UseError` when the pattern does not cover the call that was asked about.
    """
    shown = f"{call.capability.name} {msgspec.json.encode(call.action.arguments).decode():.300}"
    if not command:
        return Kept(call.capability.name, call.place, call.digest, shown=shown)
    rule = Kept(call.capability.name, call.place, command=command)
    if not rule.covers(call):
        raise UseError(
            f"The pattern {command!r} does not cover what is asked about.",
            "It covers simple commands of plain words, such as `git status *` for `git status --short`.",
        )
    return rule


def key_of(rule: Kept) -> str:
    """Short enough to be typed; the same rule has the same key."""
    return sha256_of(msgspec.json.encode((rule.capability, rule.place, rule.digest, rule.command)))[:8]


def kept(stored: Mapping[tuple[str, str], Any]) -> list[tuple[str, Kept]]:
    """The kept answers among what is stored, with their keys; unreadable ones are left out."""
    found: list[tuple[str, Kept]] = []
    for (area, key), value in stored.items():
        if area == AREA:
            try:
                found.append((key, msgspec.convert(value, Kept)))
            except msgspec.ValidationError:
                continue
    return found


def first(rules: Sequence[RuleSettings], call: Look) -> RuleSettings | None:
    """The first rule that fits an action. One that allows must cover it; one that asks or denies
    fits already where nobody can tell that it does not."""
    return next((rule for rule in rules if fits(rule, call)), None)


def fits(rule: RuleSettings, call: Look) -> bool:
    if not fnmatch.fnmatchcase(call.capability.name, rule.capability):
        return False
    if rule.place and rule.place != call.place:
        return False
    doubt = rule.verdict != "allow"
    arguments = call.action.arguments
    if rule.command:
        line = arguments.get("command")
        if doubt:
            if isinstance(line, str) and not commands.may_concern(rule.command, line):
                return False
        elif not _covers_command(rule.command, call, (*rule.equals, *rule.below, *rule.host)):
            return False
    checks = [
        *(_same(arguments.get(name), want) for name, want in rule.equals.items()),
        *(_below(arguments.get(name), folder, call, doubt) for name, folder in rule.below.items()),
        *(_at_host(arguments.get(name), host, doubt) for name, host in rule.host.items()),
    ]
    return all(checks)


def names(rule: RuleSettings) -> bool:
    """Whether a rule names its capability, so that it lifts even what a policy never does."""
    return not any(sign in rule.capability for sign in "*?[")


def _covers_command(pattern: str, call: Look, told: Iterable[str]) -> bool:
    """A rule about a command says nothing of a folder or of variables that go along with it."""
    arguments = call.action.arguments
    line = arguments.get("command")
    other = [n for n, v in arguments.items() if n != "command" and n not in told and not _is_plain(v)]
    return isinstance(line, str) and not other and commands.covers(pattern, line)


def _is_plain(value: Json) -> bool:
    return value is None or value == "" or isinstance(value, bool | int | float)


def _same(value: Json, want: Json) -> bool:
    return msgspec.json.encode(value, order="sorted") == msgspec.json.encode(want, order="sorted")


def _below(value: Json, folder: str, call: Look, doubt: bool) -> bool:
    if not isinstance(value, str):
        return doubt
    try:
        known = call.judged.get(value)
        place = known.place if known is not None else resolve(value, call.workspace)
        root = resolve(folder, call.workspace)
    except CapabilityError:
        return doubt
    if doubt:  # a file system may take names for one that differ in case
        return folded(place).is_relative_to(folded(root))
    return place.is_relative_to(root)


def _at_host(value: Json, host: str, doubt: bool) -> bool:
    found = host_of(value) if isinstance(value, str) else None
    return doubt if found is None else fnmatch.fnmatchcase(found, host.lower())
