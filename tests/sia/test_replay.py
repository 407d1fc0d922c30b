"""Forks and replays: the same fold and decide, over the same record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sia_parts import ended, machine, until

from textor import capability
from textor import events as e
from textor.actions import Outcome
from textor.assembly import Machine
from textor.capabilities.functions import FunctionProvider
from textor.errors import TextorError, UseError
from textor.events import Definition, Limits
from textor.messages import said
from textor.record.forks import fork
from textor.record.iterations import Iteration, iterations
from textor.record.otherwise import otherwise
from textor.record.replay import Difference, Replayed, replay
from textor.record.review import Draft, EditedCall, waiting
from textor.session import Session
from textor.testing import Call, Gate, Reply, ScriptedModel

TIME = Call("time_now", {})
PRINT = Reply("I print.", calls=(Call("print", {"text": "one"}), TIME))
TOOLS = Definition("t", capabilities=("print", "time.now", "notes.set", "call", "ask", "answer"), prompt="P")
XML = replace(TOOLS, dialects=("xml",))

Scene = Callable[[Session], Awaitable[None]]


async def plain(session: Session) -> None:
    await until(session, ended)


async def stopped(session: Session) -> None:
    await until(session, lambda ev: isinstance(ev.body, e.ActionStarted))
    await session.control("stop")
    await until(session, ended)


async def reviewed(session: Session) -> None:
    seen = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished))
    await session.review("main", "again", remark="better")
    seen = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished), seen[-1].seq)
    await session.review("main", "edit", message=said("assistant", "Mine."), reply="Mine.")
    await until(session, ended)


def note(key: str) -> Reply:
    return Reply(calls=(Call("notes_set", {"key": key, "text": "x"}), TIME))


def child(context: Any) -> str | Reply:
    """`main` calls two children at once; each looks at the time and answers."""
    text = "".join(part.text for part in context.messages[-1].parts if hasattr(part, "text"))
    if "go" in text.split("\n")[0]:
        calls = [Call("call", {"type": "researcher", "name": n, "message": f"look {n}"}) for n in ("a", "b")]
        return Reply(calls=tuple(calls))
    return Reply(calls=(TIME,)) if "look" in text.split("\n")[0] else "Seen."


SCENES: dict[str, tuple[Any, Definition, Scene]] = {
    "tools": ([PRINT, note("k"), "", "Done."], TOOLS, plain),
    "faults": ([*(Reply(calls=(Call(name, "{"),)) for name in ("prnt", "print")), "Done."], TOOLS, plain),
    "xml": (['x <actions><print text="a"/><prnt/></actions>', "<actions><print", "Done."], XML, plain),
    "regenerated": (["<actions><time.now/></actions>", "Done."], replace(XML, layout="regenerated"), plain),
    "limit": ([note("a"), note("b"), note("c")], replace(TOOLS, limits=Limits(iterations=2)), plain),
    "loop": ([PRINT] * 5, TOOLS, plain),
    "stop": ([Reply(calls=(Call("wait", {"seconds": 60}),))], replace(TOOLS, capabilities=("*",)), stopped),
    "review": (["One.", "Two."], replace(TOOLS, review=True), reviewed),
    "tree": (child, TOOLS, plain),
}  # fmt: skip


def after(
    tmp: Path,
    script: Any,
    definition: Definition,
    scene: Scene,
    then: Callable[[Machine, Session], Awaitable[Any]],
) -> Any:
    """What `then` gives after a scene."""

    async def run() -> Any:
        model = ScriptedModel(script, native_tools="tools" in definition.dialects)
        async with machine(model, tmp=tmp, names=[]) as made:
            made.config.models["researcher"] = model.id
            session = await made.create(
                "go", workspace=tmp, definition=definition, model=model.id, policy="yes", attended=False
            )
            await scene(session)
            return await then(made, session)

    return asyncio.run(run())


@pytest.mark.parametrize("name", SCENES)
def test_the_record_follows_from_itself(tmp_path: Path, name: str) -> None:
    found: Replayed = after(tmp_path, *SCENES[name], lambda made, s: replay(made.services, s.id))
    assert found.differences == ()
    assert found.steps > 3 and found.events > found.steps


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (e.ActionJudged, {"verdict": "ask"}),
        (e.Observed, {"messages": (said("user", "other"),)}),
        (e.TurnEnded, {"reason": "failed"}),
        (e.GenerationStarted, {"iteration": 7}),
        (e.GenerationFinished, {"actions": ()}),
        (e.ActionStarted, {"cancellable": False}),
    ],
)
def test_what_was_changed_in_the_record_is_told(
    tmp_path: Path, kind: type[Any], change: dict[str, Any]
) -> None:
    async def then(made: Machine, session: Session) -> tuple[int, tuple[Difference, ...]]:
        events = [ev async for ev in made.journal.read(session.id)]
        place = next(n for n, ev in enumerate(events) if isinstance(ev.body, kind))
        body = replace(events[place].body, **change)
        events[place] = replace(events[place], body=body)
        await made.journal.create("other", events)
        await made.host.close()  # type: ignore[union-attr]
        return place + 1, (await replay(made.services, "other")).differences

    place, found = after(tmp_path, [PRINT, "Done."], TOOLS, plain, then)
    assert found[0].seq == place and found[0].kind == kind.KIND


def test_an_outcome_without_its_action_is_told(tmp_path: Path) -> None:
    async def then(made: Machine, session: Session) -> tuple[Difference, ...]:
        await made.host.close()  # type: ignore[union-attr]
        forged = made.services.event(e.ActionFinished("main", "main.9.9", Outcome("done", "forged")))
        events = [ev async for ev in made.journal.read(session.id)]
        await made.journal.create("other", [*events, forged])
        return (await replay(made.services, "other")).differences

    (found,) = after(tmp_path, ["Done."], TOOLS, plain, then)
    assert "not under way" in found.now


# -- forks -----------------------------------------------------------------------------------


def forked(
    tmp: Path, other: list[Any], **how: Any
) -> tuple[Iteration, list[e.Event], list[e.Event], ScriptedModel]:
    """A session of two iterations, and a fork at the first; (it, events of both, the other model)."""

    async def run() -> tuple[Iteration, list[e.Event], list[e.Event], ScriptedModel]:
        first = ScriptedModel([PRINT, "Done.", *other])
        second = ScriptedModel(other, id="scripted:other")
        async with machine(first, second, tmp=tmp) as made:
            session = await made.create("go", workspace=tmp, definition=TOOLS, model=first.id, policy="yes")
            old = await until(session, ended)
            iteration, *_ = [i async for i in iterations(made.journal, session.id, made.services.layout)]
            id = await fork(made.services, session.id, iteration.seq, "forked-1", **how)
            assert made.host is not None
            made.host.wake(id)
            again = await made.session(id)
            await until(again, ended)
            new = [ev async for ev in made.journal.read(id)]
            assert (await replay(made.services, id)).differences == ()
            with pytest.raises(UseError, match="No iteration"):
                await fork(made.services, session.id, 2, "forked-2")
            return iteration, old, new, second

    return asyncio.run(run())


def test_a_fork_with_an_edited_reply_goes_on_from_it(tmp_path: Path) -> None:
    draft = Draft("I print two.", (EditedCall("print", {"text": "two"}),))
    iteration, old, new, _ = forked(tmp_path, ["Otherwise."], draft=draft)
    assert [ev.body.text for ev in new if isinstance(ev.body, e.TurnEnded)] == ["Otherwise."]
    outcomes = [ev.body.outcome.text for ev in new if isinstance(ev.body, e.ActionFinished)]
    assert outcomes == ["two"]
    created = new[0].body
    assert isinstance(created, e.SessionCreated)
    assert (created.session, created.forked) == ("forked-1", f"{old[0].body.session}@{iteration.seq}")  # type: ignore[attr-defined]
    same = [n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a.body == b.body and a.id == b.id]
    assert same[:2] == [1, 2] and len(same) >= 4  # all but the first, up to the reply


def test_a_fork_with_another_model_asks_it_in_the_same_context(tmp_path: Path) -> None:
    iteration, _, new, other = forked(tmp_path, ["I am another."], model="scripted:other")
    assert other.contexts[0].messages[:-1] == iteration.context.messages[:-1]
    assert [ev.body.text for ev in new if isinstance(ev.body, e.TurnEnded)] == ["I am another."]


def test_what_another_model_would_have_done(tmp_path: Path) -> None:
    """Asked in a fork: journalled and counted, its reply held, nothing done."""

    async def run() -> None:
        first = ScriptedModel([PRINT, "Done."])
        other = ScriptedModel(
            [Reply("I print.", calls=(Call("print", {"text": "two"}),))], id="scripted:other"
        )
        async with machine(first, other, tmp=tmp_path) as made:
            session = await made.create("go", workspace=tmp_path, definition=TOOLS, model=first.id)
            await until(session, ended)
            before = [ev async for ev in made.journal.read(session.id)]
            iteration, *_ = [i async for i in iterations(made.journal, session.id, made.services.layout)]
            found = await otherwise(made.services, session.id, iteration, other.id, "another")
            [context] = other.contexts
            assert context.messages[:-1] == iteration.context.messages[:-1]
            assert found.diff.splitlines()[-3:] == [
                '-print({"text":"one"})',
                "-time.now({})",
                '+print({"text":"two"})',
            ]
            assert [ev async for ev in made.journal.read(session.id)] == before
            fork = await made.session("another")
            state = await fork.state()
            agent = state.agents["main"]
            assert waiting(agent) is not None and not any(w.started or w.outcome for w in agent.work)
            assert state.usage.total == found.usage.total > 0
            assert "scripted:other" in next(s.title for s in await made.sessions() if s.id == "another")
            written = [ev.body async for ev in made.journal.read("another") if ev.seq >= iteration.seq]
            assert not any(isinstance(body, e.ActionStarted | e.ActionJudged) for body in written)
            await fork.review("main", "accept")  # who likes it goes on
            await until(fork, lambda ev: isinstance(ev.body, e.ActionFinished))

    asyncio.run(run())


def test_another_model_is_not_asked_beyond_the_limits(tmp_path: Path) -> None:
    async def run() -> None:
        first = ScriptedModel(["Done.", "Done again."])
        dear = ScriptedModel(["x"], id="scripted:dear", prices=(1000.0, 1000.0))
        async with machine(first, dear, tmp=tmp_path) as made:
            session = await made.create(
                "go",
                workspace=tmp_path,
                definition=TOOLS,
                model=first.id,
                limits=Limits(money=0.001, seconds=60),
            )
            await until(session, ended)
            [iteration] = [i async for i in iterations(made.journal, session.id, made.services.layout)]
            with pytest.raises(TextorError):
                await otherwise(made.services, session.id, iteration, "scripted:none", "never")
            with pytest.raises(UseError, match=r"was not asked: limit \(money\)"):
                await otherwise(made.services, session.id, iteration, dear.id, "dear")
            assert dear.asked == []
            made.services.clock = lambda: iteration.began + 3600  # the time of the turn is long over
            told = await otherwise(made.services, session.id, iteration, first.id, "later")
            assert told.message.text != ""

    asyncio.run(run())


def test_nothing_of_other_agents_is_done_in_a_held_fork(tmp_path: Path) -> None:
    """A child is asked again while its caller, and another action of its, were under way."""
    done: list[str] = []

    @capability(effects=("write",))
    def note(text: str) -> str:
        """Note something."""
        done.append(text)
        return "noted"

    async def run() -> None:
        helper = tmp_path / ".textor" / "agents" / "helper.md"
        helper.parent.mkdir(parents=True)
        helper.write_text("---\npurpose: helps\nmodel: scripted:helper\n---\nYou help.\n")
        calls = (
            Call("call", {"type": "helper", "name": "ann", "message": "Help."}),
            Call("note", {"text": "of main"}),
        )
        main = ScriptedModel([Reply(calls=calls), "Done."])
        child = ScriptedModel(["Helped."], id="scripted:helper")
        other = ScriptedModel(["Otherwise."], id="scripted:other")
        noting = FunctionProvider([note])
        async with machine(main, child, other, tmp=tmp_path, providers=[noting]) as made:
            definition = replace(TOOLS, capabilities=("*",))
            session = await made.create(
                "go", workspace=tmp_path, definition=definition, model=main.id, policy="yes"
            )
            await until(session, lambda ev: isinstance(ev.body, e.TurnEnded) and ev.body.agent == "main")
            assert done == ["of main"]
            found = [i async for i in iterations(made.journal, session.id, made.services.layout)]
            iteration = next(i for i in found if i.agent == "main/ann")
            told = await otherwise(made.services, session.id, iteration, other.id, "another")
            assert told.diff.splitlines()[-2:] == ["-Helped.", "+Otherwise."]
            fork = await made.session("another")
            state = await fork.state()
            assert (state.agents["main"].level, state.agents["main/ann"].level) == ("pause", "run")
            assert waiting(state.agents["main/ann"]) is not None
            await fork.review("main/ann", "accept")  # its caller gets the reply, and does not go on
            await until(fork, lambda ev: isinstance(ev.body, e.ActionFinished) and ev.seq > state.seq)
            assert done == ["of main"] and len(main.contexts) == 2

    asyncio.run(run())


def test_a_cut_reply_is_replayed_from_the_record(tmp_path: Path) -> None:
    gate = Gate()

    async def scene(session: Session) -> None:
        await gate.reached.wait()
        await session.post("quick")
        await until(session, ended)

    found: Replayed = after(
        tmp_path,
        [Reply("I think", gates={3: gate}), "Yes."],
        TOOLS,
        scene,
        lambda made, s: replay(made.services, s.id),
    )
    assert found.differences == ()
