"""`textor parse`: what the interpreter makes of a text, for every dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Program

CAPABILITIES = [
    {
        "name": "files.write",
        "description": "Write a text to a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
        "phrases": ["write [text] to file [path]"],
    },
    {"id": "email.start", "action": "start email application", "description": "open the email program"},
]
WRITTEN = {
    "script": '!FILES-WRITE<!|"a.txt", "hi"|!>',
    "tools": '<tool_call>{"name": "files_write", "arguments": {"path": "a.txt", "text": "hi"}}</tool_call>',
    "xml": '<actions><files_write path="a.txt" text="hi"/></actions>',
    "step": '{"command": {"name": "files_write", "arguments": {"path": "a.txt", "text": "hi"}}}',
    "plan": "1. write [hi] to file [a.txt]",
}


@pytest.fixture
def listed(textor: Program) -> Program:
    (textor.folder / "caps.json").write_text(json.dumps(CAPABILITIES))
    return textor


def parsed(program: Program, *args: str, stdin: str) -> dict[str, Any]:
    done = program("parse", "--capabilities", "caps.json", "--json", *args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("dialect", list(WRITTEN))
def test_each_dialect_reads_its_action(listed: Program, dialect: str) -> None:
    found = parsed(listed, "--dialect", dialect, stdin=WRITTEN[dialect])
    (action,) = found["actions"]
    assert (action["capability"], action["arguments"]) == ("files.write", {"path": "a.txt", "text": "hi"})
    assert action["fault"] is None and action["line"] == 1
    for size in ("1", "3"):
        assert parsed(listed, "--dialect", dialect, "--chunk", size, stdin=WRITTEN[dialect]) == found


def test_near_misses_have_their_place(listed: Program) -> None:
    found = parsed(
        listed, "--dialect", "plan", stdin="Sure:\nwrite [hi] to [a.txt\nstart email application\n"
    )
    (miss,) = found["near_misses"]
    assert (miss["line"], miss["column"]) == (2, 15) and "never closed" in miss["message"]
    assert [a["capability"] for a in found["actions"]] == ["email.start"]
    assert found["prose"] == "Sure:\n"


def test_two_dialects(listed: Program) -> None:
    found = parsed(listed, "--dialect", "tools,script", stdin=WRITTEN["script"])
    assert [a["capability"] for a in found["actions"]] == ["files.write"]


def test_a_text_that_was_cut_does_not_act(listed: Program) -> None:
    found = parsed(listed, "--dialect", "plan", "--finish", "length", stdin="start email application")
    assert found["actions"] == [] and "cut short" in found["near_misses"][0]["message"]


def test_for_a_person_and_from_a_file(listed: Program) -> None:
    text = f"I do it:\n{WRITTEN['plan']}\nopen [the mail program\n"
    (listed.folder / "reply.txt").write_bytes(text.encode() + b"`\xff`")
    done = listed("parse", "--capabilities", "caps.json", "--dialect", "plan", "reply.txt")
    first, second, *rest = done.stdout.splitlines()
    assert done.returncode == 0 and first == '2:4  files.write(text="hi", path="a.txt")'
    assert second.startswith("3:6  no action: This bracket is never closed.")
    assert rest == ["prose: I do it:", "`\ufffd`"]
    assert listed("parse", "--dialect", "plan", stdin="").stdout == "Nothing was written.\n"


def test_the_capabilities_of_textor_are_the_default(listed: Program) -> None:
    done = listed("parse", "--dialect", "script", "--json", stdin='!FILES-LIST<!|"src"|!>')
    assert [a["capability"] for a in json.loads(done.stdout)["actions"]] == ["files.list"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--dialect", "plam"], "There is no dialect 'plam'. Did you mean plan?"),
        (["--dialect", "plan,xml"], "plan"),
        (["--dialect", "plan", "--chunk", "0"], "--chunk is 0, and must be 1 or more."),
        (["--dialect", "plan", "missing.txt"], "missing.txt cannot be read"),
        (["--dialect", "plan", "--capabilities", "missing.json"], "missing.json cannot be read"),
    ],
)
def test_wrong_use_is_told(listed: Program, args: list[str], says: str) -> None:
    done = listed("parse", *args, stdin="x")
    assert done.returncode == 2 and says in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[{]", "caps.json, line 1, column 3: this is no valid JSON."),
        ("{}", "caps.json: this is not a list of capabilities."),
        ("[1]", "caps.json, entry 1: 1 is no object."),
        ('[{"name": ""}]', "caps.json, entry 1: name is missing or empty."),
        ('[{"name": "a"}, {"name": "a"}]', "caps.json, entry 2: there is a capability 'a' already."),
        (
            '[{"name": "a", "phrases": "x"}]',
            'caps.json, entry 1 (a): phrases must be a list of texts, and is "x".',
        ),
        (
            '[{"name": "a", "parameters": []}]',
            "entry 1 (a): parameters must be a JSON Schema of type object.",
        ),
        ('[{"id": "a", "action": 3}]', "entry 1 (a): action must be a text, and is 3."),
        ("\udcff", "caps.json cannot be read: it is not UTF-8."),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_wrong_list_is_told_with_its_place(textor: Program, text: str, says: str) -> None:
    Path(textor.folder, "caps.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = textor("parse", "--dialect", "plan", "--capabilities", "caps.json", stdin="x")
    assert done.returncode == 2 and says in done.stderr
    assert done.stderr.count("\n") == 1
