"""Agent types: where they are found, what their files may say, and how a fault is told."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor import definitions
from textor.definitions import (
    BOX,
    agent_folders,
    list_definitions,
    load_definition,
    parse_definition,
    read_definition,
)
from textor.errors import DefinitionError
from textor.events import Definition, Limits, PatternRule
from textor.messages import said

CODER = """---
name: coder
purpose: >
  Writes and
  mends programs.
dialects: [tools, script]
model: oai:gpt-4o
capabilities: [files.*, shell.run]
layout: stable
limits: {iterations: 5, money: 0.5}
examples:
  - {user: hello, assistant: Hi.}
  - {role: user, text: and then}
titles: {UPDATE MEMORY: notes.set}
patterns:
  - {pattern: 'RUN: (?P<command>.*)', capability: shell.run, priority: 1, scope: line}
agents: [researcher, "*"]
review: true
---

You write programs.

---
Even below a line.
"""


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(text, "utf-8")
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    assert read_definition(put(tmp_path, "coder", CODER)) == Definition(
        type="coder",
        purpose="Writes and mends programs.",
        dialects=("tools", "script"),
        model="oai:gpt-4o",
        capabilities=("files.*", "shell.run"),
        limits=Limits(iterations=5, money=0.5),
        examples=(said("user", "hello"), said("assistant", "Hi."), said("user", "and then")),
        prompt="You write programs.\n\n---\nEven below a line.",
        titles={"UPDATE MEMORY": "notes.set"},
        patterns=(PatternRule("RUN: (?P<command>.*)", "shell.run", 1, "line"),),
        agents=("researcher", "*"),
        review=True,
    )


def test_a_file_without_front_matter_is_a_prompt(tmp_path: Path) -> None:
    made = read_definition(put(tmp_path, "poet", "\ufeffYou write poems.\n"))
    assert made == Definition(type="poet", prompt="You write poems.")


def test_line_ends_of_windows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "poet.md"
    path.write_bytes(b"---\r\npurpose: poems\r\n---\r\nYou write poems.\r\nShort ones.\r\n")
    made = read_definition(path)
    assert (made.purpose, made.prompt) == ("poems", "You write poems.\nShort ones.")


def test_the_workspace_comes_before_the_persons_own_and_that_before_the_box(tmp_path: Path) -> None:
    workspace, own = tmp_path / "work", tmp_path / "own"
    folders = agent_folders(workspace, own)
    assert load_definition("main", folders) == read_definition(BOX / "main.md")
    put(own, "main", "own")
    assert load_definition("main", folders).prompt == "own"
    put(workspace / ".textor" / "agents", "main", "workspace")
    assert load_definition("main", folders).prompt == "workspace"
    put(own, "spider", "spins")
    put(own, "README", "no agent type")
    listed = list_definitions(folders)
    names = [d.type for d in listed]
    assert names == sorted(names) and {"main", "spider"} <= set(names) and "README" not in names
    assert next(d for d in listed if d.type == "main").prompt == "workspace"


def test_an_unknown_type_is_told_with_the_nearest(tmp_path: Path) -> None:
    put(tmp_path, "coder", CODER)
    with pytest.raises(
        DefinitionError, match=r'no agent type "codr"; did you mean coder\? \(there are: coder\)'
    ):
        load_definition("codr", [tmp_path])


@pytest.mark.parametrize("type", ["../coder", "/etc/passwd", "", "CODER", "a" * 200, "coder.md"])
def test_a_type_is_a_name_and_never_a_path(tmp_path: Path, type: str) -> None:
    put(tmp_path, "coder", CODER)
    with pytest.raises(DefinitionError, match="no agent type"):
        load_definition(type, [tmp_path / "inner", tmp_path])


@pytest.mark.parametrize(
    ("front", "says"),
    [
        ("purpose: x\npurpos: y", ["line 3", "purpos is not known", "did you mean purpose?", "capabilities"]),
        ("dialects: tools", ['dialects is "tools"', "a list"]),
        ("dialects: [tool]", ['dialects[0] is "tool"', "plan, script, step, tools, xml"]),
        ("dialects: [plan, tools]", ["dialects is ['plan', 'tools']", "tools with one of"]),
        ("dialects: [script, xml]", ["tools with one of"]),
        ("dialects: [tools, tools]", ["tools with one of"]),
        ("dialects: []", ["tools with one of"]),
        ("layout: fixed", ['layout is "fixed"', "one of bare, regenerated, stable"]),
        ("review: perhaps", ['review is "perhaps"', "true or false"]),
        ("limits: {iterations: 0}", ["limits.iterations is 0", "at least 1"]),
        ("limits: {steps: 1}", ["limits.steps is not known", "iterations"]),
        ("capabilities: [files.*, 3]", ["capabilities[1] is 3", "pattern such as"]),
        ("capabilities: ['rm -rf']", ["capabilities[0]", "pattern such as"]),
        ("purpose: 2026-01-01", ["purpose is 2026-01-01", "text in quotes"]),
        ("agents: [Coder]", ['agents[0] is "Coder"', 'an agent type, or "*" for all']),
        ("titles: {MEMO: notes.set}", ["line 2", "titles belong to the dialect script"]),
        ("dialects: [script]\npatterns: [{pattern: x}]", ["patterns[0].capability is missing"]),
        ("patterns: [{pattern: x, capability: y, scop: line}]", ["patterns[0].scop", "mean scope?"]),
        ("name: other", ["line 2", 'name is "other"', '"spider"']),
        ("examples: [{user: a}]", ["examples[0] has the keys user", "role (user or assistant) and text"]),
        ("examples: [{role: system, text: a}]", ["examples[0]", "role (user or assistant)"]),
        ("examples: [{user: a, assistant: 3}]", ["examples[0].assistant is 3"]),
        ("- a\n- b", ["must be keys with values"]),
        ("purpose: a: b", ["line 2", "not valid YAML"]),
        ("purpose: [", ["not valid YAML"]),
        ("purpose: !!python/object:os.system x", ["not valid YAML"]),
        ("a: &a [*a]", ["a is not known"]),
        ("1: x", ["1 is not known"]),
    ],
)
def test_a_fault_names_file_key_and_what_is_allowed(tmp_path: Path, front: str, says: list[str]) -> None:
    path = put(tmp_path, "spider", f"---\n{front}\n---\nSpin.\n")
    with pytest.raises(DefinitionError) as caught:
        load_definition("spider", [tmp_path])
    sentence = str(caught.value)
    assert str(path) in sentence and "\n" not in sentence
    for part in says:
        assert part in sentence


def test_front_matter_must_end(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="has no --- that ends it"):
        read_definition(put(tmp_path, "a", "---\npurpose: x\n"))


def test_a_wrong_file_is_left_out_of_the_list_and_told(tmp_path: Path) -> None:
    put(tmp_path / "first", "coder", "---\nlayout: x\n---\n")
    put(tmp_path / "second", "coder", CODER)
    put(tmp_path / "second", "poet", "You write poems.")
    faults: list[DefinitionError] = []
    folders = [tmp_path / "first", tmp_path / "second", tmp_path / "missing"]
    assert [d.type for d in list_definitions(folders, faults)] == ["poet"]
    assert len(faults) == 1 and "layout" in str(faults[0])
    with pytest.raises(DefinitionError, match="layout"):
        list_definitions(folders)


def test_files_that_are_no_text_or_too_large_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "a", "x" * 300_000)
    with pytest.raises(DefinitionError, match="larger than 256 kB"):
        read_definition(path)
    path.write_bytes(b"\xff")
    with pytest.raises(DefinitionError, match="not UTF-8"):
        read_definition(path)
    with pytest.raises(DefinitionError, match="cannot be read"):
        read_definition(tmp_path / "missing.md")


def test_a_text_without_a_file_must_say_its_name() -> None:
    assert parse_definition("---\nname: poet\n---\nRhyme.").type == "poet"
    for text in ("Rhyme.", "---\nname: Poet\n---\n", "---\nname: [a]\n---\n", "---\nname: ../x\n---\n"):
        with pytest.raises(DefinitionError, match=r"The agent type has .* such as `name: wiki-reader`"):
            parse_definition(text)


def test_the_documentation_has_an_example_of_every_key() -> None:
    page = (Path(__file__).parent.parent / "docs" / "agents.md").read_text("utf-8")
    examples = re.findall(r"^```agent (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    fronts = []
    for name, text in examples:
        assert parse_definition(text, Path(f"{name}.md")) == parse_definition(text)
        fronts.append(text.split("---")[1])
    keys = {key for front in fronts for key in re.findall(r"^(\w+):", front, re.MULTILINE)}
    told = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    known = [field.name for field in msgspec.structs.fields(definitions._FrontMatter)]
    assert sorted(keys) == sorted(told) == sorted(known)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_a_definition_or_a_sentence(front: str, body: str) -> None:
    try:
        made = parse_definition(f"---\n{front}\n---\n{body}", Path("any.md"))
    except DefinitionError as fault:
        assert "any.md" in str(fault)
    else:
        assert made.type == "any"


def test_the_types_in_the_box_are_right() -> None:
    main = load_definition("main", [BOX])
    assert (
        main.dialects == ("tools",) and main.model == "" and main.prompt.startswith("You work for a person")
    )
    assert "shell.run" in main.capabilities and "respond" not in main.capabilities
    assert all(d.purpose and d.prompt for d in list_definitions([BOX]))
