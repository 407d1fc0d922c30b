"""`textor run` against a real HTTP server that follows a script."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textor.testing import Call, Gate, Reply, Status

from .conftest import Program
from .screen import Screen

Scripted = Callable[..., Any]


def calls(name: str, **arguments: Any) -> Reply:
    return Reply(calls=(Call(name, arguments),))


def test_the_reply_is_on_stdout_and_the_progress_on_stderr(textor: Program, scripted: Scripted) -> None:
    (textor.folder / "a.txt").write_text("x")
    with scripted([calls("files_list", folder="."), "There is one: a.txt"]) as server:
        done = textor("run", "what", "files", "are", "here?")
        assert (done.returncode, done.stdout) == (0, "There is one: a.txt\n")
        assert '▸ files.list(folder=".")\n  done: ' in done.stderr and "a.txt" in done.stderr
        assert "what files are here?" in json.dumps(server.requests[0].messages)
        assert "a.txt" in json.dumps(server.requests[1].messages)


def test_the_thoughts_of_each_step_are_progress(textor: Program, scripted: Scripted) -> None:
    folder = textor.folder / ".textor" / "agents"
    folder.mkdir(parents=True)
    (folder / "thinker.md").write_text("---\ndialects: [step]\ncapabilities: [files.*]\n---\nThink.")
    look = {
        "thought": "look",
        "criticism": "may be empty",
        "command": {"name": "files_list", "arguments": {}},
    }
    script = [Reply(calls=(Call("iterate", look),)), '{"thought": "that is it", "response": "Nothing."}']
    with scripted(script):
        done = textor("run", "--agent", "thinker", "what is here?")
    assert (done.returncode, done.stdout) == (0, "Nothing.\n")
    assert done.stderr.startswith("thought: look\ncriticism: may be empty\n▸ files.list(")
    assert done.stderr.endswith("thought: that is it\n")


def test_json_is_one_object_with_what_it_took(textor: Program, scripted: Scripted) -> None:
    with scripted(["Done."]):
        done = textor("run", "--json", "x")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and done.stdout.count("\n") == 1
    assert (told["reply"], told["reason"], told["iterations"]) == ("Done.", "replied", 1)
    assert told["tokens"] > 0 and told["cost"] is None and told["session"]
    listed = textor("sessions").stdout
    assert told["session"] in listed


def test_the_task_may_come_from_stdin(textor: Program, scripted: Scripted) -> None:
    with scripted(["Read."]) as server:
        assert textor("run", "-", stdin="of two\nlines").stdout == "Read.\n"
        assert "of two\\nlines" in json.dumps(server.requests[0].messages)


def test_what_nobody_can_be_asked_about_is_denied_and_yes_allows_it(
    textor: Program, scripted: Scripted
) -> None:
    write = calls("files_write", path="b.txt", text="new")
    with scripted([write, "It was denied."]) as server:
        done = textor("run", "write b.txt")
        assert done.returncode == 0 and "denied: " in done.stderr
        assert "nobody is here to be asked" in json.dumps(server.requests[1].messages)
    assert not (textor.folder / "b.txt").exists()
    with scripted([write, "Written."]):
        assert textor("run", "--yes", "write b.txt").returncode == 0
    assert (textor.folder / "b.txt").read_text() == "new"


def test_a_limit_ends_with_three_and_what_was_achieved(textor: Program, scripted: Scripted) -> None:
    textor.env["TEXTOR_LIMITS_ITERATIONS"] = "2"
    again = Reply("Looking.", calls=(Call("files_list", {"folder": "."}),))
    with scripted([again, again]) as server:
        done = textor("run", "x")
        assert len(server.requests) == 2
    assert (done.returncode, done.stdout) == (3, "Looking.\n")
    assert "A limit was reached: iterations." in done.stderr


def test_a_refusing_server_ends_with_one_and_its_reason(textor: Program, scripted: Scripted) -> None:
    with scripted([Status(401, "wrong key")]):
        done = textor("run", "x")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("textor: It failed: ") and done.stderr.count("\n") == 1
    with scripted([Status(401, "wrong key")]):
        told = json.loads(textor("run", "--json", "x").stdout)
    assert told["reason"] == "failed" and told["detail"]


def test_an_unknown_model_is_told_before_anything_runs(textor: Program) -> None:
    done = textor("run", "--model", "nowhere:x", "x")
    assert done.returncode in (1, 2) and "nowhere" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("textor: ") and done.stdout == ""
    assert "There are no sessions yet." in textor("sessions").stdout


@pytest.mark.parametrize(
    ("typed", "sees", "holds"),
    [
        (["y"], "done", "new"),
        (["n not this one"], "not this one", None),
        (["what?", "yes"], "done", "new"),
        (["e", "{nonsense", "e", '{"path": "b.txt", "text": "edited"}'], "done", "edited"),
        (["\x04"], "nobody answered", None),
    ],
    ids=["yes", "no", "again", "edit", "end"],
)
def test_the_gate_asks_on_a_terminal(
    textor: Program, scripted: Scripted, typed: list[str], sees: str, holds: str | None
) -> None:
    with (
        scripted([calls("files_write", path="b.txt", text="new"), "The end."]) as server,
        Screen([*textor.command, "run", "write b.txt"], textor.env, textor.folder) as screen,
    ):
        shown = screen.until("yes for this [s]ession: ")
        assert 'files.write\r\n  text: "new"\r\n  path: "b.txt"' in shown or '  path: "b.txt"' in shown
        assert "This waits for you: it writes files." in shown
        for line in typed[:-1]:
            screen.type(line + "\n")
            screen.until("New arguments: " if line == "e" else "[s]ession: ")
        screen.type(typed[-1] if typed[-1] == "\x04" else typed[-1] + "\n")
        assert sees in screen.until("The end.") + json.dumps(server.requests[1].messages)
        assert screen.ended() == 0
    path = textor.folder / "b.txt"
    assert (path.read_text() if path.exists() else None) == holds


def test_ctrl_c_stops_at_the_boundary_and_the_session_goes_on_later(
    textor: Program, scripted: Scripted
) -> None:
    held = Gate()
    with scripted([Reply("It takes so long", gates={5: held}), "Here I am again."]) as server:
        process = subprocess.Popen(
            [*textor.command, "run", "x"],
            env=textor.env,
            cwd=textor.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        held.reached.wait_blocking()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Stopping at the next boundary" in err and "Traceback" not in err
        assert "It takes so long" not in out
        session = textor("sessions").stdout.splitlines()[1].split()[0]
        assert f"textor sessions resume {session}" in err
        assert len(server.requests) == 1
    shown = textor("sessions", "show", session).stdout
    assert "> x" in shown and "Stopped" in shown


def test_ctrl_c_withdraws_the_question(textor: Program, scripted: Scripted) -> None:
    with (
        scripted([calls("files_write", path="b.txt", text="new")]),
        Screen([*textor.command, "run", "write b.txt"], textor.env, textor.folder) as screen,
    ):
        screen.until("yes for this [s]ession: ")
        screen.type("\x03")
        screen.until("Stopping at the next boundary")
        assert screen.ended() == 130
    assert not (textor.folder / "b.txt").exists()


def test_a_session_is_shown_from_its_beginning(textor: Program, scripted: Scripted) -> None:
    with scripted([calls("files_list", folder="."), "Nothing here."]):
        session = json.loads(textor("run", "--json", "look").stdout)["session"]
    shown = textor("sessions", "show", session[:-1]).stdout
    places = [shown.index(part) for part in ("main is main", "> look", "▸ files.list", "Nothing here.")]
    assert places == sorted(places)
    assert re.search(r"\n[\d,]+ tokens read, \d+ written; price unknown\n$", shown)
    resumed = textor("sessions", "resume", session)
    assert (resumed.returncode, resumed.stdout) == (0, "Nothing here.\n")
    assert textor("sessions", "resume", session, "--model", "nowhere:x").returncode in (1, 2)


def test_a_terminal_shows_what_a_task_used(textor: Program, scripted: Scripted) -> None:
    with scripted(["Good morning."]):
        path = Path(textor.env["TEXTOR_CONFIG"])
        path.write_text(
            path.read_text() + "[providers.mine.models.scripted]\nprice_input = 1\nprice_output = 1000\n"
        )
        with Screen([*textor.command, "run", "greet"], textor.env, textor.folder) as screen:
            screen.until("tokens read, ")
            screen.until(" written; $0.")
            assert screen.ended() == 0


def test_a_reply_of_the_longest_length_is_said_to_be_cut(textor: Program, scripted: Scripted) -> None:
    with scripted([Reply("The first of three is", finish="length")]):
        done = textor("run", "Tell", "all", "three")
    assert done.stdout == "The first of three is\n"
    assert "Note: cut at the length that the server allows." in done.stderr


def test_sessions_are_searched_by_title_and_exported_as_events(textor: Program, scripted: Scripted) -> None:
    call = Call("call", {"type": "chat", "name": "seer", "message": "who?"})
    with scripted([Reply(calls=(call,)), "nobody", "Nobody.", "Fine."]):
        textor("run", "who is in the Garden")
        textor("run", "feed the cat")
    listed = textor("sessions", "list", "garden", "who").stdout
    assert "who is in the Garden" in listed and "cat" not in listed
    assert "no sessions with these words" in textor("sessions", "list", "dog").stdout
    id = listed.split("\n")[1].split()[0]
    events = [json.loads(line) for line in textor("sessions", "show", id, "--json").stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    made = [event["data"]["agent"] for event in events if event["kind"] == "agent.created"]
    assert made == ["main", "main/seer"]


def test_files_go_along_with_a_task(textor: Program, scripted: Scripted) -> None:
    (textor.folder / "my sizes.csv").write_text("a,b\n1,2\n")
    with scripted(["Three."]) as server:
        done = textor("run", "--file", "my sizes.csv", "how many?")
        assert (done.returncode, done.stdout) == (0, "Three.\n")
        assert "[value $my_sizes: text" in json.dumps(server.requests[0].messages)
    done = textor("run", "--file", "none.csv", "how many?")
    assert done.returncode == 2 and "none.csv is no file." in done.stderr
