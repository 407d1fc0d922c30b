"""What a prompt of the layout `regenerated` is reckoned to cost: what is sent, not what was said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from sia_parts import ended, machine, until

from textor import events as e
from textor.events import Definition, Limits
from textor.kernel.budget import REPLY_TOKENS
from textor.messages import Usage
from textor.testing import Gate, Reply, ScriptedModel

XML = Definition("t", dialects=("xml",), layout="regenerated", capabilities=("print",), prompt="P")
COUNT = 120


def turn(tmp: Path, *, tokens: int | None = None, reported: bool = True) -> list[e.Event]:
    """A turn of 120 iterations of 2 kB, with a budget of tokens for the session."""
    acts = (f'{"z" * 1000}\n<actions><print text="{n} {"y" * 1000}"/></actions>' for n in range(COUNT))
    replies = [Reply(text, chunk=0, usage_sent=reported) for text in acts]

    async def run() -> list[e.Event]:
        model = ScriptedModel([*replies, "Done."], native_tools=False)
        async with machine(model, tmp=tmp) as made:
            session = await made.create(
                "go", workspace=tmp, definition=XML, model=model.id, limits=Limits(tokens=tokens)
            )
            return await until(session, ended)

    return asyncio.run(run())


def used(events: list[e.Event]) -> list[Usage]:
    return [ev.body.usage for ev in events if isinstance(ev.body, e.GenerationFinished)]


@pytest.mark.parametrize("reported", [True, False])
def test_a_budget_that_is_enough_does_not_end_a_long_session(tmp_path: Path, reported: bool) -> None:
    free = turn(tmp_path, reported=reported)
    total = sum(usage.total for usage in used(free))
    events = turn(tmp_path, tokens=total + REPLY_TOKENS, reported=reported)
    assert events[-1].body.reason == "replied"  # type: ignore[attr-defined]
    assert len(used(events)) == COUNT + 1


def test_what_is_set_aside_is_near_what_is_used(tmp_path: Path) -> None:
    events = turn(tmp_path)
    aside = [ev.body.reserved.input for ev in events if isinstance(ev.body, e.GenerationStarted)]
    for expected, usage in list(zip(aside, used(events), strict=True))[2:-1]:
        assert 0.9 * usage.input <= expected <= 1.1 * usage.input


def test_a_reply_that_was_cut_counts_what_was_sent_for_it(tmp_path: Path) -> None:
    """Nothing is reported of it; the dialogue, long by then, was not sent."""
    gate = Gate()
    first = [f'<actions><print text="{n} {"y" * 1000}"/></actions>' for n in range(60)]

    async def run() -> list[e.Event]:
        model = ScriptedModel([*first, Reply("Hm", gates={1: gate}), "Done."], native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("go", workspace=tmp_path, definition=XML, model=model.id)
            await gate.reached.wait()
            await session.post("quick")
            return await until(session, ended)

    *_, before, cut, _ = used(asyncio.run(run()))
    assert cut.estimated and abs(cut.input - before.input) < before.input


def test_in_the_stable_layout_the_dialogue_counts(tmp_path: Path) -> None:
    stable = replace(XML, layout="stable")

    async def run() -> list[e.Event]:
        acts = [f'<actions><print text="{n} {"y" * 1000}"/></actions>' for n in range(20)]
        model = ScriptedModel([*acts, "Done."], native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("go", workspace=tmp_path, definition=stable, model=model.id)
            return await until(session, ended)

    events = asyncio.run(run())
    aside = [ev.body.reserved.input for ev in events if isinstance(ev.body, e.GenerationStarted)]
    for expected, usage in list(zip(aside, used(events), strict=True))[2:]:
        assert 0.8 * usage.input <= expected <= 1.2 * usage.input
