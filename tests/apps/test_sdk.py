"""The SDK: what a function becomes, what its answers are, and whose requests are served."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
import pytest
from app_parts import Served, served

from textor.apps.sdk import App, Picture, Refused, Result, State
from textor.errors import UseError


class Note(State):
    text: str = ""
    colour: Literal["white", "yellow"] = "white"
    lines: list[str] = msgspec.field(default_factory=list)


def make() -> App[Note]:
    app = App("note", Note)

    @app.action("write note []", examples=["set the note to []"])
    def write(text: str) -> None:
        """Write the note anew."""
        if text == "bad":
            app.state.text = "half"
            raise Refused("Not that.")
        if text == "broken":
            app.state.text = "half"
            raise KeyError(text)
        app.state.text = text

    @app.action("add [] to note in []", route="line")
    def add_line(line: str, colour: Literal["white", "yellow"] = "white") -> str:
        app.state.lines.append(line)
        app.state.colour = colour
        return f"{len(app.state.lines)} lines."

    @app.action("repeat note [] times", effects=["write"])
    def repeat(times: int) -> dict[str, int]:
        app.state.text *= times
        return {"length": len(app.state.text)}

    @app.action("read note", method="GET", route="note")
    def read() -> str:
        return app.state.text

    @app.action("draw note")
    def draw() -> Picture:
        return Picture(b"<svg/>", "image/svg+xml", "note.svg")

    @app.action("wait for note", repeat="idempotent")
    async def later() -> Result:
        await asyncio.sleep(0)
        with app.change("came later"):
            app.state.text = "late"
        return Result("It came.")

    return app


Body = Callable[[Served], Awaitable[None]]


def run(body: Body, token: str = "", app: App[Any] | None = None) -> None:
    async def inside() -> None:
        async with served(app or make(), token) as site:
            await body(site)

    asyncio.run(inside())


# -- a function as a capability ------------------------------------------------------------


def test_a_function_becomes_the_capability_of_the_document() -> None:
    write = make().actions["POST write"].capability("note", "1.0")
    assert {key: write[key] for key in list(write)[:10]} == {
        "Action": "write note []",
        "AppClass": "note",
        "AppPath": None,
        "ActionType": 1,
        "Description": "Write the note anew.",
        "Route": "write",
        "Method": 1,
        "ContentType": "application/json",
        "Contract": "SingleText",
        "Vector": None,
    }
    assert write["Schema"] == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    assert write["Examples"] == ["set the note to []"]
    assert (write["Name"], write["Effects"], write["Returns"]) == ("write", [], "text")


def test_contracts_follow_the_types() -> None:
    actions = make().actions
    line, repeat = actions["POST line"], actions["POST repeat"]
    assert line.schema["properties"]["colour"] == {"enum": ["white", "yellow"], "default": "white"}
    assert (line.contract, repeat.contract, actions["GET note"].contract) == ("JsonSchema", "JsonSchema", "")
    told = repeat.capability("note", "2")
    assert (told["Effects"], told["Returns"], told["Version"]) == (["write"], "data", "2")
    assert actions["POST draw"].returns == "image"
    assert actions["POST draw"].contract == ""
    assert actions["GET note"].capability("note", "1")["Method"] == 0


def wrong(define: Callable[[App[Note]], Any]) -> str:
    with pytest.raises(UseError) as raised:
        define(App("note", Note))
    return str(raised.value)


def test_what_cannot_be_a_capability_is_told_at_once() -> None:
    def untyped(text) -> None: ...  # type: ignore[no-untyped-def]
    def two(a: str, b: str) -> None: ...
    def many(*a: str) -> None: ...

    assert "does not say the type of 'text'" in wrong(lambda app: app.action("x []")(untyped))
    assert "needs 'b', for which its phrase has no place" in wrong(lambda app: app.action("x []")(two))
    assert "3 places [] and 2 parameters" in wrong(lambda app: app.action("x [] [] []")(two))
    assert "only named parameters" in wrong(lambda app: app.action("x []")(many))
    assert "cannot have the route 'app/x'" in wrong(lambda app: app.action("[] []", route="app/x")(two))
    assert "no effect 'harm'" in wrong(lambda app: app.action("[] []", effects=["harm"])(two))  # type: ignore[list-item]

    def twice(app: App[Note]) -> None:
        app.action("x [] []")(two)
        app.action("y [] []")(two)

    assert "has the route 'POST two' already" in wrong(twice)


# -- calls -----------------------------------------------------------------------------------


def test_a_call_of_the_documents_broker_and_one_by_name_do_the_same() -> None:
    async def body(site: Served) -> None:
        assert await site.say("write", "hello") == {"text": "Done: write note …", "version": 1}
        assert site.app.state.text == "hello"
        await site.ok("/write", {"text": "by name"})
        await site.ok("/write", {"TEXT": "[a], {b} and \\n stay as they are"})
        assert site.app.state.text == "[a], {b} and \\n stay as they are"
        assert (await site.say("line", "beans"))["text"] == "1 lines."
        await site.ok("/line", {"line": "peas", "colour": "Yellow"})
        assert site.app.state.colour == "yellow"
        assert (await site.ok("/repeat", {"times": "2"}))["data"] == {"length": 2 * 32}
        assert (await site.ok("/draw", {"Text": None}))["image"]["data"] == "PHN2Zy8+"
        assert (await site.ok("/draw", b""))["image"]["type"] == "image/svg+xml"
        assert (await site.ok("/later", {}))["text"] == "It came."
        assert (await site.ok("/note"))["text"] == "late"

    run(body)


def test_what_does_not_fit_changes_nothing() -> None:
    async def body(site: Served) -> None:
        await site.say("write", "old")
        version = site.app.store.version
        said = await site.refusal("/repeat", {"times": "many"})
        assert said.startswith("“repeat note [] times”: times:") and '"many"' in said
        assert "takes no single text" in await site.refusal("/repeat", {"Text": "3"})
        assert "color" in await site.refusal("/line", {"line": "x", "color": "yellow"})
        assert "required" in (await site.refusal("/write", {})) or "missing" in (
            await site.refusal("/write", {})
        )
        assert await site.refusal("/write", {"Text": "bad"}) == "Not that."
        assert "not JSON" in await site.refusal("/write", b"{", status=400)
        assert "JSON object" in await site.refusal("/write", b"[1]", status=400)
        assert "not JSON" in await site.refusal("/write", b"[" * 100_000, status=400)
        assert "KeyError" in await site.refusal("/write", {"Text": "broken"}, status=500)
        assert site.app.state.text == "old"
        assert site.app.store.version == version

    run(body)


def test_unknown_ways_and_too_much_are_refused() -> None:
    async def body(site: Served) -> None:
        assert (
            await site.refusal("/wriet", {}, status=404) == "Note has nothing at /wriet. Did you mean /write?"
        )
        assert await site.refusal("/write", status=405) == "/write takes POST, not GET."
        assert "nothing at /a/b" in await site.refusal("/a/b", status=404)
        announced = await site.refusal("/write", b"{}", status=413, content_length=str(100_000_000))
        assert announced == "The request is bigger than 4 MB."
        big = b'{"Text": "' + b"x" * 5_000_000 + b'"}'
        assert "bigger" in await site.refusal("/write", big, status=413)
        assert site.app.state.text == ""

    run(body)


def test_a_body_without_an_end_is_read_no_further_than_its_limit() -> None:
    async def run() -> None:
        app, chunks, answers = make(), 0, []

        async def receive() -> dict[str, Any]:
            nonlocal chunks
            chunks += 1
            return {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}

        async def send(message: Any) -> None:
            answers.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/write",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1:1")],
        }
        await app.asgi()(scope, receive, send)
        assert answers[0]["status"] == 413
        assert chunks <= 5

    asyncio.run(run())


# -- who may call ------------------------------------------------------------------------------


def test_foreign_pages_and_names_are_refused() -> None:
    async def body(site: Served) -> None:
        await site.refusal("/write", {"Text": "x"}, status=421, host="evil.example")
        await site.refusal("/write", {"Text": "x"}, status=403, origin="http://evil.example")
        answer = await site.ask("/")
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert b"<script>" not in answer.body
        assert site.app.state.text == ""

    run(body)


def test_with_a_launch_token_only_its_holder_calls() -> None:
    async def body(site: Served) -> None:
        for path in ("/write", "/app/edit", "/app/undo"):
            assert "token" in await site.refusal(path, {"Text": "x"}, status=401)
        for path in ("/app/state", "/app/events", "/note"):
            await site.refusal(path, status=401)
        await site.refusal("/write", {"Text": "x"}, status=401, authorization="Bearer nope")
        await site.ok("/write", {"Text": "x"}, authorization="Bearer secret")
        told = await site.ok("/health?nonce=abc")
        assert told["name"] == "note" and told["version"] == "1.0" and told["pid"] > 0
        assert told["proof"] == hmac.new(b"secret", b"abc", hashlib.sha256).hexdigest()
        assert "secret" not in str(told)

    run(body, token="secret")
