"""What a model is shown: summaries, big messages, other models, a disk that is full."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from kernel_parts import begin, bodies, ended, machine, until
from msgspec.structs import replace

from textor import events as e
from textor.errors import JournalError
from textor.events import Definition, Event, Limits
from textor.journal.memory import MemoryJournal
from textor.kernel import summary
from textor.kernel.state import AgentState
from textor.messages import Message, ToolCall, ToolResult, said
from textor.testing import ScriptedModel


def test_a_dialogue_that_outgrows_its_room_is_summarised(tmp_path: Path) -> None:
    async def run() -> None:
        def script(context: object) -> str:
            last = model.asked[-1].context.messages[-1].text
            return "They greeted." if last.startswith("Summarise") else "word " * 40

        model = ScriptedModel(script, window=600)
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, capabilities=["time.now"])
            for n in range(6):
                end = await session.ask(f"message {n} " + "filler " * 20)
                assert end.reason == "replied"
            events = await until(session, ended)
            events = [ev async for ev in made.journal.read(session.id)]
            summaries = bodies(events, e.Summarised)
            assert summaries
            assert "They greeted." in summaries[0].message.text
            # nothing else left the dialogue: the present one is the summary and what came after it
            state = await session.state()
            assert state.agents["main"].dialogue[0].text.startswith("[Summary")
            asked = model.asked[-1].context.messages
            assert sum(len(m.text) for m in asked) < 600 * 4

    asyncio.run(run())


def test_a_summary_is_within_the_budget_like_any_request(tmp_path: Path) -> None:
    async def run() -> None:
        def script(context: object) -> str:
            last = model.asked[-1].context.messages[-1].text
            return "They spoke." if last.startswith("Summarise") else "word " * 40

        model = ScriptedModel(script, window=600)
        async with machine(model, tmp=tmp_path) as made:
            limits = Limits(iterations=50, tokens=2500)
            session = await begin(made, model, capabilities=["time.now"], limits=limits)
            ends = [await session.ask(f"message {n} " + "filler " * 20) for n in range(20)]
            assert (ends[-1].reason, ends[-1].detail) == ("limit", "tokens")
            assert (await session.state()).usage.total <= 2500
            asked = len(model.asked)
            await session.ask("once more")
            assert len(model.asked) == asked  # neither a reply nor a summary was asked for

    asyncio.run(run())


def test_a_summary_that_is_not_shorter_ends_the_turn_after_two(tmp_path: Path) -> None:
    async def run() -> None:
        def script(context: object) -> str:
            last = model.asked[-1].context.messages[-1].text
            return "much longer than before " * 400 if last.startswith("Summarise") else "word " * 200

        model = ScriptedModel(script, window=600)
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model, capabilities=["time.now"])
            reasons = []
            for n in range(4):
                end = await session.ask(f"message {n}")
                reasons.append((end.reason, end.detail))
            assert ("limit", "context") in reasons
            events = [ev async for ev in made.journal.read(session.id)]
            assert len(bodies(events, e.SummaryFailed)) >= 2
            assert not bodies(events, e.Summarised)

    asyncio.run(run())


def test_a_paste_of_thousands_of_lines_is_kept_whole_and_shown_in_part(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel(["I see a long text."])
        paste = "".join(f"line {n} of a long log\n" for n in range(4000))
        async with machine(model, tmp=tmp_path) as made:
            session = await begin(made, model)
            await session.ask(paste)
            sent = "".join(m.text for m in model.asked[0].context.messages)
            assert "line 0 of" in sent
            assert "line 3999 of" in sent
            assert len(sent) < 20_000
            state = await session.state()
            [value] = state.values.values()
            assert made.journal.blobs.get(value.blob or "").decode() == paste
            assert value.handle in sent

    asyncio.run(run())


def test_a_conversation_goes_on_with_another_model(tmp_path: Path) -> None:
    async def run() -> None:
        first = ScriptedModel(["one"])
        second = ScriptedModel(["two"], id="scripted:other")
        async with machine(first, tmp=tmp_path) as made:
            made._models.add(second)
            session = await begin(made, first)
            await session.ask("hello")
            await session.change_model("scripted:other")
            assert (await session.ask("and now?")).text == "two"
            assert "one" in str(second.asked[0].context.messages)

    asyncio.run(run())


class Full(MemoryJournal):
    """A journal whose disk is full while `full` is set."""

    full = False

    async def append(self, session: str, events: Sequence[Event], *, epoch: int | None) -> list[Event]:
        if self.full and epoch is not None:
            raise JournalError("The disk is full.")
        return await super().append(session, events, epoch=epoch)


def test_a_full_disk_stops_the_session_with_that_reason_and_nothing_is_torn(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel(["lost", "kept"])
        journal = Full()
        async with machine(model, tmp=tmp_path, journal=journal) as made:
            session = await begin(made, model)
            await until(session, lambda ev: ev.kind == "agent.created")
            shown = made.services.hub.subscribe(session.id)
            journal.full = True
            await session.post("hello")
            while (delta := await asyncio.wait_for(shown.get(), 20)).kind != "fault":
                pass
            assert delta.text == "The disk is full."
            assert made.host is not None
            assert made.host.faults[session.id] == "The disk is full."
            with pytest.raises(JournalError, match=r"The disk is full\."):
                await session.ask("and now?")
            journal.full = False
            end = await session.ask("once more")
            assert end.text in ("lost", "kept")
            events = [ev async for ev in journal.read(session.id)]
            assert [ev.seq for ev in events] == list(range(1, len(events) + 1))
            assert len(bodies(events, e.MessagesDelivered)) == 1

    asyncio.run(run())


def test_the_older_half_is_cut_behind_a_long_call_and_its_result() -> None:
    """Half is reached within the pair: it goes as a whole, else nothing shorter could stand for it."""
    call = Message("assistant", (ToolCall("1", "print", "x" * 1000),))
    result = Message("tool", (ToolResult("1", "print", "x" * 1000),))
    dialogue = (said("user", "a"), call, result, said("assistant", "b"), said("user", "c"))
    agent = AgentState("main", Definition("t"), "m", dialogue=dialogue)
    assert summary.oldest(agent) == 3
    assert summary.oldest(replace(agent, dialogue=dialogue[:3])) == 1
