"""`textor run --stdio`: an agent at work on a pipe."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textor.testing import Reply

from .conftest import Program

Scripted = Callable[..., Any]


def piped(textor: Program, *args: str) -> subprocess.Popen[str]:
    textor.env["TEXTOR_SANDBOX"] = "off"
    pipe = subprocess.PIPE
    command = [*textor.command, *args]
    return subprocess.Popen(
        command, env=textor.env, cwd=textor.folder, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    )


def test_an_agent_reads_and_writes_on_a_pipe_and_ends_with_it(textor: Program, scripted: Scripted) -> None:
    replies = [
        'Data waits.\n<actions><read_stdin n="100"/></actions>',
        'I greet.\n<actions><write_stdout message="Hello Ann &amp; co"/></actions>',
        "Nothing more is to be done.",
        "It has ended.",
    ]
    with scripted(replies) as server:
        process = piped(textor, "run", "--stdio")
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("I am Ann")
        process.stdin.flush()
        assert process.stdout.readline() == "Hello Ann & co\n"
        asked = len(server.requests)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, ""), err
        assert "Traceback" not in err
    texts = [request.messages[-1]["content"] for request in server.requests]
    assert 'stdin="8"' in str(texts[0]) and "I am Ann" in str(texts[1])
    assert asked in (2, 3) and len(texts) in (3, 4)


def test_what_cannot_be_is_told(textor: Program, scripted: Scripted) -> None:
    with scripted([Reply("x")]):
        done = textor("run", "--session", "abc", "x")
    assert done.returncode == 2 and "--stdio" in done.stderr


def test_a_limit_of_one_turn_is_not_the_end_of_an_agent(textor: Program, scripted: Scripted) -> None:
    look = "<actions><wait_event timeout='1'/></actions>"
    replies = [look, "<actions><read_stdin/></actions>", "<actions><read_stdin/></actions>", "Over.", "Over."]
    with scripted(replies) as server:
        config = Path(textor.env["TEXTOR_CONFIG"])
        config.write_text(config.read_text() + "[limits]\niterations = 2\n")
        process = piped(textor, "run", "--stdio", "begin")
        assert process.stdin is not None and process.stderr is not None
        for line in process.stderr:
            if "limit" in line:
                break
        else:
            raise AssertionError("no limit was told")
        process.stdin.write("go on")
        process.stdin.flush()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    told = str(server.requests[2].messages[-1]["content"])
    assert "5 bytes wait on standard input" in told and "ended at its limit (iterations)" in told
