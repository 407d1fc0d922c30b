"""`--review` on a terminal: accept, edit text or calls, ask again with a remark."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from textor.testing import Call, Reply

from .conftest import Program
from .screen import Screen

Scripted = Callable[..., Any]
WRITE = Reply("I write.", calls=(Call("files_write", {"path": "a.txt", "text": "wrong"}),))
ASK = "or a remark and it is asked again: "


def test_a_reply_is_edited_before_it_acts_and_asked_again(textor: Program, scripted: Scripted) -> None:
    with (
        scripted([WRITE, "Badly said.", "Well said."]) as server,
        Screen([*textor.command, "run", "--review", "--yes", "go"], textor.env, textor.folder) as screen,
    ):
        assert "files.write" in screen.until(ASK)
        screen.type("e\n")
        screen.until("New reply: ")
        screen.type('{"text": "I write.", "calls": [{"capability": "files.wrte"}]}\n')
        assert "is not offered 'files.wrte'" in screen.until(ASK)
        screen.type("e\n")
        screen.until("New reply: ")
        arguments = {"path": "a.txt", "text": "right"}
        call = {"capability": "files.write", "arguments": arguments}
        screen.type(json.dumps({"text": "I write well.", "calls": [call]}) + "\n")
        screen.until("Badly said.")
        screen.until(ASK)
        screen.type("say it better\n")
        screen.until("Well said.")
        screen.until(ASK)
        screen.type("y\n")
        assert screen.ended() == 0
    assert (textor.folder / "a.txt").read_text() == "right"
    second, third = server.requests[1].messages, server.requests[2].messages
    assert "I write well." in json.dumps(second) and "wrong" not in json.dumps(second)
    assert third[-1]["content"][:13] == "say it better" and "Badly said." not in json.dumps(third)


def test_review_needs_a_person(textor: Program, scripted: Scripted) -> None:
    with scripted(["x"]):
        done = textor("run", "--review", "x")
    assert done.returncode == 2 and "no terminal" in done.stderr


def test_a_chat_reviews_inline(textor: Program, scripted: Scripted) -> None:
    with (
        scripted(["Raw words."]),
        Screen([*textor.command, "chat", "--review"], textor.env, textor.folder) as screen,
    ):
        screen.until("/help")
        screen.type("hello\r")
        screen.until("asked again:")
        screen.type("e\r")
        screen.until("reply> ")
        screen.type("\x15" + '{"text": "Edited words."}' + "\r")
        screen.until("Edited words.")  # as it was typed
        screen.until("Edited words.")  # as the agent says it
        screen.type("\x04")
        screen.until("goes on with this conversation.")
        assert screen.ended() == 0
