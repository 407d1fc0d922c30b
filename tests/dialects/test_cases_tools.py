"""The cases from the field, "Reading what a model wrote", for the dialects `tools` and `step`.

Each test is named after its case in the project's list.
"""

from __future__ import annotations

import json

import pytest
from reading import CATALOGUE, actions, answer, called, events, faults, prose, run, thinks

from textor.actions import Action
from textor.dialects import dialect
from textor.messages import CallChunk

TOOLS = dialect("tools")
STEP = dialect("step")
REAL = '<tool_call>\n{"name": "files_list", "arguments": {"path": "src"}}\n</tool_call>'
RAN = [("files.list", {"path": "src"})]
EXAMPLE = '<tool_call>{"name": "keep", "arguments": {"x": 1}}</tool_call>'


def call(name: str, arguments: str, finish: str = "tool_calls") -> list[object]:
    return list(called(TOOLS, [CallChunk(0, "c", name, arguments)], finish))


R1 = [
    f"For example `{EXAMPLE}`, and now:\n",
    f"```\n{EXAMPLE}\n```\n",
    f"````md\n```tool_call\n{EXAMPLE[11:-12]}\n```\n````\n",
    f"~~~json\n{EXAMPLE}\n~~~\n",
    f"e.g. <code>{EXAMPLE}</code> is bad\n",
    f"> {EXAMPLE}\n\n",
]


@pytest.mark.parametrize("quoted", R1)
def test_r1_quoted_calls_do_not_run(quoted: str) -> None:
    assert run(events(TOOLS, quoted + REAL)) == RAN
    assert run(events(TOOLS, quoted)) == []


def test_r1_a_json_fence_acts_only_as_the_whole_reply() -> None:
    quoted = f"```json\n{EXAMPLE[11:-12]}\n```\n"
    assert run(events(TOOLS, quoted + REAL)) == RAN
    assert run(events(TOOLS, "e.g.\n" + quoted)) == []
    assert run(events(TOOLS, quoted + "Like this.")) == []
    assert run(events(TOOLS, quoted)) == [("keep", {"x": 1})]


@pytest.mark.parametrize("word", ["think", "thinking", "reasoning"])
def test_r2_calls_in_reasoning_do_not_run(word: str) -> None:
    found = events(TOOLS, f"<{word}>maybe {EXAMPLE}\n{EXAMPLE}</{word}>ok")
    assert (run(found), faults(found), prose(found)) == ([], [], "ok")
    assert run(events(TOOLS, f"<{word}>\n{EXAMPLE}")) == []
    assert run(events(TOOLS, f"maybe\n{EXAMPLE}\n</think>\nok")[-1:]) == []
    step = json.dumps({"thought": "", "command": {"name": "keep", "arguments": {"x": 1}}})
    assert run(events(STEP, f"<{word}>\n{step}\n</{word}>")) == []


R3 = [
    "use </tool_call> to close",
    "</function>",
    "```\n```tool_call",
    "<think>",
    '"}}</tool_call>\n',
    "!X<!|a|!>",
]


@pytest.mark.parametrize("payload", R3)
def test_r3_marks_in_payloads_are_data(payload: str) -> None:
    body = json.dumps({"name": "keep", "arguments": {"x": payload}})
    for text in (
        f"<tool_call>{body}</tool_call>",
        f"```tool_call\n{body}\n```",
        body,
        f"[TOOL_CALLS] [{body}]",
    ):
        assert run(events(TOOLS, text)) == [("keep", {"x": payload})]
    assert run(call("keep", json.dumps({"x": payload}))) == [("keep", {"x": payload})]
    command = {"thought": payload, "command": {"name": "keep", "arguments": {"x": payload}}}
    assert run(events(STEP, json.dumps(command))) == [("keep", {"x": payload})]


def test_r4_prose_after_the_object_is_kept() -> None:
    found = events(TOOLS, '{"name":"keep","arguments":{"x":1}} Then I use {braces}.')
    assert (run(found), prose(found)) == ([("keep", {"x": 1})], " Then I use {braces}.")
    found = call("keep", '{"x":1} Then I use {braces}.')
    assert (run(found), prose(found)) == ([("keep", {"x": 1})], " Then I use {braces}.")


def test_r5_raw_line_breaks_in_strings() -> None:
    arguments = '{\n  "path": "a",\n  "text": "one\n\ttwo\n"\n}'
    wanted = [("files.write", {"path": "a", "text": "one\n\ttwo\n"})]
    assert run(call("files_write", arguments)) == wanted
    assert (
        run(events(TOOLS, f'<tool_call>{{"name": "files_write",\n"arguments": {arguments}}}</tool_call>'))
        == wanted
    )


@pytest.mark.parametrize("arguments", ['["a"]', "3", '"text"', "true"])
def test_r6_what_is_no_object_is_an_outcome(arguments: str) -> None:
    found = call("keep", arguments)
    assert run(found) == []
    assert len(actions(found)) == len(faults(found)) == 1


R7 = ['{"city": "San Fra', '"{\\"a\\":1"', '{"x": tru', '{"x": [1, 2', '{"x"', "{"]


@pytest.mark.parametrize("arguments", R7)
@pytest.mark.parametrize("finish", ["tool_calls", "length"])
def test_r7_cut_arguments_never_run(arguments: str, finish: str) -> None:
    found = call("keep", arguments, finish)
    assert run(found) == []
    assert "cut short" in faults(found)[0]
    (action,) = actions(found)
    assert (action.arguments, action.text) == ({}, arguments)


def test_r7_position_and_text_go_back() -> None:
    (fault,) = faults(call("keep", '{"city": "San Fra'))
    assert "line 1, column 18" in fault
    assert "San Fra" in fault


@pytest.mark.parametrize("arguments", ["", '""', "null"])
def test_r8_empty_arguments(arguments: str) -> None:
    assert run(call("files_list", arguments)) == [("files.list", {"path": "."})]
    found = call("keep", arguments)
    assert run(found) == []
    assert "x: is missing" in faults(found)[0]


def test_r9_conversion_only_where_the_schema_says_so() -> None:
    found = call("view", '{"view_range": "[1, 5]", "n": "3", "text": "[1]"}')
    assert run(found) == [("view", {"view_range": [1, 5], "n": 3, "text": "[1]"})]


@pytest.mark.parametrize("name", ["file_list", "files-list", "FilesList", "list_files_now"])
def test_r11_a_misspelt_name_is_told_and_is_no_answer(name: str) -> None:
    for found in (
        call(name, "{}"),
        events(TOOLS, f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'),
        events(STEP, json.dumps({"thought": "", "command": {"name": name, "arguments": {}}})),
    ):
        assert run(found) == []
        assert "files_list" in faults(found)[0]
        assert answer(found) == ""


def test_r12_integers_for_floats_names_in_any_order_defaults() -> None:
    assert run(call("view", '{"scale": 2, "n": 1}')) == [("view", {"scale": 2, "n": 1})]
    assert run(call("files_write", '{"text": "t", "path": "p"}')) == [
        ("files.write", {"path": "p", "text": "t"})
    ]
    assert run(call("files_list", "{}")) == [("files.list", {"path": "."})]


R18 = [
    f"Sure.\n{REAL}\nand `{EXAMPLE}`\n```\n{EXAMPLE}\n```\n{REAL}",
    '<think>no</think>{"name": "keep", "arguments": {"x": "a\\"}\\\\"}} rest',
    '[TOOL_CALLS]keep[ARGS]{"x": [1, {"y": 2}]}',
    '<|python_tag|>{"name": "keep", "parameters": {"x": 1}}; {"name": "files_list", "parameters": {}}',
    "<tool_call>\n<function=files_write>\n<parameter=path>\na\n</parameter>\n<parameter=text>\n"
    "b </parameter> c\n</parameter>\n</function>\n</tool_call>\n",
    '```tool_call\n{"name": "keep", "arguments": {"x": "```"}}\n{"name": "kep", "arguments": {}}\n```\nx',
    '```json\n{"name": "keep", "arguments": {"x": 1}}\n```\n',
    'a <tool_call>{"name": "keep", "arguments": {"x": 1}}</tool_call> b',
    '<tool_call>{"name": "keep", "arguments": {"x": "' + "long " * 100 + '\\n"}}</tool_call>',
    '{"thought": "t", "command": {"name": "keep", "arguments": {"x": 1}}} tail',
    'x\n```json\n{"thought": "t", "response": "r"}\n```\n',
]


@pytest.mark.parametrize("text", R18)
@pytest.mark.parametrize("name", ["tools", "step"])
def test_r18_the_same_in_pieces(name: str, text: str) -> None:
    whole = events(dialect(name), text)
    for size in range(1, len(text)):
        assert events(dialect(name), text, size) == whole


def test_r19_text_that_cannot_be_stored_is_mended() -> None:
    found = call("keep", '{"x": "\\ud83d and \\ud83d\\ude00 and \\u0000"}')
    assert run(found) == [("keep", {"x": "\ufffd and 😀 and \ufffd"})]
    big = "QUJD" * 250_000
    assert run(call("keep", json.dumps({"x": big}))) == [("keep", {"x": big})]
    text = TOOLS.write([Action("", "keep", {"x": big})])
    assert run(events(TOOLS, text, 4096)) == [("keep", {"x": big})]


@pytest.mark.parametrize("name", ["tools", "step"])
def test_r20_empty_output_is_nothing(name: str) -> None:
    for text in ("", "  \n\t"):
        found = events(dialect(name), text)
        assert (run(found), faults(found), prose(found).strip(), thinks(found)) == ([], [], "", [])


@pytest.mark.parametrize(
    "end", range(len('<tool_call>\n{"name": "files_'), len(REAL) - len("}\n</tool_call>"))
)
def test_r20_a_cut_call_in_the_text_never_runs(end: int) -> None:
    found = events(TOOLS, REAL[:end], finish="length")
    assert run(found) == []
    assert "cut short" in faults(found)[0]


def test_s3_a_delta_without_a_name_or_index() -> None:
    chunks = [CallChunk(-1, "", "", '{"x"'), CallChunk(-1, "", "keep", ""), CallChunk(-1, "", "", ": 1}")]
    assert run(called(TOOLS, chunks)) == [("keep", {"x": 1})]


def test_s6_calls_printed_as_text_are_read() -> None:
    parser = TOOLS.parser(CATALOGUE)
    assert run([*parser.feed(f"I look.\n{REAL}"), *parser.close("stop")]) == RAN
