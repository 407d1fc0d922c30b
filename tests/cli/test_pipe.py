"""`textor run --stdio`: an agent at work on a pipe."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textor.layouts.stdio import MOST_WAITING
from textor.testing import Gate, Reply

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


def test_who_is_told_to_end_leaves_nothing_behind_and_can_go_on(textor: Program, scripted: Scripted) -> None:
    with scripted(["<actions><wait_event/></actions>", "Again.", "Over."]) as server:
        process = piped(textor, "run", "--stdio", "begin")
        assert process.stderr is not None
        while "wait_event" not in process.stderr.readline():
            pass
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 143
        session = err.split("--session ")[1].split("`")[0]
        done = textor("run", "--stdio", "--session", session, stdin="x")
        assert done.returncode == 0, done.stderr
    told = str(server.requests[1].messages[-1]["content"])
    # by the waiting itself, or before it had begun
    assert "The waiting was cancelled." in told or "Cancelled: Stopped." in told


def test_a_reader_that_has_gone_is_told_to_the_agent(textor: Program, scripted: Scripted) -> None:
    act = '<actions><write_stdout message="a"/></actions>'
    with scripted([act, "Nobody reads.", "Ended."]) as server:
        process = piped(textor, "run", "--stdio", "begin")
        assert process.stdout is not None and process.stdin is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        err = process.stderr.read()
        assert process.wait(60) == 0, err
    shown = str(server.requests[1].messages[-1]["content"])
    assert "Standard output is closed: nobody reads it any more." in shown and "Errno" not in err + shown


def test_a_reader_that_does_not_read_holds_up_no_end(textor: Program, scripted: Scripted) -> None:
    much = f'<actions><write_stdout message="{"x" * 200_000}"/></actions>'
    with scripted([much, "Done."]):
        process = piped(textor, "run", "--stdio", "begin")
        assert process.stdout is not None
        assert process.stdout.read(1) == "x"  # it writes, and more than a pipe holds
        process.terminate()
        assert process.wait(30) == 143


def test_no_more_is_taken_in_than_is_read(textor: Program, scripted: Scripted) -> None:
    gate = Gate()
    with scripted(
        [Reply("<actions><read_stdin n='1000000'/></actions>", gates={1: gate}), "Done.", "Done."]
    ) as server:
        process = piped(textor, "run", "--stdio", "begin")
        assert process.stdin is not None and process.stderr is not None
        os.set_blocking(process.stdin.fileno(), False)
        gate.reached.wait_blocking()
        sent = 0
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):
                select.select([], [process.stdin], [], 5)
                sent += os.write(process.stdin.fileno(), b"y" * 65_536)
        assert MOST_WAITING <= sent < MOST_WAITING + 1_000_000
        gate.open()
        for line in process.stderr:
            if line.startswith("  done: yyyy"):
                break
        process.terminate()
        assert process.wait(60) == 143
    assert len(server.requests) in (1, 2)
