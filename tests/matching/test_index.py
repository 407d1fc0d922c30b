"""What is kept from one line to the next, and from one catalogue to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textor.actions import Capability, Catalogue
from textor.dialects.matching import Matcher
from textor.embedding import Role
from textor.memory.embedder import MiniLM

from .conftest import phrased


class Counting:
    """The real model, and what it was asked for."""

    def __init__(self, real: MiniLM) -> None:
        self._real = real
        self.model_id, self.dim = real.model_id, real.dim
        self.passages: list[str] = []

    def encode(self, texts: Sequence[str], role: Role) -> Any:
        if role == "passage":
            self.passages += texts
        return self._real.encode(texts, role)


def test_only_new_capabilities_are_embedded(minilm: MiniLM) -> None:
    one, two = phrased("lock the screen", "a"), phrased("open file []", "b", "show a file")
    embedder = Counting(minilm)
    matcher = Matcher(embedder)
    matcher.compile_now(["secure the display"], Catalogue([one]))
    matcher.compile_now(["secure the display", "show me [x]"], Catalogue([one]))
    assert embedder.passages == ["lock the screen"]
    (found,) = matcher.compile_now(["show me the file [x.txt]"], Catalogue([one, two]))
    assert found.candidates[0].capability == "b"
    assert embedder.passages == ["lock the screen", "open file []", "show a file"]
    (without,) = matcher.compile_now(["show me the file [x.txt]"], Catalogue([one]))
    assert [c.capability for c in without.candidates] == ["a"]


def test_a_changed_capability_is_a_new_one(minilm: MiniLM) -> None:
    embedder = Counting(minilm)
    matcher = Matcher(embedder)
    matcher.compile_now(["secure the display"], Catalogue([phrased("lock the screen", "a")]))
    (found,) = matcher.compile_now(["secure the display"], Catalogue([phrased("feed the cat", "a")]))
    assert found.candidates[0].score < 0.3 and len(embedder.passages) == 2


def test_in_a_big_catalogue_the_same_is_found(minilm: MiniLM, catalogue: Catalogue) -> None:
    """Above a few dozen capabilities only the nearest are looked at closely."""
    verbs, things = ("polish", "weigh", "paint", "repair"), ("boat", "violin", "ladder", "kettle", "garden")
    colours = ("red", "green", "blue", "old", "heavy", "small", "round", "wooden", "cheap", "loud")
    others = [
        phrased(f"{verb} the {colour} {thing} []", f"{verb}.{colour}.{thing}")
        for verb in verbs
        for thing in things
        for colour in colours
    ]
    lines = ["launch the email app", "trash [old.log]", "dim the display to [20]", "grab the screen"]
    small = Matcher(minilm).compile_now(lines, catalogue)
    big = Matcher(minilm).compile_now(lines, Catalogue([*others, *catalogue]))
    assert [c.candidates[0].capability for c in big] == [c.candidates[0].capability for c in small]
    assert [c.candidates[0].score for c in big] == [c.candidates[0].score for c in small]


def test_capabilities_that_say_nothing(minilm: MiniLM) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    mute = Capability("x", "", schema, phrases=("",))  # no phrase of it can be used
    (found,) = Matcher(minilm).compile_now(["do it with [y]"], Catalogue([mute, phrased("wait", "w")]))
    assert found.state in ("fail", "weak")
    (words,) = Matcher().compile_now(["do it with [y]"], Catalogue([mute]))
    assert words.state == "fail"
