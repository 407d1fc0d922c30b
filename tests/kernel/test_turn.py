"""A turn from the message to the reply, through the real runner, dialect and journal."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kernel_parts import begin, bodies, ended, kinds, machine, until

from textor import capability
from textor import events as e
from textor.errors import ModelError
from textor.events import Limits
from textor.messages import Text
from textor.testing import Call, Gate, Reply, ScriptedModel


@capability
def double(number: int) -> int:
    """Twice a number."""
    return number * 2


@capability(effects=("write",))
def paint(wall: str) -> str:
    """Paint a wall."""
    return f"{wall} is painted"


def test_a_call_its_outcome_and_the_reply(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel([Reply("Let me see.", calls=(Call("double", {"number": 21}),)), "It is 42."])
        async with machine(model, [double], tmp=tmp_path) as made:
            session = await begin(made, model, "What is 2 x 21?")
            events = await until(session, ended)
            assert kinds(events) == [
                "session.created",
                "agent.created",
                "message.posted",
                "message.delivered",
                "generation.started",
                "generation.finished",
                "action.judged",
                "action.started",
                "action.finished",
                "iteration.observed",
                "generation.started",
                "generation.finished",
                "turn.ended",
            ]
            assert [b.outcome.text for b in bodies(events, e.ActionFinished)] == ["42"]
            assert events[-1].body == e.TurnEnded("main", "replied", "It is 42.")
            second = model.asked[1].context
            assert "42" in str(second.messages[-1].parts)

    asyncio.run(run())


def test_two_calls_in_one_reply_run_at_the_same_time(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    @capability
    async def meet(name: str) -> str:
        """Return when the other is there too."""
        await both.wait()
        return name

    async def run() -> None:
        calls = (Call("meet", {"name": "a"}), Call("meet", {"name": "b"}))
        model = ScriptedModel([Reply(calls=calls), "met"])
        async with machine(model, [meet], tmp=tmp_path) as made:
            events = await until(await begin(made, model, "meet"), ended)
            assert [b.outcome.text for b in bodies(events, e.ActionFinished)] in (["a", "b"], ["b", "a"])

    asyncio.run(run())


def test_the_prompt_grows_only_at_its_end(tmp_path: Path) -> None:
    async def run() -> None:
        replies = [Reply(calls=(Call("double", {"number": n}),)) for n in range(8)]
        model = ScriptedModel([*replies, "done"])
        async with machine(model, [double], tmp=tmp_path) as made:
            await until(await begin(made, model, "count"), ended)
        for earlier, later in zip(model.asked, model.asked[1:], strict=False):
            old, new = earlier.context.messages, later.context.messages
            assert new[: len(old) - 1] == old[:-1]
            status = old[-1].parts[-1]
            assert isinstance(status, Text)
            assert "<status>" in status.text
            assert new[len(old) - 1].parts == old[-1].parts[:-1]

    asyncio.run(run())


def test_a_limit_of_three_iterations_is_exactly_three(tmp_path: Path) -> None:
    async def run() -> None:
        n = iter(range(100))
        model = ScriptedModel(lambda _: Reply("still at it", calls=(Call("double", {"number": next(n)}),)))
        async with machine(model, [double], tmp=tmp_path) as made:
            session = await begin(made, model, "go on for ever", limits=Limits(iterations=3))
            events = await until(session, ended)
            end = events[-1].body
            assert (end.reason, end.detail, end.text) == ("limit", "iterations", "still at it")
            assert len(model.asked) == 3
            # raising the budget and speaking again lets the work go on
            await session.raise_limits(Limits(iterations=5))
            await session.post("go on")
            events = await until(session, ended, after=events[-1].seq)
            assert events[-1].body.detail == "iterations"
            assert len(model.asked) == 8

    asyncio.run(run())


def test_tokens_are_reserved_before_a_request(tmp_path: Path) -> None:
    async def run() -> None:
        n = iter(range(100))
        model = ScriptedModel(lambda _: Reply(calls=(Call("double", {"number": next(n)}),)))
        async with machine(model, [double], tmp=tmp_path) as made:
            session = await begin(made, model, "go", limits=Limits(iterations=50, tokens=600))
            events = await until(session, ended)
            assert events[-1].body.detail == "tokens"
            assert 0 < (await session.state()).usage.total <= 600

    asyncio.run(run())


def test_the_same_again_and_again_is_told_and_then_ends(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel(lambda _: Reply(calls=(Call("double", {"number": 1}),)))
        async with machine(model, [double], tmp=tmp_path) as made:
            events = await until(await begin(made, model, "loop"), ended)
            assert (events[-1].body.reason, events[-1].body.detail) == ("limit", "loop")
            assert len(model.asked) == 4
            assert "exactly this" in str(model.asked[3].context.messages[-1])

    asyncio.run(run())


def test_different_calls_with_the_same_fault_are_no_loop(tmp_path: Path) -> None:
    async def run() -> None:
        # the fault shows only how a value begins
        calls = [Reply(calls=(Call("double", {"number": "x" * 500 + str(n)}),)) for n in range(5)]
        model = ScriptedModel([*calls, "I give up."])
        async with machine(model, [double], tmp=tmp_path) as made:
            events = await until(await begin(made, model, "loop"), ended)
            assert events[-1].body == e.TurnEnded("main", "replied", "I give up.")
            assert "exactly this" not in str([asked.context.messages for asked in model.asked])

    asyncio.run(run())


def test_two_in_alternation_are_a_loop_too(tmp_path: Path) -> None:
    async def run() -> None:
        turn = iter(range(100))
        model = ScriptedModel(lambda _: Reply(calls=(Call("double", {"number": next(turn) % 2}),)))
        async with machine(model, [double], tmp=tmp_path) as made:
            events = await until(await begin(made, model, "loop"), ended)
            assert events[-1].body.detail == "loop"
            assert len(model.asked) == 7

    asyncio.run(run())


def test_an_empty_reply_is_asked_again_once(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel(["", "  \n "])
        async with machine(model, tmp=tmp_path) as made:
            events = await until(await begin(made, model, "hello"), ended)
            assert events[-1].body.reason == "failed"
            assert "did not answer" in events[-1].body.detail
            assert len(model.asked) == 2
        model = ScriptedModel(["", "Hello."])
        async with machine(model, tmp=tmp_path) as made:
            events = await until(await begin(made, model, "hello"), ended)
            assert events[-1].body == e.TurnEnded("main", "replied", "Hello.")

    asyncio.run(run())


def test_a_call_cut_short_never_runs(tmp_path: Path) -> None:
    async def run() -> None:
        cut = Reply(calls=(Call("double", '{"number": 2'),), finish="length")
        model = ScriptedModel([cut, "sorry"])
        async with machine(model, [double], tmp=tmp_path) as made:
            events = await until(await begin(made, model, "hello"), ended)
            assert bodies(events, e.ActionStarted) == []
            assert bodies(events, e.ActionFinished)[0].outcome.state == "failed"
            assert events[-1].body.text == "sorry"

    asyncio.run(run())


def test_what_a_model_cannot_give_ends_the_turn_with_its_sentence(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel([ModelError("The key was refused.", fault="auth"), "I am back."])
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "hello")
            events = await until(session, ended)
            assert (events[-1].body.reason, events[-1].body.detail) == ("failed", "The key was refused.")
            await session.post("again")
            events = await until(session, ended, after=events[-1].seq)
            assert events[-1].body.text == "I am back."

    asyncio.run(run())


def test_the_gate_asks_and_the_first_answer_counts(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel([Reply(calls=(Call("paint", {"wall": "north"}),)), "done"])
        async with machine(model, [paint], tmp=tmp_path) as made:
            session = await begin(made, model, "paint")
            events = await until(session, lambda ev: isinstance(ev.body, e.ActionJudged))
            judged = events[-1].body
            assert (judged.verdict, judged.reason) == ("ask", "it writes files")
            await session.answer(judged.action, True, arguments={"wall": "south"}, digest=judged.digest)
            await session.answer(judged.action, False, reason="too late")
            events = await until(session, ended)
            assert bodies(events, e.ActionFinished)[0].outcome.text == "south is painted"

    asyncio.run(run())


def test_a_no_reaches_the_model_with_its_reason(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel([Reply(calls=(Call("paint", {"wall": "north"}),)), "as you like"])
        async with machine(model, [paint], tmp=tmp_path) as made:
            session = await begin(made, model, "paint")
            events = await until(session, lambda ev: isinstance(ev.body, e.ActionJudged))
            await session.answer(events[-1].body.action, False, reason="I like it white")
            events = await until(session, ended)
            outcome = bodies(events, e.ActionFinished)[0].outcome
            assert (outcome.state, "I like it white" in outcome.text) == ("denied", True)
            assert bodies(events, e.ActionStarted) == []
            assert "I like it white" in str(model.asked[1].context.messages)

    asyncio.run(run())


def test_nobody_to_ask_is_a_denial_with_that_reason(tmp_path: Path) -> None:
    async def run() -> None:
        for policy, state in (("ask", "denied"), ("yes", "done")):
            model = ScriptedModel([Reply(calls=(Call("paint", {"wall": "north"}),)), "ok"])
            async with machine(model, [paint], tmp=tmp_path) as made:
                session = await begin(made, model, "paint", policy=policy, attended=False)
                events = await until(session, ended)
                outcome = bodies(events, e.ActionFinished)[0].outcome
                assert outcome.state == state
                assert ("nobody is here" in outcome.text) == (state == "denied")

    asyncio.run(run())


def test_a_person_who_speaks_cuts_the_generation(tmp_path: Path) -> None:
    async def run() -> None:
        gate = Gate()
        model = ScriptedModel(
            [Reply("I will now delete everything", gates={10: gate}, chunk=1), "I stopped."]
        )
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, "clean up")
            await gate.reached.wait()
            await session.post("no, wait")
            events = await until(session, ended)
            assert model.asked[0].hung_up.is_set()
            first = bodies(events, e.GenerationFinished)[0]
            assert (first.finish, first.message.text) == ("cut", "I will now")
            assert [b.ids for b in bodies(events, e.MessagesDelivered)][1]
            assert "no, wait" in str(model.asked[1].context.messages[-1])
            assert events[-1].body.text == "I stopped."

    asyncio.run(run())


def test_a_reply_in_review_waits_for_a_person(tmp_path: Path) -> None:
    async def run() -> None:
        call = Reply(calls=(Call("double", {"number": 1}),))
        model = ScriptedModel([call, call, "done"])
        async with machine(model, [double], tmp=tmp_path) as made:
            session = await begin(made, model, "go", review=True)
            events = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished))
            await session.review("main", "again", remark="Think once more.")
            events = await until(
                session, lambda ev: isinstance(ev.body, e.GenerationFinished), events[-1].seq
            )
            assert "Think once more." in str(model.asked[1].context.messages[-1])
            assert bodies(events, e.ActionStarted) == []
            await session.review("main", "accept")
            events = await until(
                session, lambda ev: isinstance(ev.body, e.GenerationFinished), events[-1].seq
            )
            assert bodies(events, e.ActionFinished)[0].outcome.text == "2"
            await session.review("main", "accept")
            events = await until(session, ended, events[-1].seq)
            assert events[-1].body.text == "done"

    asyncio.run(run())
