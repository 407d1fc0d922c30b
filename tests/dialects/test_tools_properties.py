"""What holds for `tools` and `step` whatever is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import CAPABILITIES, actions, called, events, faults, run

from textor.actions import Action
from textor.dialects import Dialect, dialect
from textor.messages import CallChunk
from textor.values import clean_text

DIALECTS = [dialect("tools"), dialect("step")]

#: Marks of every dialect, and what JSON, Markdown and XML treat specially.
MARKS = (
    *("<tool_call>", "</tool_call>", "<function=keep>", "</function>", "<parameter=x>", "</parameter>"),
    *("<|python_tag|>", "[TOOL_CALLS]", "[ARGS]", "```tool_call", "```json", "```", "~~~", "`", "> ", "\n"),
    *("<think>", "</think>", "<code>", "</code>", "!KEEP<!|", "|!>", "x := <!|", "<actions>", "</actions>"),
    *(
        "<context>",
        "<![CDATA[",
        "]]>",
        "&amp;",
        "[x]",
        "- ",
        "1. ",
        '"',
        "\\",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "'",
    ),
    *(
        '{"name": "keep", "arguments": {"x": 1}}',
        '{"thought": ',
        '"command": ',
        '"response"',
        "keep",
        "\u2028",
    ),
)
texts = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=6)), max_size=12).map("".join)
clean = texts.map(clean_text)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), clean
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(clean, inner, max_size=4)),
    max_leaves=8,
)
made = st.one_of(
    values.map(lambda x: Action("", "keep", {"x": x})),
    st.tuples(clean, clean).map(lambda pair: Action("", "files.write", {"path": pair[0], "text": pair[1]})),
    clean.map(lambda path: Action("", "files.list", {"path": path})),
)


def plain(written: list[Action]) -> list[tuple[str, object]]:
    return [(action.capability, action.arguments) for action in written]


@given(
    st.lists(made, min_size=1, max_size=3),
    st.integers(1, 9),
    st.sampled_from(["", "Sure.\n", "<think>a</think>\n"]),
)
def test_tools_reads_what_it_writes(written: list[Action], size: int, before: str) -> None:
    tools = DIALECTS[0]
    for known in ((), CAPABILITIES):
        text = before + tools.write(written, known)
        found = events(tools, text, size)
        assert run(found) == plain(written)
        assert faults(found) == []


@given(made, st.integers(1, 9))
def test_step_reads_what_it_writes(written: Action, size: int) -> None:
    step = DIALECTS[1]
    found = events(step, step.write([written], CAPABILITIES), size)
    assert (run(found), faults(found)) == (plain([written]), [])


@given(st.lists(made, min_size=1, max_size=3), st.integers(1, 9))
def test_native_calls_in_any_pieces(written: list[Action], size: int) -> None:
    chunks: list[CallChunk] = []
    for index, action in enumerate(written):
        text = json.dumps(action.arguments, ensure_ascii=index % 2 == 0)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        chunks.append(CallChunk(index, f"c{index}", action.capability.replace(".", "_")))
        chunks += [CallChunk(index, "", "", piece) for piece in pieces]
    found = called(DIALECTS[0], chunks)
    assert run(found) == plain(written)
    assert [action.call_id for action in actions(found)] == [f"c{index}" for index in range(len(written))]


@pytest.mark.parametrize("made_dialect", DIALECTS, ids=lambda made_dialect: made_dialect.name)
@given(text=texts, size=st.integers(1, 9), finish=st.sampled_from(["stop", "length"]))
def test_arbitrary_text_is_the_same_in_any_pieces(
    made_dialect: Dialect, text: str, size: int, finish: str
) -> None:
    """R18, and nothing crashes."""
    assert events(made_dialect, text, size, finish) == events(made_dialect, text, finish=finish)


pieces = st.builds(
    CallChunk,
    st.integers(-1, 2),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "keep", "files_list", "iterate", "x"]),
    st.one_of(
        st.sampled_from(["", "{}", '{"x": 1}', '{"x"', ": 1}", "null", '{"thought": ""}']),
        st.text(max_size=4),
    ),
)


@pytest.mark.parametrize("made_dialect", DIALECTS, ids=lambda made_dialect: made_dialect.name)
@given(chunks=st.lists(pieces, max_size=8), finish=st.sampled_from(["tool_calls", "length", "stop"]))
def test_junk_from_a_server_never_crashes_and_ids_stay_apart(
    made_dialect: Dialect, chunks: list[CallChunk], finish: str
) -> None:
    ids = [action.call_id for action in actions(called(made_dialect, chunks, finish))]
    assert all(ids)
    assert len(set(ids)) == len(ids)
