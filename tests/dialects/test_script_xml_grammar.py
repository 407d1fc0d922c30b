"""Whatever a model that is held to the grammar writes is read as an action without a fault."""

from __future__ import annotations

import pytest
from gbnf_sampler import Sampler
from script_machine import capability, read

from textor.actions import Catalogue
from textor.dialects import dialect

CATALOGUE = Catalogue(
    [
        capability("bash", "code", code="string"),
        capability("now"),
        capability("maybe", a="string", b="boolean"),
        capability(
            "search",
            "query",
            "count",
            query="string",
            order={"enum": ["new", 'the "old" & <best>']},
            count="integer",
            data="object",
            ratio="number",
            sites={"type": "array"},
        ),
    ]
)


@pytest.mark.parametrize("name", ["script", "xml"])
def test_every_sentence_of_the_grammar_is_read(name: str) -> None:
    made = dialect(name)
    grammar = made.grammar(list(CATALOGUE))
    assert grammar is not None
    sampler = Sampler(grammar.gbnf, seed=1)
    called: set[str] = set()
    for _ in range(600):
        text = sampler.sentence()
        found = read(made.parser(CATALOGUE), text)  # type: ignore[attr-defined]
        wrote = "<!|" in text if name == "script" else "<actions>" in text
        if any("stands twice" in fault for fault in found.faults):
            continue  # no grammar keeps the names of an object apart
        assert not found.faults, text
        assert bool(found.actions) == wrote, text
        called.update(action.capability for action in found.actions)
    assert called == set(CATALOGUE.names)


@pytest.mark.parametrize("name", ["script", "xml"])
def test_without_capabilities_only_prose_can_be_written(name: str) -> None:
    grammar = dialect(name).grammar([])
    assert grammar is not None
    for seed in range(50):
        text = Sampler(grammar.gbnf, seed).sentence()
        assert read(dialect(name).parser(CATALOGUE), text).actions == []  # type: ignore[attr-defined]
