from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from script_machine import capability, read

from textor.actions import Action, Catalogue
from textor.dialects.xml import Xml
from textor.errors import UseError
from textor.values import Json

#: The marks of this and of all other dialects, and what is near them.
MARKS = [
    "<actions>",
    "</actions>",
    "<actions/>",
    "<action>",
    "<context>",
    "</context>",
    "<one",
    "<one>",
    "</one>",
    "<one/>",
    "<two ",
    "</two>",
    "<two/>",
    "<text>",
    "</text>",
    "<first>",
    "</first>",
    "<names>",
    "<name>",
    "</name>",
    "</names>",
    "<b>",
    "</b>",
    "<x",
    'text="',
    "text='",
    'text="a"',
    "=",
    "<![CDATA[",
    "]]>",
    "]]",
    "]",
    "<!--",
    "-->",
    "<!",
    "<?",
    "&",
    "&amp;",
    "&lt;",
    "&#65;",
    "&#x0;",
    "&",
    "<",
    ">",
    "/>",
    "/",
    '"',
    "'",
    "\n",
    "\r\n",
    "\n\n",
    "  ",
    " ",
    "a",
    "```",
    "```xml\n",
    "\n```\n",
    "`",
    "> ",
    "<think>",
    "</think>",
    "<code>",
    "</code>",
    "<quote>",
    "e.g. ",
    "!BASH<!|",
    "|!>",
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "[x]",
    "{",
    "}",
    "é😀",
    "\x1b[1m",
    "- ",
    "1 < 2",
]
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
hostile = st.lists(st.sampled_from(MARKS) | st.text(characters, max_size=3), max_size=30).map("".join)
payload = st.text(characters) | hostile
json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | payload,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(payload, inner, max_size=3),
    max_leaves=6,
)

CATALOGUE = Catalogue(
    [
        capability("one", "text", text="string"),
        capability("two", "first", first="string", names={"type": "array", "items": {"type": "string"}}),
        capability(
            "files.list", "object", object={"type": "object"}, list={"type": "array"}, number="number"
        ),
    ]
)


@settings(max_examples=500)
@given(
    hostile,
    st.integers(1, 9),
    st.sampled_from(["stop", "length"]),
    st.sampled_from(["", "<actions>", "<actions><one>"]),
)
def test_any_text_reads_the_same_in_any_pieces(text: str, size: int, finish: str, before: str) -> None:
    whole = read(Xml().parser(CATALOGUE), before + text, finish=finish)
    assert read(Xml().parser(CATALOGUE), before + text, size=size, finish=finish) == whole


def back(actions: list[Action], size: int = 5, *, known: bool = True) -> list[tuple[str, Json]]:
    found = read(Xml().parser(CATALOGUE), Xml().write(actions, list(CATALOGUE) if known else ()), size=size)
    assert not found.faults
    return [(a.capability, a.arguments) for a in found.actions]


@settings(max_examples=400)
@given(st.lists(st.tuples(payload, st.lists(payload, max_size=3)), max_size=3), st.booleans())
def test_what_is_written_is_read_back(written: list[tuple[str, list[str]]], known: bool) -> None:
    actions = [Action("", "one", {"text": text}) for text, _ in written]
    actions += [Action("", "two", {"first": text, "names": names}) for text, names in written]
    assert back(actions, known=known) == [(a.capability, a.arguments) for a in actions]


@settings(max_examples=200)
@given(
    st.dictionaries(payload, json_data, max_size=3),
    st.lists(json_data, max_size=3),
    st.floats(-1e9, 1e9) | st.integers(),
)
def test_json_data_is_read_back(data: dict[str, Json], items: list[Json], number: float) -> None:
    action = Action("", "files.list", {"object": data, "list": items, "number": number})
    assert back([action]) == [("files.list", action.arguments)]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_text_with_every_mark(size: int) -> None:
    text = "\n".join(MARKS) * 2
    assert back([Action("", "one", {"text": text})], size) == [("one", {"text": text})]


def test_what_cannot_be_carried_is_told() -> None:
    with pytest.raises(UseError, match="no name in XML"):
        Xml().write([Action("", "one", {"in file": "x"})])
    untyped = capability("free", value={})
    with pytest.raises(UseError, match="would come back as another value"):
        Xml().write([Action("", "free", {"value": 5})], [untyped])
