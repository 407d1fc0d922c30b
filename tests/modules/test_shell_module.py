"""The module `shell` through the same client as any other module: sessions, input, ends (T9)."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from module_parts import Desk, alive, until

from textor.actions import Outcome
from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.questions import Answer, Question
from textor.capabilities.modules.spec import ModuleSpec
from textor.capabilities.port import Scope
from textor.modules.shell.screen import Marks, plain
from textor.values import content_of

Do = Callable[..., Awaitable[Outcome]]


class Person:
    """Who is asked for passwords."""

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question, scope: Scope | None) -> Answer:
        self.asked.append(question)
        assert self.answer is not None
        return self.answer


def at_the_terminal(
    folder: Path, work: Callable[[Do, Desk], Awaitable[None]], person: Person | None = None, **more: Any
) -> None:
    async def main() -> None:
        command = (sys.executable, "-m", "textor.modules.shell", "--folder", str(folder))
        spec = ModuleSpec("term", command, trusted=True, **more)
        provider = ModulesProvider([spec], ask=person.ask if person is not None else None)
        desk = Desk(folder)

        async def do(tool: str, /, **arguments: Any) -> Outcome:
            return await desk.perform(provider, f"term.{tool}", **arguments)

        try:
            await work(do, desk)
        finally:
            await provider.close()

    asyncio.run(main())


def test_a_session_keeps_its_state_and_tells_the_exit_status(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        first = await do(
            "run", command="mkdir sub && cd sub && export A='x y'; f() { echo \"f:$1\"; }; false"
        )
        assert (first.state, first.exit_status, first.text) == ("done", 1, "exit status 1")
        second = await do("run", command='pwd; echo "$A"; f 1')
        assert second.text == f"exit status 0\n{(tmp_path / 'sub').resolve()}\nx y\nf:1"
        lines = "cat <<'EOF'\n  it's \"quoted\" $HOME `x` \\n\nEOF\nif true; then (exit 7); fi"
        third = await do("run", command=lines)
        assert third.text == 'exit status 7\n  it\'s "quoted" $HOME `x` \\n'
        wrong = await do("run", command="if then")
        assert wrong.exit_status not in (0, None)
        assert "syntax error" in wrong.text
        assert (await do("run", command="echo still here")).text.endswith("still here")

    at_the_terminal(tmp_path, work)


def test_long_work_is_returned_from_read_on_and_interrupted(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        begun = await do(
            "run", command="echo one; while [ ! -e go ]; do sleep 0.05; done; echo two", wait_seconds=0.4
        )
        assert (begun.text, begun.exit_status) == ("running\none", None)
        assert begun.data["state"] == "running"
        busy = await do("run", command="echo me too")
        assert busy.state == "failed"
        assert "still runs: echo one" in busy.text
        other = await do("run", session="second", command="echo me too")
        assert other.text == "exit status 0\nme too"
        (tmp_path / "go").touch()
        ended = await do("read")
        assert (ended.text, ended.exit_status) == ("exit status 0\ntwo", 0)
        await do("run", command="sleep 1000", wait_seconds=0.2)
        stopped = await do("signal")
        assert stopped.exit_status == 130
        listed = await do("list")
        assert {row["session"]: row["state"] for row in listed.data["sessions"]} == {
            "main": "idle",
            "second": "idle",
        }

    at_the_terminal(tmp_path, work)


def test_input_is_waited_for_and_given(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        asked = await do("run", command="read -p 'name? ' name; echo \"hello $name\"", wait_seconds=20)
        assert asked.data["state"] == "waiting for input"
        assert asked.text == "waiting for input\nname? "
        assert (await do("write", text="Ann")).text == "exit status 0\nAnn\nhello Ann"
        nothing = await do("write", text="x")
        assert "Nothing runs" in nothing.text

    at_the_terminal(tmp_path, work)


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
def test_a_password_comes_from_the_person_and_is_never_shown(tmp_path: Path, protocol: str) -> None:
    person = Person(Answer("accept", {"password": "s3cr3t-word"}))

    async def work(do: Do, desk: Desk) -> None:
        reads = "read -s -p 'Password for ann: ' p; echo"
        command = f'echo run >> runs; {reads}; echo "${{#p}} $(echo $p | tr a-z b-za)"'
        outcome = await do("run", command=command)
        assert outcome.exit_status == 0
        assert "11 t3ds3u-xpse" in outcome.text  # it was taken, and only once
        assert (tmp_path / "runs").read_text() == "run\n"
        whole = await do("page")
        assert "s3cr3t-word" not in outcome.text + whole.text
        (question,) = person.asked
        assert question.secret
        assert "Password for ann:" in question.message
        person.answer = Answer("decline")
        declined = await do("run", command="read -s -p 'PIN: ' p")
        assert declined.data["state"] == "waiting for hidden input"
        assert "did not give it" in declined.text
        # a model cannot type it either: the person is asked again
        again = await do("write", text="guess")
        assert again.data["state"] == "waiting for hidden input"
        assert len(person.asked) == 3

    at_the_terminal(tmp_path, work, person, protocol=protocol)


def test_without_a_person_a_hidden_prompt_is_told(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        outcome = await do("run", command="read -s -p 'Password: ' p", wait_seconds=20)
        assert outcome.text.startswith("waiting for hidden input, which only a person may give: Password:")
        assert (await do("signal")).data["state"] == "ended"

    at_the_terminal(tmp_path, work)


def test_sudo_asks_the_person(tmp_path: Path) -> None:
    """A program that reads the terminal itself, as sudo and ssh do."""
    program = tmp_path / "asks.py"
    program.write_text("import getpass\nprint(len(getpass.getpass('[sudo] password for ann: ')))\n")
    person = Person(Answer("accept", {"password": "abc"}))

    async def work(do: Do, desk: Desk) -> None:
        outcome = await do("run", command=f"{sys.executable} {program}")
        assert outcome.exit_status == 0
        assert outcome.text.endswith("\n3")
        assert "[sudo] password for ann:" in person.asked[0].message

    at_the_terminal(tmp_path, work, person)


def test_much_output_is_cut_and_the_whole_can_be_paged(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        outcome = await do("run", command="seq 1 100000")
        shown = content_of(outcome.values[0], desk.blobs).decode() if outcome.values else outcome.text
        assert len(shown.encode()) < 9_000
        assert "\n1\n2\n3\n" in shown
        assert shown.endswith("\n99999\n100000")
        assert re.search(r"bytes left out; page\(session='main', start=0\)", shown)
        middle = await do("page", start=300_000, count=70)
        assert re.search(r"\n\d{5}\n\d{5}\n", middle.text)
        assert "[bytes 300000 to 300070 of 688895]" in middle.text
        assert (await do("page", start=-11)).text.startswith("9\n100000\n")

    at_the_terminal(tmp_path, work)


def test_python_keeps_its_names(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        assert (await do("python", code="import math\nx = 6\nx * 7")).text == "exit status 0\n42"
        failed = await do("python", code="def f():\n    return x / 0\nf()")
        assert failed.exit_status == 1
        assert 'File "<code>", line 2, in f' in failed.text
        assert "driver.py" not in failed.text
        asked = await do("python", code="name = input('who? ')\nprint('hi', name)", wait_seconds=20)
        assert asked.data["state"] == "waiting for input"
        assert (await do("write", session="python", text="Eve")).text == "exit status 0\nEve\nhi Eve"
        endless = await do("python", code="while True: pass", wait_seconds=0.3)
        assert endless.data["state"] == "running"
        stopped = await do("signal", session="python")
        assert stopped.exit_status == 130
        assert (await do("python", code="x")).text == "exit status 0\n6"
        ended = await do("python", code="raise SystemExit(4)")
        assert (ended.data["state"], ended.exit_status) == ("closed", 4)

    at_the_terminal(tmp_path, work)


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "ksh", "sh"])
def test_each_shell_that_exists(tmp_path: Path, shell: str) -> None:
    async def work(do: Do, desk: Desk) -> None:
        outcome = await do("run", command="echo a; (exit 3)", shell=shell)
        if shutil.which(shell) is None:
            assert outcome.state == "failed"
            assert f"There is no shell '{shell}' here. There is: " in outcome.text
            return
        assert outcome.text == "exit status 3\na"
        kept = await do("run", command="A=5")
        assert kept.exit_status == 0
        assert (await do("run", command="echo $A")).text == "exit status 0\n5"
        assert (await do("run", command="exit 9")).data["state"] == "closed"
        # the next command begins a new session
        assert (await do("run", command="echo A=$A")).text == "exit status 0\nA="

    at_the_terminal(tmp_path, work)


def test_nothing_is_left_of_a_closed_session_or_a_killed_module(tmp_path: Path) -> None:
    async def main() -> None:
        command = (sys.executable, "-m", "textor.modules.shell", "--folder", str(tmp_path))
        provider = ModulesProvider([ModuleSpec("term", command)])
        desk = Desk(tmp_path)
        start = "sleep 1000 & echo $!; (setsid nohup sleep 1000 >/dev/null 2>&1 & echo $!)"
        try:
            first = await desk.perform(provider, "term.run", command=start)
            closed = [int(pid) for pid in first.text.split("\n")[1:]]
            assert all(alive(pid) for pid in closed)
            await desk.perform(provider, "term.close", session="main")
            assert not alive(closed[0])
            second = await desk.perform(provider, "term.run", command=start)
            module = provider.module("term").pid
            assert module is not None
            left = [int(pid) for pid in second.text.split("\n")[1:]]
        finally:
            await provider.close()
        await until(lambda: not any(alive(pid) for pid in (*closed, *left, module)), 5)

    asyncio.run(main())


def test_a_session_is_not_there_or_not_what_was_meant(tmp_path: Path) -> None:
    async def work(do: Do, desk: Desk) -> None:
        assert "There is no session 'x'. Open ones: none." in (await do("read", session="x")).text
        await do("run", command="true", session="x")
        assert "is a bash" in (await do("python", code="1", session="x")).text
        assert "with cd" in (await do("run", command="1", session="x", folder="/")).text
        assert "is no folder" in (await do("run", command="1", session="y", folder="missing")).text
        assert "There is no signal 'FLY'" in (await do("signal", session="x", name="FLY")).text

    at_the_terminal(tmp_path, work)


def test_plain_text_of_a_terminal() -> None:
    assert plain(b"\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07next") == "red\nnext"
    assert plain(b"10%\r50%\r100%\r\ndone") == "100%\ndone"
    assert plain(b"abcdef\rxy") == "xycdef"
    assert plain(b"typo\b\b\bree") == "tree"
    assert plain("grün\tü".encode()) == "grün\tü"


@given(st.lists(st.binary(max_size=12) | st.integers(0, 255), max_size=8), st.data())
def test_marks_are_found_however_the_output_is_cut(pieces: list[bytes | int], data: st.DataObject) -> None:
    mark = b"\x1b]7717;n0nce;%d\x07"
    stream = b"".join(piece if isinstance(piece, bytes) else mark % piece for piece in pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    marks = Marks("n0nce")
    found: list[bytes | int] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += marks.feed(stream[start:end])
    found += marks.feed(b"\n")
    numbers = [piece for piece in found if isinstance(piece, int)]
    texts = b"".join(piece for piece in found if isinstance(piece, bytes))
    assert numbers == [piece for piece in pieces if isinstance(piece, int)]
    assert texts == b"".join(piece for piece in pieces if isinstance(piece, bytes)) + b"\n"


def test_it_works_for_any_client(tmp_path: Path) -> None:
    """The bare SDK, without anything of Textor's side."""
    from mcp import Client, StdioServerParameters

    async def main() -> None:
        args = ["-m", "textor.modules.shell", "--folder", str(tmp_path)]
        async with Client(
            StdioServerParameters(command=sys.executable, args=args, env=dict(os.environ))
        ) as client:
            result = await client.call_tool("run", {"command": "echo hello"})
            assert result.structured_content["exit_status"] == 0
            read = await client.read_resource("shell://main/output")
            assert read.contents[0].text == "hello\n"

    asyncio.run(main())
