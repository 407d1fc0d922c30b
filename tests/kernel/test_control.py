"""A person reaches any agent at any time: pause, stop, kill."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from kernel_parts import begin, bodies, ended, machine, until

from textor import capability
from textor import events as e
from textor.events import Limits
from textor.testing import Call, Flag, Gate, Reply, ScriptedModel


def test_stop_during_a_model_stream(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()
        model = ScriptedModel([Reply("one two three", gates={4: gate}), "fresh"])
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "talk")
            await gate.reached.wait()
            await session.control("stop")
            await session.control("stop")
            await session.post("a new message right after")
            events = await until(session, ended)
            assert (events[-1].body.reason, events[-1].body.text) == ("stopped", "one")
            events = await until(session, ended, events[-1].seq)
            assert events[-1].body.text == "fresh"
            assert model.asked[0].hung_up.is_set()

    asyncio.run(run())


@pytest.mark.parametrize("level", ["stop", "kill"])
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it starts"])
def test_stop_during_a_command_leaves_no_process(tmp_path: Path, level: e.Level, running: bool) -> None:
    async def run() -> None:
        command = "echo it runs; sleep 600"
        call = Reply(calls=(Call("shell_run", {"command": command, "timeout": 600}),))
        model = ScriptedModel([call])
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, workspace=tmp_path, policy="yes")
            shown = made.services.hub.subscribe(session.id)
            await session.post("wait")
            await until(session, lambda ev: isinstance(ev.body, e.ActionStarted))
            while running and "it runs" not in (await asyncio.wait_for(shown.get(), 20)).text:
                pass
            await session.control(level)
            events = await until(session, ended)
            assert events[-1].body.reason == "stopped"
            assert [b.outcome.state for b in bodies(events, e.ActionFinished)] == ["cancelled"]
            assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if _runs(p, command)]

    asyncio.run(run())


def _runs(cmdline: Path, command: str) -> bool:
    try:
        return command.encode() in cmdline.read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize(("level", "state"), [("stop", "done"), ("kill", "unknown")])
def test_a_stop_waits_for_what_cannot_be_cancelled_and_a_kill_does_not(
    tmp_path: Path, level: e.Level, state: str
) -> None:
    begun, go = Flag(), threading.Event()

    @capability(effects=("outward",))
    def publish() -> str:
        """Publish it."""
        begun.set()
        go.wait(20)  # in a thread: nobody can cancel it
        return "published"

    async def run() -> None:
        model = ScriptedModel([Reply(calls=(Call("publish"),))])
        async with machine(model, [publish], tmp=tmp_path) as made:
            made.services.grace = 0.05
            session = await begin(made, model, "publish")
            events = await until(session, lambda ev: isinstance(ev.body, e.ActionJudged))
            await session.answer(events[-1].body.action, True)
            await begun.wait()
            await session.control(level)
            if level == "stop":
                await until(session, lambda ev: isinstance(ev.body, e.Controlled))
                go.set()
            events = await until(session, ended)
            go.set()
            assert [b.outcome.state for b in bodies(events, e.ActionFinished)] == [state]
            assert events[-1].body.reason == "stopped"

    asyncio.run(run())


def test_a_message_may_cancel_what_is_under_way(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel(
            [Reply(calls=(Call("wait", {"seconds": 500}), Call("time_now"))), "as you wish"]
        )
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "wait")
            await until(session, lambda ev: isinstance(ev.body, e.ActionFinished))
            await session.post("never mind, tell me a joke", cancel=True)
            events = await until(session, ended)
            states = {b.action: b.outcome.state for b in bodies(events, e.ActionFinished)}
            assert sorted(states.values()) == ["cancelled", "done"]
            assert events[-1].body.text == "as you wish"
            assert "never mind" in str(model.asked[1].context.messages[-1])

    asyncio.run(run())


def test_a_pause_starts_nothing_new_and_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()
        model = ScriptedModel([Reply("", calls=(Call("time_now"),), gates={0: gate}), "done"])
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "time?")
            await gate.reached.wait()
            await session.control("pause")
            gate.open()
            events = await until(session, lambda ev: isinstance(ev.body, e.ActionJudged))
            assert bodies(events, e.ActionStarted) == []
            await session.control("run")
            events = await until(session, ended)
            assert events[-1].body.text == "done"

    asyncio.run(run())


def test_the_wall_time_of_a_turn(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()
        model = ScriptedModel([Reply("thinking", gates={8: gate})])
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "think", limits=Limits(seconds=0.05))
            events = await until(session, ended)
            assert (events[-1].body.reason, events[-1].body.detail) == ("limit", "seconds")
            assert events[-1].body.text == "thinking"

    asyncio.run(run())


def test_a_command_on_the_machine_itself_is_asked_about_and_sees_it(tmp_path: Path) -> None:
    async def run() -> None:
        look = {"command": f"ls /proc/{os.getpid()}/cmdline"}  # no sandbox shows this process
        calls = (Call("shell_run", look), Call("shell_host", look))
        model = ScriptedModel([Reply(calls=calls), "seen"])
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "look", workspace=tmp_path)
            events = await until(session, lambda ev: getattr(ev.body, "verdict", "") == "ask")
            judged = events[-1].body
            assert judged.action == "main.1.2"
            await session.answer(judged.action, True)
            events = await until(session, ended)
            outcomes = {b.action: b.outcome.exit_status for b in bodies(events, e.ActionFinished)}
            assert outcomes["main.1.1"] != 0
            assert outcomes["main.1.2"] == 0

    asyncio.run(run())
