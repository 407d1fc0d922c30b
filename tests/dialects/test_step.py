"""The step dialect: one structured object per iteration, however it comes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from reading import CAPABILITIES, CATALOGUE, actions, answer, called, events, faults, prose, run, thinks

from textor.actions import Action, Outcome
from textor.dialects.step import Step
from textor.errors import UseError
from textor.messages import CallChunk, ToolResult

STEP = Step()
COMMAND = {"thought": "t", "command": {"name": "keep", "arguments": {"x": 1}}}
KEEP = [("keep", {"x": 1})]


def in_text(step: Any) -> list[Any]:
    return events(STEP, json.dumps(step))


def natively(*steps: Any, finish: str = "tool_calls") -> list[Any]:
    return called(
        STEP, [CallChunk(n, f"c{n}", "iterate", json.dumps(s)) for n, s in enumerate(steps)], finish
    )


@pytest.mark.parametrize("read", [in_text, natively])
def test_command(read: Any) -> None:
    found = read(COMMAND)
    assert (run(found), faults(found), prose(found)) == (KEEP, [], "t")


@pytest.mark.parametrize("read", [in_text, natively])
def test_response(read: Any) -> None:
    found = read({"thought": "t", "response": "hello"})
    assert (run(found), answer(found), prose(found)) == ([], "hello", "t")


@pytest.mark.parametrize("read", [in_text, natively])
@pytest.mark.parametrize("rest", [{}, {"command": None}, {"response": ""}, {"command": {}, "response": None}])
def test_neither_is_thinking_on(read: Any, rest: dict[str, Any]) -> None:
    found = read({"thought": "t", "description": "d", "criticism": "c", **rest})
    assert (thinks(found), run(found), answer(found), faults(found)) == (["t\nd\nc"], [], "", [])


@pytest.mark.parametrize("read", [in_text, natively])
def test_the_command_counts_when_there_is_a_response_too(read: Any) -> None:
    found = read({**COMMAND, "response": "done"})
    assert (run(found), answer(found), prose(found)) == (KEEP, "", "t\ndone")


@pytest.mark.parametrize("read", [in_text, natively])
def test_unknown_command_gets_the_nearest_real_ones(read: Any) -> None:
    found = read({"thought": "t", "command": {"name": "file_list", "arguments": {}}})
    assert run(found) == []
    assert faults(found) == ['There is no "file_list". Did you mean files_list or files_write?']


WRONG = [
    ({"thought": "t", "comand": {}}, 'A step has no "comand"'),
    ({"thought": "t", "command": "keep"}, 'The command is "keep"'),
    ({"thought": "t", "command": {"arguments": {}}}, "Write it as"),
    ({"thought": "t", "command": {"name": "keep"}}, "x: is missing"),
    ({"thought": "t", "command": {"name": "keep", "arguments": [1]}}, "not a JSON object"),
    ({"thought": "t", "command": {"name": "keep", "arguments": {"x": 1}, "why": ""}}, 'no "why"'),
]


@pytest.mark.parametrize("read", [in_text, natively])
@pytest.mark.parametrize(("step", "said"), WRONG)
def test_what_is_wrong_is_told(read: Any, step: Any, said: str) -> None:
    found = read(step)
    assert (run(found), answer(found), thinks(found)) == ([], "", [])
    assert said in faults(found)[0]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "<think>{}</think> " + json.dumps(COMMAND),
        "I think so:\n" + json.dumps(COMMAND, indent=2),
        "```json\n" + json.dumps(COMMAND, indent=2) + "\n```",
        "Now:\n\n```\n" + json.dumps(COMMAND) + "\n```\n",
        '```json\n{"thought": "an example", "command": {"name": "keep", "arguments": {"x": 2}}}\n```\n'
        + json.dumps(COMMAND),
        'Not `{"thought": ""}` but\n' + json.dumps(COMMAND),
        json.dumps(COMMAND) + "\n" + json.dumps({"thought": "invented", "response": "x"}),
    ],
)
def test_the_object_in_a_text(text: str) -> None:
    found = events(STEP, text.replace("{}", json.dumps(COMMAND)) if text == "{}" else text)
    assert (run(found), faults(found)) == (KEEP, [])


def test_after_the_object_the_generation_may_be_stopped() -> None:
    parser = STEP.parser(CATALOGUE)
    parser.feed(json.dumps(COMMAND)[:-1])
    assert not parser.done
    parser.feed("}")
    assert parser.done


def test_two_objects_in_fences_are_not_guessed_between() -> None:
    fence = f"```json\n{json.dumps(COMMAND)}\n```\n"
    found = events(STEP, fence + "or\n" + fence)
    assert run(found) == []
    assert faults(found)[0].startswith("There are 2 objects")


def test_plain_text_is_no_answer() -> None:
    found = events(STEP, "It is done.")
    assert (answer(found), run(found)) == ("", [])
    assert faults(found)[0].startswith("This is no step.")
    assert faults(events(STEP, "  \n")) == []


def test_a_cut_object_never_runs() -> None:
    text = json.dumps(COMMAND)
    for end in range(15, len(text)):
        found = events(STEP, text[:end], finish="length")
        assert run(found) == []
        assert "cut short" in faults(found)[0]
        native = called(STEP, [CallChunk(0, "c", "iterate", text[:end])], finish="length")
        assert run(native) == []
        assert "cut short" in faults(native)[0]


def test_every_native_call_has_an_outcome() -> None:
    found = natively(COMMAND, {"thought": "2", "response": "x"})
    assert run(found) == KEEP
    assert [action.call_id for action in actions(found)] == ["c0", "c1"]
    (other,) = actions(called(STEP, [CallChunk(0, "a", "keep", "{}")]))
    assert (other.call_id, other.wire) == ("a", "keep")
    assert "iterate" in other.fault


def test_schema_teaching_and_writing_agree_with_the_parser() -> None:
    grammar = Step(native=False).grammar(CAPABILITIES)
    assert grammar is not None
    assert grammar.json_schema is not None
    for step in (COMMAND, {"thought": "t"}, {"thought": "t", "response": "x"}):
        jsonschema.validate(step, grammar.json_schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"thought": "", "command": {"name": "kep", "arguments": {}}}, grammar.json_schema)
    assert STEP.grammar(CAPABILITIES) is None
    (spec,) = STEP.declare(CAPABILITIES)
    assert (spec.name, spec.parameters) == ("iterate", grammar.json_schema)
    assert "one call of `iterate`" in STEP.teach(CAPABILITIES)
    assert "one JSON object" in Step(native=False).teach(CAPABILITIES)
    with pytest.raises(UseError, match="one command, not 2"):
        STEP.write([Action("", "keep"), Action("", "keep")])


def test_outcomes_go_back_to_the_call_or_as_text() -> None:
    (tool,) = STEP.render([(Action("1", "keep", call_id="c", wire="iterate"), Outcome("done", "kept"))])
    assert tool.parts == (ToolResult("c", "iterate", "kept"),)
    (user,) = STEP.render([(Action("1", "keep"), Outcome("done", "kept"))])
    assert "kept" in user.text
