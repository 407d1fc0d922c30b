"""Email addresses as people write them: "Anna Berg <anna@example.org>, bob@example.com"."""

from __future__ import annotations

import re
from typing import NamedTuple

from textor.apps.store import Refused

#: An address without quoting or comments, which is what people have.
BARE = re.compile(
    r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)*[^\W_](?:[\w-]{0,61}[^\W_])?"
)
NAMED = re.compile(r'\s*"?(?P<name>[^"<>]*?)"?\s*<\s*(?P<bare>[^<>\s]+)\s*>\s*')
SEPARATOR = re.compile(r'[;,\n](?=(?:[^"]*"[^"]*")*[^"]*$)')  # outside of quotes


LONGEST = 20_000  #: characters of a list of addresses


class Address(NamedTuple):
    name: str
    bare: str

    def __str__(self) -> str:
        if not self.name:
            return self.bare
        return (
            f'"{self.name}" <{self.bare}>' if re.search(r"[,;]", self.name) else f"{self.name} <{self.bare}>"
        )


def parse_addresses(text: str) -> list[Address]:
    """One or more addresses. Raises `Refused` that names the one that is none."""
    if len(text) > LONGEST:
        raise Refused("These are too many addresses at once.")
    found = [_parse(part) for part in SEPARATOR.split(text) if part.strip()]
    if not found:
        raise Refused("An address is missing.", "Write one such as anna@example.org.")
    return found


def _parse(part: str) -> Address:
    if len(part) > 400:
        raise Refused(f"{part[:60]!r}… is no email address.")
    named = NAMED.fullmatch(part)
    name, bare = (named["name"].strip(), named["bare"]) if named else ("", part.strip())
    bare = bare.removeprefix("mailto:")
    if not BARE.fullmatch(bare) or ".." in bare or any(ord(c) < 32 for c in name):
        raise Refused(f"{part.strip()[:100]!r} is no email address.", "Write one such as anna@example.org.")
    return Address(name, bare)
