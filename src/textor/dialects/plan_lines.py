"""Lines of the `plan` dialect and the phrases they are read by.

A phrase is a line with a slot wherever a parameter stands: `write [] to file []`. A slot is empty,
and then stands for the next property of the schema that no slot names, or holds a property's name:
`write [text] to file [path]`. A capability without phrases is written by the words of its name and
its required properties: `mail.send` with `to` is `mail send [to]`.

A line and a phrase are compared by their *skeleton*: everything outside the brackets, in lower
case, single-spaced, without list markers and the full stop. What stands in brackets is verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from textor.actions import Capability

#: "1. ", "2) ", "- ", "* ", "• ", "Step 3: " and several of them.
_MARKERS = re.compile(r"\s*(?:(?:[-*+•–—]|\(?\d{1,3}[.):]|step\s+\d{1,3}\s*[:.)-])\s+)*", re.IGNORECASE)


class Line(msgspec.Struct, frozen=True):
    """One line, taken apart: its text without markers, its skeleton, the texts in its brackets."""

    text: str
    skeleton: str
    slots: tuple[str, ...] = ()

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.skeleton.split())


def line_of(outside: Sequence[str], slots: Sequence[str]) -> Line:
    """A line by what stands outside its brackets (one piece more than there are slots) and in them."""
    pieces = [outside[0][marker_length(outside[0]) :]]
    for slot, piece in zip(slots, outside[1:], strict=True):
        pieces += ["[", slot, "]", piece]
    return Line("".join(pieces), skeleton_of(outside), tuple(slots))


def marker_length(text: str) -> int:
    """How many characters of markers ("1. ", "- ") and blanks a line begins with."""
    found = _MARKERS.match(text)
    return found.end() if found else 0


def skeleton_of(outside: Sequence[str]) -> str:
    text = " [] ".join((outside[0][marker_length(outside[0]) :], *outside[1:]))
    return " ".join(text.casefold().split()).rstrip(" .,;!")


class Phrase(msgspec.Struct, frozen=True):
    """A phrase of a capability: `literals` stand around and between the slots (one more than
    there are), `properties` are what the slots hold."""

    capability: Capability
    skeleton: str
    literals: tuple[str, ...]
    properties: tuple[str, ...]

    def filled(self, slots: Sequence[str]) -> str:
        """The line with these texts in its slots, one for each."""
        pieces = [self.literals[0]]
        for slot, literal in zip(slots, self.literals[1:], strict=True):
            pieces += ["[", slot, "]", literal]
        return "".join(pieces)

    @property
    def shown(self) -> str:
        """The phrase with the names of the properties in the brackets."""
        return self.filled(self.properties)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.skeleton.split())


def phrases_of(capability: Capability) -> tuple[Phrase, ...]:
    """The usable phrases of a capability: those whose slots are properties of its schema, each
    once, and leave no required property out."""
    properties = list(capability.parameters.get("properties", {}))
    required = list(capability.parameters.get("required", []))
    written = capability.phrases or (_default_phrase(capability.name, required),)
    found = (_phrase(capability, text, properties) for text in written)
    return tuple(p for p in found if p is not None and set(required) <= set(p.properties))


def _default_phrase(name: str, required: Sequence[str]) -> str:
    words = name.replace(".", " ").replace("_", " ")
    return " ".join([words, *(f"[{name}]" for name in required)])


def _phrase(capability: Capability, text: str, properties: Sequence[str]) -> Phrase | None:
    # `split` with a group: literal, slot, literal, …
    pieces = re.split(r"\[([^\[\]]*)\]", text.strip())
    literals, written = pieces[::2], pieces[1::2]
    rest = iter([name for name in properties if name not in written])
    slots = [name or next(rest, "") for name in written]
    if not set(slots) <= set(properties) or len(set(slots)) < len(slots) or "[" in "".join(literals):
        return None
    return Phrase(capability, skeleton_of(literals), tuple(literals), tuple(slots))


class Phrases:
    """The phrases of a catalogue, found by skeleton."""

    def __init__(self, capabilities: Iterable[Capability]) -> None:
        self.all = tuple(p for c in capabilities for p in phrases_of(c))
        self._words = tuple(p.words for p in self.all)
        self._by_skeleton: dict[str, list[Phrase]] = {}
        for phrase in self.all:
            self._by_skeleton.setdefault(phrase.skeleton, []).append(phrase)

    def exact(self, line: Line) -> list[Phrase]:
        """The phrases that the line is written like; several where capabilities share one."""
        return self._by_skeleton.get(line.skeleton, [])

    def nearest(self, line: Line, count: int = 3) -> list[tuple[float, Phrase]]:
        """The phrases that share most words with the line, best first, with the share (0 to 1,
        Dice's coefficient). For explanations only: nothing runs because of it."""
        words = line.words
        scored = [
            (2 * len(words & own) / max(1, len(words) + len(own)), phrase)
            for own, phrase in zip(self._words, self.all, strict=True)
        ]
        scored = [pair for pair in scored if pair[0] > 0]
        return sorted(scored, key=lambda pair: -pair[0])[:count]
