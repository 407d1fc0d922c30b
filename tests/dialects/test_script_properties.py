from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from script_machine import CATALOGUE, capability, read

from textor.actions import Action, Capability, Catalogue
from textor.dialects.script import ScriptDialect
from textor.values import Json

#: The marks of this and of all other dialects, and what is near them.
MARKS = [
    "<!|",
    "|!>",
    "|",
    "!",
    "<",
    ">",
    '"',
    "'",
    '"""',
    "'''",
    "\\",
    "\n",
    "\r\n",
    "\n\n",
    " ",
    ",",
    "+",
    "=",
    ":=",
    ":",
    "!BASH<!|",
    '!BASH<!|"ls"|!>',
    "!SEARCH<!|",
    "!PRINT<!|",
    "BASH<!|",
    "name := <!|",
    "<<END\n",
    "\nEND",
    "END|!>",
    "\nEND\n|!>",
    "END2",
    "```",
    "```python\n",
    "\n```\n",
    "~~~",
    "`",
    "<think>",
    "</think>",
    "<code>",
    "</code>",
    "<actions>",
    "</actions>",
    "<![CDATA[",
    "]]>",
    "<tool_call>",
    "</parameter>",
    "<Image|",
    "|Image>",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "True",
    "None",
    "x",
    "name",
    "-1.5e3",
    "1e+5",
    "code=",
    "r",
    "# UPDATE MEMORY\n",
    "> ",
    "é😀",
]
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
sendable = st.text(characters)
hostile = st.lists(st.sampled_from(MARKS) | st.text(characters, max_size=3), max_size=25).map("".join)
payload = sendable | hostile
json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | payload,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(payload, inner, max_size=3),
    max_leaves=6,
)

FREE = Catalogue(
    [
        capability("one.text", "text", text="string"),
        capability("two", "first", "in file", **{"first": "string", "in file": "string"}),
        capability("any", value={}, other={}),
    ]
)


@settings(max_examples=400)
@given(hostile, st.integers(1, 7), st.booleans(), st.sampled_from(["stop", "length"]))
def test_any_text_reads_the_same_in_any_pieces(text: str, size: int, stop: bool, finish: str) -> None:
    script = ScriptDialect(stop=stop, titles={"UPDATE MEMORY": "memory.keep"})
    variables = {"name": "value", "x": "1"}
    whole = read(script.parser(CATALOGUE, variables), text, finish=finish)
    assert read(script.parser(CATALOGUE, variables), text, size=size, finish=finish) == whole


def back(
    actions: Sequence[Action], catalogue: Catalogue, capabilities: Sequence[Capability]
) -> list[tuple[str, Json]]:
    script = ScriptDialect(stop=False)
    found = read(script.parser(catalogue), script.write(actions, capabilities), size=5)
    assert not found.faults
    return [(a.capability, a.arguments) for a in found.actions]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(["one.text", "two"]), payload, payload), max_size=3), st.booleans())
def test_what_is_written_is_read_back(written: list[tuple[str, str, str]], known: bool) -> None:
    actions = [
        Action("", name, {"text": a} if name == "one.text" else {"first": a, "in file": b})
        for name, a, b in written
    ]
    assert back(actions, FREE, list(FREE) if known else ()) == [(a.capability, a.arguments) for a in actions]


@settings(max_examples=200)
@given(json_data, json_data)
def test_json_data_is_read_back(value: Json, other: Json) -> None:
    action = Action("", "any", {"value": value, "other": other})
    ((_, arguments),) = back([action], FREE, list(FREE))
    expected = {k: v for k, v in action.arguments.items() if v is not None}
    assert {k: v for k, v in arguments.items() if v is not None} == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_program_with_every_mark(size: int) -> None:
    program = "\n".join(MARKS) * 2
    script = ScriptDialect()
    text = script.write([Action("", "python", {"code": program})], list(CATALOGUE))
    assert read(script.parser(CATALOGUE), text, size=size).called == [("python", {"code": program})]
