"""`textor chat` on a terminal, against a real HTTP server that follows a script."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from typing import Any

from textor.testing import Call, Gate, Reply

from .conftest import Program
from .screen import Screen

Scripted = Callable[..., Any]
CTRL_C, CTRL_D = "\x03", "\x04"


def chat(textor: Program, *args: str) -> Screen:
    return Screen([*textor.command, *(args or ("chat",))], textor.env, textor.folder)


def test_a_conversation_with_its_commands(textor: Program, scripted: Scripted) -> None:
    with scripted(["Hello to you.", "Still here."]) as server, chat(textor) as screen:
        screen.until("/help")
        screen.until(">")
        screen.type("hello\r")
        screen.until("Hello to you.")
        screen.type("/help\r")
        screen.until("/model [ID]")
        screen.type("/fly\r")
        screen.until("There is no command /fly.")
        screen.type("/model nowhere:x\r")
        screen.until("textor: ")
        screen.type("again\r")
        screen.until("Still here.")
        screen.type(CTRL_D)
        assert "textor sessions resume" in screen.until("goes on with this conversation.")
        assert screen.ended() == 0
        roles = [m["role"] for m in server.requests[1].messages]
        assert roles[-3:] == ["user", "assistant", "user"]


def test_ctrl_c_interrupts_the_agent_and_not_the_program(textor: Program, scripted: Scripted) -> None:
    held = Gate()
    with (
        scripted([Reply("one two\nthree", gates={9: held}), "Back."]) as server,
        chat(textor) as screen,
    ):
        screen.until(">")
        screen.type(CTRL_C)
        screen.until("Ctrl-D or /quit leaves.")
        screen.type("go\r")
        held.reached.wait_blocking(60)
        screen.until("one two")
        screen.type(CTRL_C)
        screen.until("Stopping at the next step")
        screen.until("Stopped")
        server.requests[0].hung_up.wait_blocking(60)
        screen.type("back?\r")
        screen.until("Back.")
        screen.type("/quit\r")
        assert screen.ended() == 0


def test_what_is_written_while_it_works_reaches_it(textor: Program, scripted: Scripted) -> None:
    held = Gate()
    with (
        scripted([Reply("I will take a long", gates={4: held}), "Blue, then."]) as server,
        chat(textor) as screen,
    ):
        screen.until(">")
        screen.type("paint it red\r")
        held.reached.wait_blocking(60)
        screen.type("no, blue\r")
        screen.until("Blue, then.")
        assert "no, blue" in json.dumps(server.requests[1].messages)
        screen.type("/quit\r")
        assert screen.ended() == 0


def test_the_gate_is_answered_inline_after_an_edit(textor: Program, scripted: Scripted) -> None:
    write = Reply(calls=(Call("files_write", {"path": "b.txt", "text": "new"}),))
    with scripted([write, "It is there."]), chat(textor) as screen:
        screen.until(">")
        screen.type("write it\r")
        screen.until("yes for this [s]ession:")
        screen.type("e\r")
        screen.until("arguments>")
        screen.type("\x15" + '{"path": "b.txt", "text": "edited"}\r')
        screen.until('▸ files.write(path="b.txt", text="edited")')  # what runs, not what was proposed
        screen.until("It is there.")
        screen.type("/quit\r")
        assert screen.ended() == 0
    assert (textor.folder / "b.txt").read_text() == "edited"


def test_a_session_is_resumed_with_its_history(textor: Program, scripted: Scripted) -> None:
    with scripted(["First.", "Second."]) as server:
        session = json.loads(textor("run", "--json", "one").stdout)["session"]
        with chat(textor, "sessions", "resume", session) as screen:
            screen.until(">")
            screen.type("two\r")
            screen.until("Second.")
            screen.type("/quit\r")
            assert screen.ended() == 0
        asked = [m["content"].split("\n")[0] for m in server.requests[1].messages]
        assert asked[-3:] == ["one", "First.", "two"]


def test_a_terminal_without_the_characters_shows_their_numbers(textor: Program, scripted: Scripted) -> None:
    textor.env |= {"PYTHONIOENCODING": "ascii", "TERM": "dumb"}
    with scripted(["caf\u00e9 \u4e2d"]), chat(textor) as screen:
        screen.until(">")
        screen.type("hi\r")
        screen.until("\\u4e2d")
        screen.type("/quit\r")
        assert screen.ended() == 0


def test_a_full_disk_is_said_and_the_next_message_goes_on(textor: Program, scripted: Scripted) -> None:
    pids: list[int] = []

    def script(request: object) -> str:
        if pids:  # from here on it can write no file any further
            resource.prlimit(pids.pop(), resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            return "Lost."
        return "Gone on."

    with scripted(script), chat(textor) as screen:
        screen.until(">")
        pids.append(screen.pid)
        screen.type("hello\r")
        screen.until("The session stands still. The journal ")
        screen.until("Your next message has it go on.")
        no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(screen.pid, resource.RLIMIT_FSIZE, no_limit)
        screen.type("and now?\r")
        screen.until("Gone on.")
        screen.type("/quit\r")
        assert screen.ended() == 0
