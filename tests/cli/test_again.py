"""`textor sessions fork` and `replay`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from textor.testing import Call, Reply

from .conftest import Program

Scripted = Callable[..., Any]
LOOK = Reply("I look.", calls=(Call("files_list", {"folder": "."}),))


def test_a_session_is_replayed_forked_and_asked_of_another_model(textor: Program, scripted: Scripted) -> None:
    with scripted([LOOK, "Nothing is here.", "Other words.", "A few files."]) as server:
        session = json.loads(textor("run", "--json", "what is here?").stdout)["session"]
        first = textor("iterations", "list", session).stdout.splitlines()[1].split()[0]

        replayed = textor("sessions", "replay", session)
        assert (replayed.returncode, replayed.stderr) == (0, "") and "no difference" in replayed.stdout
        assert len(server.requests) == 2

        draft = json.loads(textor("sessions", "fork", session, "--at", first, "--edit", "-").stdout)
        assert draft["calls"] == [{"capability": "files.list", "arguments": {"folder": "."}}]
        (textor.folder / "draft.json").write_text(json.dumps({"text": "It is empty."}))
        edited = textor("sessions", "fork", session, "--at", first, "--edit", "draft.json").stdout.strip()
        assert textor("sessions", "resume", edited).stdout == "It is empty.\n"
        assert len(server.requests) == 2  # the edited reply ends the turn by itself

        again = textor("sessions", "fork", session, "--at", first).stdout.strip()
        # what is run beside it does not wake it
        told = textor("sessions", "replay", session, "--model", "mine:scripted", "--at", first)
        assert "-I look." in told.stdout and "+Other words." in told.stdout
        assert len(server.requests) == 3
        assert textor("sessions", "resume", again).stdout == "A few files.\n"
        assert server.requests[3].messages[:-1] == server.requests[0].messages[:-1]


def test_what_is_not_there_is_told(textor: Program, scripted: Scripted) -> None:
    with scripted(["Hello."]):
        session = json.loads(textor("run", "--json", "hello").stdout)["session"]
    for rest in (["fork", session, "--at", "1"], ["replay", session, "--model", "mine:scripted"]):
        done = textor("sessions", *rest)
        assert done.returncode == 2 and done.stderr.startswith("textor: ")
