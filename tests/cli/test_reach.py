"""A person reaches the agents below the first one, from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from textor.cli.reach import find_agent, read_limits
from textor.errors import UseError
from textor.events import Limits
from textor.kernel.state import State
from textor.testing import Call, Gate, Reply, Request

from .conftest import Program
from .screen import Screen
from .test_chat import chat

Scripted = Callable[..., Any]
ASK = Reply(calls=(Call("ask", {"question": "Which colour?"}),))


def opening(request: Request) -> str:
    """The first message of the dialogue: it says which agent this is."""
    return next(str(m["content"]) for m in request.messages if m["role"] == "user")


def outcome(request: Request) -> str:
    """The last outcome that the agent was shown, "" before any."""
    found = [str(m["content"]) for m in request.messages if m["role"] == "tool"]
    return found[-1] if found else ""


def call(message: str, **more: Any) -> Reply:
    given = {"type": "coder-proxy", "name": "anna", "message": message, **more}
    return Reply(calls=(Call("call", given),))


def asking(request: Request) -> Reply | str:
    """`main` calls anna, who asks; `main` knows the answer."""
    told = outcome(request)
    if opening(request).startswith("Paint"):
        if not told:
            return call("The wall, please.")
        if question := re.search(r"question with the id (\S+):", told):
            return Reply(calls=(Call("answer", {"id": question[1], "text": "Blue."}),))
        return f"Anna says: {told}"
    return f"painted {told}" if told else ASK


def test_a_question_from_below_is_for_its_caller_and_not_for_the_person(
    textor: Program, scripted: Scripted
) -> None:
    with scripted(asking):
        done = textor("run", "Paint", "it")
    assert done.stdout.strip() == "Anna says: painted Blue."


def test_a_question_from_below_is_not_put_to_a_person_who_chats(textor: Program, scripted: Scripted) -> None:
    with scripted(asking), chat(textor) as screen:
        screen.until(">")
        screen.type("Paint it\r")
        screen.until("Anna says: painted Blue.")
        assert "anna asks" not in screen.text
        leave(screen)


def leave(screen: Screen) -> None:
    screen.type("/quit\r")
    assert screen.ended() == 0


def test_a_person_speaks_to_an_agent_below_and_stops_it(textor: Program, scripted: Scripted) -> None:
    held, deeper = Gate(), Gate()

    def model(request: Request) -> Reply | str:
        if opening(request).startswith("Begin"):
            return "It has begun." if outcome(request) else call("Dig.", background=True)
        if "Deeper" in json.dumps(request.messages):
            return Reply("I dig deeper", gates={6: deeper})
        return Reply("I dig", gates={2: held})

    with scripted(model), chat(textor) as screen:
        screen.until(">")
        screen.type("Begin\r")
        screen.until("It has begun.")
        screen.type("/agents\r")
        screen.until("main (main): ")
        screen.until("anna (coder-proxy): at work")
        screen.type("/to anna Deeper!\r")
        deeper.reached.wait_blocking(60)
        screen.type("/pause anna\r")
        screen.until("Pausing main/anna; /go goes on.")
        screen.type("/agents\r")
        screen.until("anna (coder-proxy): paused")
        screen.type("/go anna\r")
        screen.until("main/anna goes on.")
        screen.type("/kill ana\r")
        screen.until("Did you mean main/anna?")
        screen.type("\x03")  # nothing but anna is at work: Ctrl-C stops her, and not the program
        screen.until("Stopping at the next step")
        screen.until("[main/anna] says: ")
        screen.type("/kil\r")
        screen.until("Did you mean /kill?")
        leave(screen)


def test_a_limit_is_raised_where_the_person_is(textor: Program, scripted: Scripted) -> None:
    def model(request: Request) -> Reply:
        line = len(request.messages)
        return Reply(f"step {line}", calls=(Call("files_list", {"folder": f"f{line}"}),))

    with scripted(model) as server, chat(textor) as screen:
        screen.until(">")
        screen.type("/limits iterations=2 tokens=none\r")
        screen.until("iterations: 2 for each message")
        screen.type("go on\r")
        screen.until("A limit was reached: iterations.")
        assert len(server.requests) == 2
        screen.type("/limits iteration=3\r")
        screen.until("Did you mean iterations?")
        leave(screen)


def test_limits_are_read_from_words() -> None:
    now = Limits(iterations=100, tokens=5)
    assert read_limits("tokens=200,000 money=1.5", now) == Limits(iterations=100, tokens=200_000, money=1.5)
    assert read_limits("iterations=none", now) == Limits(tokens=5)
    for wrong in ("tokens", "tokens=", "tokens=-1", "tokens=1.5", "money=inf", "money=nan", "token=1"):
        with pytest.raises(UseError):
            read_limits(wrong, now)


def test_an_agent_is_found_by_its_path_or_its_last_name() -> None:
    names = ("main", "main/anna", "main/anna/bert", "main/bert")
    state = State(agents=dict.fromkeys(names))  # type: ignore[arg-type]
    assert find_agent(state, "anna") == "main/anna"
    assert find_agent(state, "main/bert") == "main/bert"
    with pytest.raises(UseError, match=r"main/anna/bert, main/bert"):
        find_agent(state, "bert")
    with pytest.raises(UseError, match="Did you mean main/anna"):
        find_agent(state, "ann")


def test_a_path_at_the_beginning_of_a_message_is_no_command(textor: Program, scripted: Scripted) -> None:
    with scripted(["It names hosts."]), chat(textor) as screen:
        screen.until(">")
        screen.type("/etc/hosts - what is it?\r")
        screen.until("It names hosts.")
        leave(screen)


def test_agents_that_call_themselves_come_to_an_end(textor: Program, scripted: Scripted) -> None:
    def model(request: Request) -> Reply | str:
        if told := outcome(request):
            return f"It ended: {told}"
        return Reply(calls=tuple(call("go", name=name).calls[0] for name in ("anna", "bert")))

    with scripted(model) as server:
        textor.configure(textor.home.joinpath("config/config.toml").read_text() + "[limits]\nagents = 6\n")
        done = textor("run", "Go")
    assert done.returncode == 0
    assert "already has 6 agents" in done.stdout
    assert len(server.requests) == 12


def test_what_is_still_at_work_at_the_end_of_a_task_is_told_and_goes_on(
    textor: Program, scripted: Scripted
) -> None:
    held = Gate()

    def model(request: Request) -> Reply | str:
        if not opening(request).startswith("Begin"):
            return Reply("Dug.", gates={1: held})
        if "Dug." in json.dumps(request.messages):
            return "All is dug."
        return "It has begun." if outcome(request) else call("Dig.", background=True)

    with scripted(model):
        done = textor("run", "Begin")
        assert (done.returncode, done.stdout.strip()) == (0, "It has begun.")
        assert "main/anna is still at work." in done.stderr
        session = re.search(r"sessions resume (\S+)`", done.stderr)
        assert session
        held.open()
        again = textor("sessions", "resume", session[1])
        assert again.stdout.strip() == "All is dug."
