"""The WebSocket of a tab: who may have it, what it carries, and that a slow one holds nothing back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server_parts import beginning, ended, finished, machine, served, started, until, write
from server_web import Tab, tab
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from textor.live import Delta
from textor.server import stream
from textor.server.stream import BAD_FRAME, BAD_TOKEN, EVENT_TEXT, Outbox
from textor.testing import Gate, Reply, ScriptedModel

MODEL = "scripted:model"


def test_only_who_holds_the_token_is_told_anything(tmp_path: Path) -> None:
    async def run() -> None:
        async with machine(tmp=tmp_path, host=False) as made, served(made, tmp_path) as at:
            await write(made, "s", beginning("Hello"))
            for first, code in (
                ('{"token":"wrong","session":"s"}', BAD_TOKEN),
                ('{"session":"s"}', BAD_TOKEN),
                ('{"token":"\\ud800","session":"s"}', BAD_FRAME),
                ("{", BAD_FRAME),
                ('{"session":1}', BAD_FRAME),
                (b"\xff", BAD_FRAME),
            ):
                async with connect(at.replace("http", "ws") + "/api/stream") as socket:
                    await socket.send(first)
                    with pytest.raises(ConnectionClosed) as closed:
                        await asyncio.wait_for(socket.recv(), 20)
                    assert closed.value.rcvd is not None
                    assert closed.value.rcvd.code == code, first

    asyncio.run(run())


def test_a_foreign_page_gets_no_socket(tmp_path: Path) -> None:
    async def run() -> None:
        async with machine(tmp=tmp_path, host=False) as made, served(made, tmp_path) as at:
            for headers, status in (({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403)):
                with pytest.raises(InvalidStatus) as refused:
                    await connect(at.replace("http", "ws") + "/api/stream", additional_headers=headers)
                assert refused.value.response.status_code == status

    asyncio.run(run())


def test_who_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FIRST_FRAME", 0.0)

    async def run() -> None:
        async with (
            machine(tmp=tmp_path, host=False) as made,
            served(made, tmp_path) as at,
            connect(at.replace("http", "ws") + "/api/stream") as socket,
        ):
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(socket.recv(), 20)

    asyncio.run(run())


def test_text_streams_and_the_events_follow(tmp_path: Path) -> None:
    gate = Gate()
    model = ScriptedModel([Reply("Good day to you.", gates={8: gate})])

    async def run() -> None:
        async with machine(model, tmp=tmp_path) as made, served(made, tmp_path) as address:
            session = await made.create(workspace=tmp_path, model=MODEL, agent="main")
            async with tab(address, session.id) as opened:
                marker = await opened.next()
                assert (marker["type"], marker["session"]) == ("session", session.id)
                await session.post("Hello")
                text = ""
                while text != "Good day":  # the model stands at the gate: this is all there is yet
                    item = await opened.next()
                    text += item["text"] if item["type"] == "delta" else ""
                gate.open()
                rest = await opened.until("turn.ended")
                assert rest[-1]["event"]["data"]["text"] == "Good day to you."

    asyncio.run(run())


def test_a_tab_switches_and_comes_back_where_it_was(tmp_path: Path) -> None:
    async def run() -> None:
        async with machine(tmp=tmp_path, host=False) as made, served(made, tmp_path) as at:
            await write(made, "a", beginning("In a"))
            await write(made, "b", beginning("In b"))
            async with tab(at, "a") as opened:
                assert (await opened.next())["head"] == 4
                assert (await opened.until("message.posted"))[-1]["event"]["data"]["text"] == "In a"
                await opened.say("b")
                while (await opened.next()).get("session") != "b":
                    pass
                items = await opened.until("message.delivered")
                assert items[2]["event"]["data"]["text"] == "In b"
                await opened.say("a", after=3)
                marker, event = await opened.next(), await opened.next()
                assert (marker["session"], event["event"]["seq"]) == ("a", 4)
                await opened.say("nobody")
                assert "nobody" in (await opened.next())["error"]
                await opened.say("b", after=3)
                assert [(await opened.next())["type"] for _ in range(2)] == ["session", "event"]

    asyncio.run(run())


def test_a_long_history_comes_in_few_frames_and_in_order(tmp_path: Path) -> None:
    async def run() -> None:
        async with machine(tmp=tmp_path, host=False) as made, served(made, tmp_path) as at:
            pairs = [b for n in range(1500) for b in (started(n + 1), finished(f"Reply {n}"))]
            await write(made, "long", [*beginning("Go"), *pairs])
            async with tab(at, "long") as opened:
                await opened.next()
                numbers = [(await opened.next())["event"]["seq"] for _ in range(3004)]
                assert numbers == list(range(1, 3005))
                assert opened.frames < 300

    asyncio.run(run())


def test_a_tab_that_does_not_read_holds_no_session_back(tmp_path: Path) -> None:
    replies = [Reply(f"{n}" + "x" * 400_000, chunk=4000) for n in range(20)]

    async def run() -> None:
        async with machine(ScriptedModel(replies), tmp=tmp_path) as made, served(made, tmp_path) as address:
            session = await made.create(workspace=tmp_path, model=MODEL, agent="main")
            async with tab(address, session.id) as idle:
                last = 0
                for _ in replies:  # some 8 MB of text and as much of deltas, which nobody reads
                    await session.post("Go on")
                    last = (await until(session, ended, last))[-1].seq
                await read_all(idle, last)

    async def read_all(opened: Tab, last: int) -> None:
        numbers: list[int] = []
        while last not in numbers[-1:]:
            item = await opened.next()
            if item["type"] == "event":
                numbers.append(item["event"]["seq"])
        assert numbers == list(range(1, last + 1))

    asyncio.run(run())


Deltas = st.lists(
    st.builds(
        Delta,
        st.sampled_from(["main", "main/spider"]),
        st.sampled_from(["text", "reasoning", "progress", "action"]),
        st.text(max_size=20),
    )
)


@given(Deltas)
def test_merging_loses_no_text_and_keeps_the_order(deltas: list[Delta]) -> None:
    async def run() -> None:
        outbox = Outbox()
        for delta in deltas:
            outbox.delta(delta)
        taken = [json.loads(item) for item in await outbox.take()] if deltas else []
        for agent in ("main", "main/spider"):
            for kind in ("text", "reasoning"):
                sent = "".join(d.text for d in deltas if (d.agent, d.kind) == (agent, kind))
                got = "".join(i["text"] for i in taken if (i["agent"], i["kind"]) == (agent, kind))
                assert got == sent
        whole = [(d.agent, d.kind, d.text) for d in deltas if d.kind in ("progress", "action")]
        kept = [i for i in taken if i["kind"] in ("progress", "action")]
        assert [(i["agent"], i["kind"], i["text"]) for i in kept] == whole

    asyncio.run(run())


def test_the_outbox_is_bounded() -> None:
    async def run() -> None:
        outbox = Outbox()
        for _ in range(100):
            outbox.delta(Delta("main", "text", "x" * 10_000))
        for number in range(1000):  # until one has to wait
            waiting = asyncio.create_task(outbox.event({"seq": number, "text": "y" * 9000}))
            await asyncio.sleep(0)
            if not waiting.done():
                break
        assert EVENT_TEXT / 10_000 < number < EVENT_TEXT / 9000 + 2
        delta, *events = [json.loads(item) for item in await outbox.take()]
        assert 0 < len(delta["text"]) <= stream.DELTA_TEXT
        assert [i["event"]["seq"] for i in events] == list(range(number))
        await waiting
        assert [json.loads(i)["event"]["seq"] for i in await outbox.take()] == [number]

    asyncio.run(run())
