"""The call tree: agents that call, ask back, and can be spoken to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kernel_parts import bodies, ended, machine, until

from textor import events as e
from textor.assembly import Machine
from textor.events import Event, Limits
from textor.messages import Context
from textor.session import Session
from textor.testing import Call, Gate, Reply, ScriptedModel
from textor.testing.model import ModelItem

TYPE = """---
purpose: {purpose}
model: scripted:{name}
capabilities: [call, ask, answer, notes.set, time.now, shell.run]
---
You are {name}.
"""


def write_types(folder: Path, names: Sequence[str]) -> None:
    agents = folder / ".textor" / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    for name in names:
        (agents / f"{name}.md").write_text(TYPE.format(name=name, purpose=f"does {name} things"))


@asynccontextmanager
async def tree(folder: Path, **scripts: Sequence[ModelItem] | Callable[[Context], ModelItem]):  # type: ignore[no-untyped-def]
    """A machine with one agent type and one scripted model a name; gives (machine, models)."""
    write_types(folder, list(scripts))
    models = {name: ScriptedModel(script, id=f"scripted:{name}") for name, script in scripts.items()}
    async with machine(models["boss"], tmp=folder) as made:
        for model in models.values():
            made._models.add(model)
        yield made, models


async def start(made: Machine, folder: Path, text: str | None = "go", **more: Any) -> Session:
    return await made.create(text, workspace=folder, agent="boss", **more)


def main_ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded) and event.body.agent == "main"


def call(name: str, message: str, type: str = "worker", **more: Any) -> Call:
    return Call("call", {"type": type, "name": name, "message": message, **more})


def outcomes(events: Sequence[Event], agent: str = "main") -> list[str]:
    return [b.outcome.text for b in bodies(events, e.ActionFinished) if b.agent == agent]


def shown(model: ScriptedModel, nth: int) -> str:
    return "\n".join(str(m) for m in model.asked[nth].context.messages)


def test_a_child_is_made_and_continued_with_its_history(tmp_path: Path) -> None:
    async def run() -> None:
        boss = [Reply(calls=(call("ann", "one"),)), Reply(calls=(call("ann", "two"),)), "done"]
        async with tree(tmp_path, boss=boss, worker=["first", "second"]) as (made, models):
            events = await until(await start(made, tmp_path), main_ended)
            assert outcomes(events) == ["first", "second"]
            assert len(bodies(events, e.AgentCreated)) == 2
            texts = [m.text for m in models["worker"].asked[1].context.messages]
            assert any("one" in t for t in texts)
            assert any("first" in t for t in texts)
            assert "two" in texts[-1]

    asyncio.run(run())


def test_calls_of_one_reply_run_at_the_same_time(tmp_path: Path) -> None:
    async def run() -> None:
        gates = [Gate(), Gate()]
        both = Reply(calls=(call("ann", "a"), call("bob", "b")))
        worker = [Reply("one", gates={0: gates[0]}), Reply("two", gates={0: gates[1]})]
        async with tree(tmp_path, boss=[both, "done"], worker=worker) as (made, _):
            session = await start(made, tmp_path)
            await asyncio.gather(*(g.reached.wait() for g in gates))  # both are under way
            for gate in gates:
                gate.open()
            events = await until(session, main_ended)
            assert sorted(outcomes(events)) == ["one", "two"]

    asyncio.run(run())


def test_a_background_reply_comes_as_a_message(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()
        boss = [Reply(calls=(call("ann", "dig", background=True),)), "she digs", "she found gold"]
        async with tree(tmp_path, boss=boss, worker=[Reply("gold", gates={0: gate})]) as (made, models):
            session = await start(made, tmp_path)
            events = await until(session, main_ended)
            assert events[-1].body.text == "she digs"
            gate.open()
            events = await until(session, main_ended, events[-1].seq)
            assert events[-1].body.text == "she found gold"
            assert "[from main/ann] gold" in shown(models["boss"], 2)

    asyncio.run(run())


def test_a_child_asks_and_goes_on_in_the_same_turn(tmp_path: Path) -> None:
    async def run() -> None:
        def boss(context: Context) -> ModelItem:
            n = len(models["boss"].asked)
            if n == 1:
                return Reply(calls=(call("ann", "paint it"),))
            if n == 2:
                key = shown(models["boss"], 1).split("with the id ")[1].split(":")[0]
                return Reply(calls=(Call("answer", {"id": key, "text": "blue"}),))
            return "it is blue"

        worker = [Reply(calls=(Call("ask", {"question": "Which colour?"}),)), "painted blue"]
        async with tree(tmp_path, boss=boss, worker=worker) as (made, models):
            events = await until(await start(made, tmp_path), main_ended)
            assert "Which colour?" in outcomes(events)[0]
            assert outcomes(events)[1] == "painted blue"
            assert outcomes(events, "main/ann") == ["blue"]
            assert len([b for b in bodies(events, e.TurnEnded) if b.agent == "main/ann"]) == 1

    asyncio.run(run())


def test_a_question_settles_the_other_calls_and_their_replies_come_later(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()

        def boss(context: Context) -> ModelItem:
            n = len(models["boss"].asked)
            if n == 1:
                return Reply(calls=(call("ann", "slow"), call("bob", "curious")))
            if n == 2:
                key = shown(models["boss"], 1).split("with the id ")[1].split(":")[0]
                gate.open()
                return Reply(calls=(Call("answer", {"id": key, "text": "because"}),))
            return f"reply {n}"

        def worker(context: Context) -> ModelItem:
            text = context.messages[-1].text if context.messages[-1].role == "user" else "answered"
            if "slow" in text:
                return Reply("slow is done", gates={0: gate})
            if "curious" in text:
                return Reply(calls=(Call("ask", {"question": "why?"}),))
            return "satisfied"

        async with tree(tmp_path, boss=boss, worker=worker) as (made, models):
            session = await start(made, tmp_path)
            events = await until(
                session,
                lambda ev: main_ended(ev) and "slow is done" in shown(models["boss"], -1),
            )
            first = outcomes(events)
            assert any("still at work" in text for text in first)
            assert any("why?" in text for text in first)
            assert "satisfied" in first
            calls = [b for b in bodies(events, e.ActionFinished) if b.agent == "main"]
            assert len({b.action for b in calls}) == len(calls) == 3

    asyncio.run(run())


def test_a_question_goes_up_to_the_person(tmp_path: Path) -> None:
    async def run() -> None:
        def boss(context: Context) -> ModelItem:
            n = len(models["boss"].asked)
            if n == 1:
                return Reply(calls=(call("ann", "book a table"),))
            if n == 2:
                return Reply(calls=(Call("ask", {"question": "For how many?"}),))
            if n == 3:
                key = shown(models["boss"], 1).split("with the id ")[1].split(":")[0]
                return Reply(calls=(Call("answer", {"id": key, "text": "four"}),))
            return "booked for four"

        worker = [Reply(calls=(Call("ask", {"question": "How many people?"}),)), "booked"]
        async with tree(tmp_path, boss=boss, worker=worker) as (made, models):
            session = await start(made, tmp_path)
            events = await until(session, lambda ev: isinstance(ev.body, e.Asked) and ev.body.agent == "main")
            question = events[-1].body
            assert question.question == "For how many?"
            await session.reply(question.key, "four")
            await session.reply(question.key, "five")  # the second of two persons
            events = await until(session, main_ended)
            assert events[-1].body.text == "booked for four"
            assert outcomes(events, "main/ann") == ["four"]

    asyncio.run(run())


def test_nobody_to_ask_and_a_caller_that_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        ask = Reply(calls=(Call("ask", {"question": "Shall I?"}),))
        async with tree(tmp_path, boss=[ask, "then not"], worker=[]) as (made, _):
            events = await until(await start(made, tmp_path, attended=False), main_ended)
            assert "Nobody is here" in outcomes(events)[0]
        boss = [Reply(calls=(call("ann", "do"),)), "I do not care"]
        async with tree(tmp_path, boss=boss, worker=[ask, "I did"]) as (made, _):
            session = await start(made, tmp_path)
            events = await until(
                session, lambda ev: isinstance(ev.body, e.TurnEnded) and ev.body.agent == "main/ann"
            )
            assert "best judgement" in outcomes(events, "main/ann")[0]

    asyncio.run(run())


def test_a_person_speaks_to_a_child(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()
        worker = [Reply("I paint it red", gates={8: gate}), "I paint it green"]
        boss = [Reply(calls=(call("ann", "paint"),)), "done"]
        async with tree(tmp_path, boss=boss, worker=worker) as (made, models):
            session = await start(made, tmp_path)
            await gate.reached.wait()
            await session.post("green, please", "main/ann", id="once")
            await session.post("green, please", "main/ann", id="once")
            events = await until(session, main_ended)
            assert outcomes(events) == ["I paint it green"]
            assert models["worker"].asked[0].hung_up.is_set()
            assert shown(models["worker"], 1).count("green, please") == 1

    asyncio.run(run())


@pytest.mark.parametrize("level", ["stop", "kill"])
def test_stop_goes_down_the_tree_and_the_agents_stay_callable(tmp_path: Path, level: e.Level) -> None:
    async def run() -> None:
        gates = [Gate(), Gate(), Gate()]
        three = Reply(calls=tuple(call(n, "work") for n in ("ann", "bob", "cid")))
        worker: list[ModelItem] = [Reply("partial work", gates={7: g}) for g in gates]
        async with tree(tmp_path, boss=[three, "fresh"], worker=worker) as (made, models):
            session = await start(made, tmp_path)
            await asyncio.gather(*(g.reached.wait() for g in gates))
            await session.control(level)
            await session.control(level)
            events = await until(session, main_ended)
            state = await session.state()
            assert events[-1].body.reason == "stopped"
            assert all(asked.hung_up.is_set() for asked in models["worker"].asked)
            assert {b.agent for b in bodies(events, e.TurnEnded)} >= {"main"}
            await session.post("are you there?")
            events = await until(session, main_ended, state.seq)
            assert events[-1].body.text == "fresh"
            state = await session.state()
            assert all(a.turn is None and a.level == "run" for a in state.agents.values())

    asyncio.run(run())


def test_values_go_along_by_name_and_nothing_else_leaks(tmp_path: Path) -> None:
    async def run() -> None:
        boss = [Reply(calls=(call("ann", "use $recipe, please return a list of all items"),)), "done"]
        async with tree(tmp_path, boss=boss, worker=["thanks"]) as (made, models):
            session = await start(made, tmp_path, None)
            blobs = made.journal.blobs
            from textor.values import text_value

            for name, text in (("recipe", "flour"), ("list", "secret one"), ("a", "secret two")):
                event = made.services.event(e.VariableSet("main", name, text_value(text, blobs, name=name)))
                await made.journal.append(session.id, [event], epoch=None)
            await session.post("go")
            await until(session, main_ended)
            state = await session.state()
            assert set(state.agents["main/ann"].variables) == {"recipe"}
            assert "secret" not in shown(models["worker"], 0)
            assert "$recipe" in shown(models["worker"], 0)

    asyncio.run(run())


def test_what_cannot_be_called_says_why(tmp_path: Path) -> None:
    async def run() -> None:
        calls = [
            call("ann", "x", type="worke"),
            call("a/b", "x"),
            Call("answer", {"id": "nothing", "text": "x"}),
        ]
        boss = [Reply(calls=(c,)) for c in calls] + ["done"]
        async with tree(tmp_path, boss=boss, worker=[]) as (made, _):
            events = await until(await start(made, tmp_path), main_ended)
            texts = outcomes(events)
            assert 'no agent type "worke"' in texts[0]
            assert "worker" in texts[0]
            assert "cannot be a name" in texts[1]
            assert "No question is open" in texts[2]

    asyncio.run(run())


def test_the_budget_of_an_agent_holds_for_all_below_it(tmp_path: Path) -> None:
    async def run() -> None:
        n = iter(range(1000))

        def worker(context: Context) -> ModelItem:
            return Reply("x" * 400, calls=(Call("notes_set", {"key": "k", "text": str(next(n))}),))

        boss = [Reply(calls=(call("ann", "dig"), call("bob", "dig"))), "done"]
        async with tree(tmp_path, boss=boss, worker=worker) as (made, _):
            session = await start(made, tmp_path, limits=Limits(iterations=50, tokens=6000))
            events = await until(session, main_ended)
            state = await session.state()
            assert state.usage.total <= 6000
            ends = [b for b in bodies(events, e.TurnEnded) if b.agent != "main"]
            assert {(b.reason, b.detail) for b in ends} <= {
                ("limit", "tokens"),
                ("stopped", "a person stopped it"),
            }
            assert ("limit", "tokens") in {(b.reason, b.detail) for b in bodies(events, e.TurnEnded)}

    asyncio.run(run())


def test_a_fork_bomb_of_children_meets_the_budget(tmp_path: Path) -> None:
    async def run() -> None:
        def worker(context: Context) -> ModelItem:
            if context.messages[-1].role == "tool":
                return "enough"
            return Reply(calls=(call("left", "fork"), call("right", "fork")))

        boss = [Reply(calls=(call("ann", "fork"),)), "done"]
        async with tree(tmp_path, boss=boss, worker=worker) as (made, _):
            limits = Limits(iterations=20, agents=10)
            session = await start(made, tmp_path, limits=limits)
            events = await until(session, main_ended)
            assert len((await session.state()).agents) == 10
            told = [b for b in bodies(events, e.ActionFinished) if "already has 10 agents" in b.outcome.text]
            assert told

    asyncio.run(run())


def test_the_ends_of_a_child_that_fails_are_seen(tmp_path: Path) -> None:
    async def run() -> None:
        boss = [Reply(calls=(call("ann", "x"),)), "I see"]
        async with tree(tmp_path, boss=boss, worker=["", ""]) as (made, _):
            events = await until(await start(made, tmp_path), main_ended)
            finished = next(b for b in bodies(events, e.ActionFinished) if b.agent == "main")
            assert finished.outcome.state == "failed"
            assert "did not answer" in finished.outcome.text
        assert ended  # re-exported for other tests

    asyncio.run(run())
