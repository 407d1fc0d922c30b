"""The broker over HTTP: registering, the yes of the person, profiles, plans, embeddings."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from broker_parts import calls_in, foreign, http_form, launch_form, machine, note_app, register
from server_parts import served
from server_web import ask

from textor.broker.compiler import Compiler
from textor.embedding import Role
from textor.server.embedding_server import create_embedding_app
from textor.server.serve import address_of, listen, make_server

if TYPE_CHECKING:
    from textor.embedding import Vectors


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))


def install(path: Path, address: str) -> str:
    """What the stranger's program prints when it installs itself."""
    env = os.environ | {"BROKER": f"{address}/"}
    return subprocess.run(
        [path, "7780", "-install"], env=env, capture_output=True, text=True, check=True
    ).stdout


def test_a_client_of_the_document_registers_is_launched_and_receives_its_calls(tmp_path: Path) -> None:
    """It brings no token, so a person sees program, path and capabilities, and says yes."""
    path = foreign(tmp_path)
    plan = "start email application\nadd recipient email address [bob@example.com]\nset email subject to [Hi]"

    async def test() -> None:
        async with machine([plan], tmp=tmp_path) as made, served(made, tmp_path) as address:
            told = await asyncio.to_thread(install, path, address)
            assert told.split() == [
                "capability",
                "401",
                "capability",
                "401",
                "capability/",
                "401",
                "example",
                "401",
            ]
            assert (await ask(address, "/capability")).json == []
            (waits,) = (await ask(address, "/api/apps/pending")).json["pending"]
            assert (waits["class"], waits["program"], waits["known"]) == ("email", [str(path)], False)
            assert [c["phrase"] for c in waits["capabilities"]] == [
                "start email application",
                "set email subject to []",
                "add recipient email address []",
            ]
            answer = await ask(address, "/api/apps/pending/email", {"allow": True})
            assert (answer.status, answer.json) == (200, {"registered": 4})
            listed = (await ask(address, "/capability/")).json
            assert [c["action"] for c in listed] == [
                "set email subject to []",
                "add recipient email address []",
            ]
            assert listed[0] == {
                "action": "set email subject to []",
                "appClass": "email",
                "appPath": None,
                "actionType": 1,
                "description": "Set the Subject of an EMail",
                "route": "subject",
                "method": 1,
                "contentType": "application/json",
                "contract": "SingleText",
                "vector": None,
            }
            assert (await ask(address, "/example")).json == [
                {"appClass": "email", "question": "write to bob", "answers": ["start email application"]}
            ]

            wish = {"request": "write to bob", "model": "scripted:model"}
            id = (await ask(address, "/v1/plans", wish)).json["id"]
            await ask(address, f"/v1/plans/{id}?after=4")
            await made.broker.plans.written(id)
            await ask(address, f"/v1/plans/{id}/run", {})
            await made.broker.plans.finished(id)
            shown = (await ask(address, f"/v1/plans/{id}")).json
            assert [line["run"]["state"] for line in shown["lines"]] == ["done", "done", "done"]
            assert calls_in(tmp_path / "calls") == [("recipient", "bob@example.com"), ("subject", "Hi")]

            apps = (await ask(address, "/api/apps")).json["apps"]
            (instance,) = apps[0]["instances"]
            assert (instance["class"], instance["state"]) == ("email", "ready")
            pointed = await ask(address, "/api/apps/point", {"app": instance["id"]})
            assert pointed.json["chosen"] is True
            stopped = await ask(address, "/api/apps/stop", {"app": "email"})
            assert stopped.json["id"] == instance["id"]
            assert (await ask(address, "/api/apps")).json["apps"][0]["instances"] == []

            removed = await ask(address, "/capability/email", method="DELETE")
            assert removed.json == {"removed": "email"}
            assert (await ask(address, "/capability")).json == []
            assert (await ask(address, "/capability/email/", method="DELETE")).status == 404

    asyncio.run(test())


def test_with_the_token_a_registration_counts_at_once(tmp_path: Path) -> None:
    path = foreign(tmp_path)
    other = foreign(tmp_path, "other.py")

    async def test() -> None:
        async with machine(tmp=tmp_path) as made, served(made, tmp_path) as address:
            for body, status, told in (
                (launch_form(path), 200, ""),
                ([http_form("set email subject to []", "subject"), http_form("send email", "send")], 200, ""),
                (launch_form(other), 409, f'The class "email" belongs to {path}.'),
                (http_form("add line []", "line", "drawing"), 409, "Register its LAUNCH first."),
                (http_form("set it to []", "a/../b"), 400, 'The Route "a/../b" is no path'),
                (http_form("set it to []", "x", Contract="Odd"), 400, 'Contract of this capability is "Odd"'),
                (b"{", 400, "The request cannot be read"),
                (b"[" * 100_000, 400, "The request cannot be read"),
                ("text", 400, "A capability is one JSON object"),
            ):
                answer = await ask(address, "/capability", body)
                assert (answer.status, told in answer.text.replace('\\"', '"')) == (status, True), answer.text
            assert list(made.services.registry.areas()).count("email") == 1
            assert made.services.registry.get("email.send") is not None
            many = {**http_form("x y", "x"), "Description": "d" * 3_000_000}
            assert (await ask(address, "/capability", many)).status == 413

    asyncio.run(test())


def test_what_waits_can_be_denied_is_bounded_and_cannot_take_over(tmp_path: Path) -> None:
    path, evil = foreign(tmp_path), foreign(tmp_path, "evil.py")

    async def test() -> None:
        async with (
            machine(tmp=tmp_path, forms=[launch_form(path)]) as made,
            served(made, tmp_path) as address,
        ):
            none = {"authorization": ""}
            assert (
                await ask(address, "/capability", launch_form(path), authorization="Bearer wrong")
            ).status == 401
            assert (await ask(address, "/api/apps/pending")).json["pending"] == []  # nor does it wait
            assert (await ask(address, "/api/apps/pending", **none)).status == 401
            assert (await ask(address, "/capability", **none)).status == 401
            assert (await ask(address, "/capability/email", method="DELETE", **none)).status == 401

            answer = await ask(address, "/capability", launch_form(evil), **none)
            assert (answer.status, "waits for a yes" in answer.text) == (401, True)
            (waits,) = (await ask(address, "/api/apps/pending")).json["pending"]
            assert waits["conflict"] == f"email belongs to {path}"
            answer = await ask(address, "/api/apps/pending/email", {"allow": True})
            assert (answer.status, "belongs to" in answer.text) == (409, True)
            assert made.broker.apps.book.apps["email"].owner[0] == str(path)
            await ask(address, "/api/apps/pending/email", {"allow": False})
            assert (await ask(address, "/api/apps/pending")).json["pending"] == []
            assert (await ask(address, "/api/apps/pending/email", {"allow": True})).status == 404

            for number in range(20):
                await ask(address, "/capability", launch_form(path, f"app{number}"), **none)
            answer = await ask(address, "/capability", launch_form(path, "one more"), **none)
            assert (answer.status, "Too many apps wait" in answer.text) == (400, True)

    asyncio.run(test())


def test_pages_of_others_register_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(tmp=tmp_path) as made, served(made, tmp_path) as address:
            form = launch_form(foreign(tmp_path))
            answer = await ask(address, "/capability", form, origin="https://evil.example")
            assert answer.status == 403
            answer = await ask(address, "/capability", form, host="evil.example", authorization="")
            assert answer.status == 421
            assert (await ask(address, "/api/apps/pending")).json["pending"] == []

    asyncio.run(test())


def test_a_plan_is_corrected_and_run_line_by_line(tmp_path: Path) -> None:
    reply = "start note application\nput down [milk] on the list\npublish note"

    async def test() -> None:
        async with (
            machine([reply, "read note"], tmp=tmp_path, forms=note_app(tmp_path)) as made,
            served(made, tmp_path) as address,
        ):
            id = (await ask(address, "/v1/plans", {"request": "milk", "model": "scripted:model"})).json["id"]
            await made.broker.plans.written(id)
            path = f"/v1/plans/{id}"
            shown = (await ask(address, path)).json
            first, second, third = (line["id"] for line in shown["lines"])
            body = {"choice": "note.write"}
            shown = (await ask(address, f"{path}/lines/{second}", body, method="PUT")).json
            assert shown["lines"][1]["ready"] is True
            shown = (await ask(address, f"{path}/run", {"lines": [first]})).json
            await made.broker.plans.finished(id)
            shown = (await ask(address, f"{path}/lines/{third}", {"skip": True}, method="PUT")).json
            await ask(address, f"{path}/run", {})
            await made.broker.plans.finished(id)
            shown = (await ask(address, path)).json
            assert [line["run"]["state"] for line in shown["lines"]] == ["done", "done", ""]
            shown = (await ask(address, path, {"text": "read note"}, method="PUT")).json
            assert [line["text"] for line in shown["lines"]] == ["read note"]
            assert [p["id"] for p in (await ask(address, "/v1/plans")).json["plans"]] == [id]
            for bad, body, status in (
                (f"{path}x", None, 404),
                (f"{path}/lines/l99", {"skip": True}, 400),
                (f"{path}/answer", {"line": first, "allow": True}, 400),
                (f"{path}/again", {"remark": "anew"}, 400),
                ("/v1/plans", {"request": ""}, 400),
            ):
                method = "PUT" if "/lines/" in bad else "GET" if body is None else "POST"
                assert (await ask(address, bad, body, method=method)).status == status, bad
            await ask(address, f"{path}/stop", {})
            assert (await ask(address, path, authorization="")).status == 401

            id = (await ask(address, "/v1/plans", {"request": "again", "model": "scripted:model"})).json["id"]
            await made.broker.plans.written(id)

    asyncio.run(test())


def test_profiles_over_http(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(tmp=tmp_path, forms=note_app(tmp_path)) as made, served(made, tmp_path) as address:
            await register(made.broker.apps, [launch_form(foreign(tmp_path))])
            made_one = await ask(address, "/api/profiles", {"name": "work", "apps": ["note"]})
            assert made_one.json["profiles"] == [{"name": "work", "apps": ["note"]}]
            assert (await ask(address, "/api/profiles", {"active": "work"})).json["active"] == "work"
            assert (await ask(address, "/api/apps")).json["profile"] == "work"
            assert (await ask(address, "/api/profiles", {"active": "play"})).status == 400
            assert (await ask(address, "/api/profiles", {"name": "work", "remove": True})).json[
                "active"
            ] == ""

    asyncio.run(test())


class Lengths:
    """An embedder that tells texts apart by their length and first letter."""

    model_id = "lengths"
    dim = 2

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        import numpy as np

        return np.array([[len(text), ord(text[0])] for text in texts], np.float32)


def test_embeddings_in_the_form_of_openai_and_of_the_document(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(tmp=tmp_path) as made, served(made, tmp_path) as address:
            assert (await ask(address, "/v1/embeddings", {"input": "x"})).status == 503
            made.broker.compiler = Compiler(Lengths())
            answer = (await ask(address, "/v1/embeddings", {"input": ["ab", "B"], "model": "any"})).json
            assert [row["embedding"] for row in answer["data"]] == [[2.0, 97.0], [1.0, 66.0]]
            assert (answer["model"], answer["object"]) == ("lengths", "list")
            packed = {"input": "ab", "encoding_format": "base64"}
            row = (await ask(address, "/v1/embeddings", packed)).json["data"][0]["embedding"]
            assert struct.unpack("<2f", base64.b64decode(row)) == (2.0, 97.0)
            for wrong in ({"input": []}, {"input": "x", "dimensions": 3}, {"input": 4}):
                assert (await ask(address, "/v1/embeddings", wrong)).status == 400

            server = make_server(create_embedding_app(made))
            listener = listen("127.0.0.1", 0)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            other = address_of(listener)
            got: Any = (
                await ask(other, "/embedding/set%20input/output%20to%20%5B%5D", authorization="")
            ).json
            assert got == {"Vector": [22.0, 115.0]}  # a slash in the text is part of it
            got = (await ask(other, "/compare?phrase1=a&phrase2=bb")).json
            assert got["dot"] == 1 * 2 + 97 * 98
            assert (await ask(other, "/embedding/%20")).status == 400
            assert (await ask(other, "/embedding/x", host="evil.example")).status == 421
            server.should_exit = True
            await serving
            listener.close()

    asyncio.run(test())
