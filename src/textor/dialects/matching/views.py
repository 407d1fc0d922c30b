"""The views of a capability: its phrases, its description and its examples, taken apart once.

What stands in brackets is masked on both sides: the line `set email subject to [delete all files]`
is compared as `set email subject to []`, so that a payload cannot choose the action.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from textor.actions import Capability
from textor.dialects.matching.opposites import groups, negated, verb_group
from textor.dialects.matching.shapes import hinted, shapes_of
from textor.dialects.matching.words import content, tokens
from textor.dialects.plan_lines import Line, Phrase, phrases_of
from textor.dialects.plan_reader import PlanReader, Written


def read_line(text: str) -> Written:
    """One line of a plan, taken apart. A line break in it counts as a blank."""
    reader = PlanReader()
    reader.feed(" ".join(text.splitlines()))
    return reader.end()[1]


class View(msgspec.Struct, frozen=True):
    """All that a line is compared with for one capability.

    `heads` are the groups of verbs that its texts begin with, `verbs` those anywhere in them;
    `shapes` what its examples hold in their brackets, by the number of brackets.
    """

    capability: Capability
    phrases: tuple[Phrase, ...]
    examples: tuple[Line, ...]
    texts: tuple[str, ...]
    words: frozenset[str]
    heads: frozenset[str]
    verbs: frozenset[str]
    negated: bool
    shapes: dict[int, tuple[frozenset[str], ...]]

    @property
    def description(self) -> str:
        return self.capability.purpose

    def takes(self, slots: int) -> list[Phrase]:
        """The phrases with so many slots."""
        return [phrase for phrase in self.phrases if len(phrase.properties) == slots]


def view_of(capability: Capability) -> View:
    phrases = phrases_of(capability)
    examples = tuple(read_line(text).line for text in capability.examples)
    described = (capability.purpose,) if capability.purpose.strip() else ()
    texts = (*(p.skeleton for p in phrases), *described, *(line.skeleton for line in examples))
    spoken = [tokens(text) for text in texts]
    named = tokens(capability.name.replace(".", " ").replace("_", " "))
    by_number: dict[int, list[tuple[str, ...]]] = {}
    for line in examples:
        by_number.setdefault(len(line.slots), []).append(line.slots)
    return View(
        capability,
        phrases,
        examples,
        texts,
        words=frozenset(word for each in (*spoken, named) for word in content(each)),
        heads=frozenset().union(*(verb_group(each) for each in spoken)),
        verbs=frozenset().union(*(groups(each) for each in (*spoken, named))),
        negated=any(negated(each) for each in spoken),
        shapes=_hints(phrases) | {number: shapes_of(slots) for number, slots in by_number.items()},
    )


def _hints(phrases: Sequence[Phrase]) -> dict[int, tuple[frozenset[str], ...]]:
    """What the slots of the phrases should hold, as far as their words and schemas tell."""
    found: dict[int, tuple[frozenset[str], ...]] = {}
    for phrase in reversed(phrases):
        schemas = phrase.capability.parameters.get("properties", {})
        around = [content(tokens(literal)) for literal in phrase.literals]
        found[len(phrase.properties)] = tuple(
            hinted(around[place], around[place + 1], schemas.get(name))
            for place, name in enumerate(phrase.properties)
        )
    return found
