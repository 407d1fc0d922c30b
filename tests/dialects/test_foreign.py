"""Calls in a form of other servers are told to the model, and never taken for its answer (R11, S6)."""

from __future__ import annotations

import time

import pytest
from reading import CATALOGUE

from textor.dialects import dialect
from textor.dialects.foreign import LONGEST, foreign_call
from textor.dialects.mixed import mixed
from textor.dialects.port import Dialect
from textor.dialects.reader import Reader, Reading
from textor.messages import TextChunk

ARGUMENTS = '{"path": "src"}'
ELSEWHERE = [
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>files_list\n```json\n{ARGUMENTS}\n```",
    f"<|tool_calls_section_begin|><|tool_call_begin|>functions.files_list:0<|tool_call_argument_begin|>{ARGUMENTS}",
    f"<|channel|>commentary to=functions.files_list <|constrain|>json<|message|>{ARGUMENTS}",
    '<function_calls>\n<invoke name="files_list">\n<parameter name="path">src</parameter>\n</invoke>',
    '<minimax:tool_call>\n<invoke name="files_list"><parameter name="path">src</parameter></invoke>',
    f'<|tool_call|>{{"name": "files_list", "arguments": {ARGUMENTS}}}',
    f'<tools>{{"name": "files_list", "arguments": {ARGUMENTS}}}</tools>',
    f"I look.\nAction: files_list\nAction Input: {ARGUMENTS}",
    f'{{"tool": "files_list", "args": {ARGUMENTS}}}',
    f'{{"name": "file_list", "arguments": {ARGUMENTS}}}',
    'files_list(path="src")',
    '[files_list(path="src")]',
    '!FILES-LIST<!|"src"|!>',
    '<actions><files.list path="src"/></actions>',
]
HALF_REMEMBERED = ['!FILES-LIST("src")', '!FILES-LIST<!"src"!>', '!FILES-LIST<|"src"|>', 'FILES-LIST("src")']
ANSWERS = [
    'The call is `files_list(path="src")`.',
    "```\n<function_calls>files_list\n```\nis how it is written.",
    '> Action: files_list\n\nis from the old log.',
    "<think>\nAction: files_list\n</think>\nAll is well.",
    '{"name": "Anna", "arguments": "none"}',
    '{"path": "files_list"}',
    "I used files_list(path='src') before, and files_list again.",
    "Action: none\n[1] and <b>files_list</b>",
    "!important: files_list",
]  # fmt: skip


def read(made: Dialect, text: str, size: int = 10**9) -> Reading:
    reader = Reader(made, CATALOGUE, "r")
    for start in range(0, len(text), size):
        reader.feed(TextChunk(text[start : start + size]))
    return reader.close()


@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_call_of_another_server_is_told(text: str) -> None:
    for size in (10**9, 1):
        found = read(dialect("tools"), text, size)
        assert found.actions == ()
        (fault,) = found.faults
        assert "Call the function files_list" in fault


@pytest.mark.parametrize("text", HALF_REMEMBERED)
def test_a_mark_of_script_that_is_half_remembered_is_told(text: str) -> None:
    found = read(dialect("script"), text)
    assert found.actions == ()
    assert "Write !FILES-LIST<!|path?: string" in found.faults[0]


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("name", ["tools", "script"])
def test_what_is_quoted_or_only_named_stays_the_answer(name: str, text: str) -> None:
    found = read(dialect(name), text)
    assert (found.actions, found.faults) == ((), ())
    assert found.reply


@pytest.mark.parametrize(
    ("other", "form"), [("xml", "<actions><files.list …/>"), ("script", "!FILES-LIST<!|")]
)
def test_a_function_call_in_the_text_of_mixed_dialects_is_told(other: str, form: str) -> None:
    made = mixed([dialect("tools"), dialect(other)])
    found = read(made, f'<tool_call>{{"name": "files_list", "arguments": {ARGUMENTS}}}</tool_call>')
    assert found.actions == ()
    assert form in found.faults[0]


def test_what_acted_is_not_told_of_again() -> None:
    found = read(dialect("script"), '!FILES-LIST<!|"src"|!>\nAction: files_list')
    assert [action.capability for action in found.actions] == ["files.list"]
    assert found.faults == ()


@pytest.mark.parametrize(
    "piece", ["<|", "<｜x｜>", "!A-", "files_list(", "\nAction: ", '[{"name":"', "<invoke a"]
)
def test_hostile_text_is_looked_through_in_linear_time(piece: str) -> None:
    text = piece * (LONGEST // len(piece))
    began = time.process_time()
    foreign_call(text, "tools", CATALOGUE)
    assert time.process_time() - began < 3
