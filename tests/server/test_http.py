"""The HTTP interface, over a real machine and real sockets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from server_parts import ended, machine, served, until
from server_web import ask

from textor.assembly import Machine
from textor.guard import Guard, host_name
from textor.testing import ScriptedModel

MODEL = "scripted:model"
PRIVATE = (
    "/api/sessions",
    "/api/models",
    "/api/agents",
    "/api/sessions/x/events",
    "/api/sessions/x/commands",
)


def over(
    tmp_path: Path, body: Callable[[Machine, str], Awaitable[None]], script: tuple[str, ...] = ()
) -> None:
    async def run() -> None:
        async with machine(ScriptedModel([*script]), tmp=tmp_path) as made, served(made, tmp_path) as address:
            await body(made, address)

    asyncio.run(run())


# -- who may ask ---------------------------------------------------------------------------


def test_nothing_but_the_version_is_told_without_the_token(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        for path in PRIVATE:
            for authorization in ("", "Bearer wrong", "Basic x"):
                posted = {} if path.endswith("commands") else None
                answer = await ask(address, path, posted, authorization=authorization)
                assert (answer.status, "token" in answer.json["error"]) == (401, True)
        health = await ask(address, "/api/health", authorization="")
        assert health.status == 200
        assert set(health.json) == {"version"}

    over(tmp_path, body)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:80"}, 421),
        ({"host": "localhost:1"}, 200),
        ({"host": "[::1]:1"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),  # a page of another port of this machine
        ({"origin": "null"}, 403),
        ({"host": "localhost:7", "origin": "http://localhost:7"}, 200),
    ],
)
def test_a_foreign_host_or_page_is_turned_away(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async def body(made: Machine, address: str) -> None:
        for path in ("/api/health", "/"):
            answer = await ask(address, path, **headers)
            assert answer.status == status
            assert status == 200 or "error" in answer.json

    over(tmp_path, body)


def test_on_all_addresses_only_digits_and_known_names_are_ours() -> None:
    guard = Guard(None, ("localhost", "*"))  # type: ignore[arg-type]
    ours = {
        host: guard.is_ours(host)
        for host in ("10.1.2.3:7771", "[fe80::1]:1", "localhost", "evil.example", "")
    }
    assert list(ours.values()) == [True, True, True, False, False]
    assert host_name("LOCALHOST:7771") == "localhost"


def test_every_answer_forbids_what_the_page_does_not_need(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        for path, headers in (("/", {}), ("/api/health", {}), ("/nothing", {}), ("/", {"host": "evil"})):
            answer = await ask(address, path, **headers)
            assert answer.headers["content-security-policy"].startswith(
                "default-src 'none'; script-src 'self';"
            )
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "set-cookie" not in answer.headers
        page = (await ask(address, "/")).text
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))
        assert not re.search(r"\son\w+=|<style|style=|https?://", page)

    over(tmp_path, body)


# -- sessions ------------------------------------------------------------------------------


def test_a_message_becomes_a_session_with_a_reply(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        wanted = {"id": "20260101-1200-abcde", "text": "Hello?", "model": MODEL, "agent": "main"}
        first = await ask(address, "/api/sessions", wanted)
        again = await ask(address, "/api/sessions", wanted)  # the answer was lost, say
        assert (first.status, first.json) == (201, {"session": wanted["id"]})
        assert again.json == first.json
        events = await until(await made.session(wanted["id"]), ended)
        told = (await ask(address, f"/api/sessions/{wanted['id']}/events")).json["events"]
        assert [e["seq"] for e in told] == [e.seq for e in events]
        assert told[-1]["data"]["text"] == "Good day."
        later = await ask(address, f"/api/sessions/{wanted['id']}/events?after={events[-2].seq}")
        assert [e["kind"] for e in later.json["events"]] == ["turn.ended"]
        listed = (await ask(address, "/api/sessions")).json["sessions"]
        assert [(s["id"], s["title"]) for s in listed] == [(wanted["id"], "Hello?")]

    over(tmp_path, body, ("Good day.",))


def test_a_command_that_is_sent_twice_counts_once(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        session = await made.create("One", workspace=tmp_path, model=MODEL, agent="main")
        first = await until(session, ended)
        command = {"kind": "post", "id": "p1", "text": "Two"}
        for _ in range(2):
            answer = await ask(address, f"/api/sessions/{session.id}/commands", command)
            assert (answer.status, answer.json) == (200, {"id": "p1"})
        second = await until(session, ended, first[-1].seq)
        assert [e.kind for e in second].count("message.posted") == 1

    over(tmp_path, body, ("First.", "Second."))


def test_every_command_reaches_the_session(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        session = await made.create("One", workspace=tmp_path, model=MODEL, agent="main")
        last = (await until(session, ended))[-1].seq
        commands = [
            {"kind": "answer", "action": "a", "allow": False, "reason": "no", "digest": "d"},
            {"kind": "reply", "key": "k", "text": "yes"},
            {"kind": "control", "level": "pause"},
            {"kind": "control", "level": "run"},
            {"kind": "model", "model": MODEL},
            {"kind": "limits", "limits": {"iterations": 7}},
        ]
        for number, command in enumerate(commands):
            answer = await ask(
                address, f"/api/sessions/{session.id}/commands", {"id": f"c{number}", **command}
            )
            assert answer.status == 200, answer.text
        events = [e async for e in made.journal.read(session.id, last)]
        assert [e.kind for e in events if e.id.startswith("c")] == [
            "action.answered",
            "question.answered",
            "agent.controlled",
            "agent.controlled",
            "agent.model",
            "session.limits",
        ]

    over(tmp_path, body, ("First.",))


def test_what_cannot_be_done_is_one_sentence(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        session = await made.create("One", workspace=tmp_path, model=MODEL, agent="main")
        commands = f"/api/sessions/{session.id}/commands"
        new = {"id": "20260101-1200-abcde", "text": "x"}
        cases: list[tuple[str, object, int, str]] = [
            (commands, b"{", 400, "cannot be read"),
            (commands, b"\xff\xfe", 400, "cannot be read"),
            (commands, b"[]", 400, "Expected `object`"),
            (commands, {"kind": "fly", "id": "1"}, 400, "fly"),
            (commands, {"kind": "post", "id": "1"}, 400, "text"),
            (commands, {"kind": "post", "id": "", "text": "x"}, 400, "id"),
            (commands, {"kind": "post", "id": "1", "text": "x", "agent": "nobody"}, 400, "nobody"),
            (commands, {"kind": "control", "id": "1", "level": "explode"}, 400, "explode"),
            (commands, {"kind": "model", "id": "1", "model": "no-colon"}, 400, "no-colon"),
            (commands, b" " * 4_000_001, 413, "4 MB"),
            ("/api/sessions/nobody/commands", {"kind": "post", "id": "1", "text": "x"}, 404, "nobody"),
            ("/api/sessions/nobody/events", None, 404, "nobody"),
            (f"/api/sessions/{session.id}/events?after=-1", None, 400, "after"),
            ("/api/sessions", {**new, "agent": "gardener"}, 400, "gardener"),
            ("/api/sessions", {**new, "id": "../../x"}, 400, "id"),
            ("/api/sessions", {**new, "id": "machine"}, 400, "id"),
            ("/api/nothing", None, 404, "/api/nothing"),
            ("/api/health", {}, 405, "method"),
            ("/%2e%2e/%2e%2e/app.py", None, 404, "nothing"),
        ]
        for path, posted, status, part in cases:
            answer = await ask(address, path, posted)
            assert (answer.status, list(answer.json)) == (status, ["error"]), (path, posted, answer)
            assert part in answer.json["error"], (path, posted, answer)
            assert "Traceback" not in answer.text
        assert [s.id for s in await made.sessions()] == [session.id]

    over(tmp_path, body, ("First.",))


def test_events_as_a_stream_for_the_command_line(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        session = await made.create("One", workspace=tmp_path, model=MODEL, agent="main")
        events = await until(session, ended)
        host, port = address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET /api/sessions/{session.id}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Authorization: Bearer a-token-of-thirty-two-characters\r\n"
            f"Accept: text/event-stream\r\nLast-Event-ID: {events[1].seq}\r\n\r\n".encode()
        )
        seen: list[int] = []
        while len(seen) < len(events) - 2:
            line = (await asyncio.wait_for(reader.readline(), 20)).decode().strip()
            if line.startswith("data: "):
                seen.append(json.loads(line[6:])["seq"])
        assert seen == [e.seq for e in events[2:]]
        writer.close()

    over(tmp_path, body, ("First.",))


def test_what_can_be_chosen(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        models = (await ask(address, "/api/models")).json
        assert models["default"].startswith("embedded:")
        assert models["default"] in [m["id"] for m in models["models"]]
        assert models["config"] == str(tmp_path / "config.toml")
        agents = (await ask(address, "/api/agents")).json
        assert agents["default"] == "starter"
        assert {"main", "starter"} <= {a["type"] for a in agents["agents"]}
        assert all(a["purpose"] for a in agents["agents"])

    over(tmp_path, body)


def test_a_session_whose_model_cannot_be_had_is_not_made(tmp_path: Path) -> None:
    async def body(made: Machine, address: str) -> None:
        wanted = {"id": "20260101-1200-abcde", "text": "x", "agent": "main", "model": "nobody:model"}
        answer = await ask(address, "/api/sessions", wanted)
        assert answer.status == 400
        assert "nobody" in answer.json["error"]
        assert await made.sessions() == []
        answer = await ask(address, "/api/sessions", {**wanted, "model": MODEL})  # the same id, mended
        assert answer.status == 201

    over(tmp_path, body, ("Here.",))
