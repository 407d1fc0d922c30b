"""Names on the wire, and names that are near."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from textor.dialects.names import script_names, tool_names
from textor.dialects.near import Lines, nearest, position, unknown_name


def test_plain_forms() -> None:
    assert tool_names(["files.list"]).wire("files.list") == "files_list"
    assert script_names(["files.list"]).wire("files.list") == "FILES-LIST"


def test_both_forms_are_understood_and_nothing_else() -> None:
    names = tool_names(["files.list"])
    assert names.name("files_list") == names.name("files.list") == "files.list"
    assert names.name("Files_List") is None
    assert "files.list" in names
    assert "files_list" not in names


def test_names_that_meet_on_the_wire_stay_apart_in_any_order() -> None:
    names = ["files.list", "files_list", "files/list"]
    forward, backward = tool_names(names), tool_names(reversed(names))
    assert forward.wire("files_list") == "files_list"
    for name in names:
        assert forward.wire(name) == backward.wire(name)
        assert forward.name(forward.wire(name)) == name


@given(st.lists(st.text(min_size=1, max_size=90), max_size=12))
def test_every_set_of_names_is_mapped_and_back(names: list[str]) -> None:
    for made, allowed in (
        (tool_names(names), "[a-zA-Z0-9_-]{1,64}"),
        (script_names(names), "[A-Z0-9_-]{1,64}"),
    ):
        for name in names:
            assert re.fullmatch(allowed, made.wire(name))
            assert made.name(made.wire(name)) == name


def test_nearest() -> None:
    names = ["files.list", "files.read", "shell.run"]
    assert nearest("FILES-LST", names) == ("files.list",)
    assert nearest("read", names) == ("files.read",)
    assert nearest("weather", names) == ()
    assert nearest("", names) == ()


def test_unknown_name_lists_what_there_is_when_nothing_is_near() -> None:
    assert unknown_name("weather", ["shell_run"]) == 'There is no "weather". There are: shell_run.'
    assert unknown_name("shel_run", ["shell_run"]) == 'There is no "shel_run". Did you mean shell_run?'
    assert "nothing can be called" in unknown_name("x", [])


@given(st.text(alphabet="ab\n"), st.integers(1, 4))
def test_lines_agree_with_position(text: str, size: int) -> None:
    lines = Lines()
    for start in range(0, len(text), size):
        lines.feed(text[start : start + size])
    assert [lines.at(at) for at in range(len(text) + 1)] == [
        position(text, at) for at in range(len(text) + 1)
    ]
