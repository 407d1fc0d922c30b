"""Textor from Python: what a program of ten lines can do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from textor import Agent, capability
from textor.actions import Action
from textor.errors import UseError
from textor.testing import Call, Reply, ScriptedModel


@capability
def population(city: str) -> int:
    """Inhabitants of a city."""
    return {"Ghent": 265_086}[city]


@capability(effects=("outward",))
def send(text: str) -> str:
    """Send a text."""
    return f"sent {text}"


def test_ten_lines_make_an_agent() -> None:
    model = ScriptedModel(
        [Reply(calls=(Call("population", {"city": "Ghent"}),)), "265,086 people.", "Ghent, as you asked."],
        prices=(1.0, 2.0),
    )
    agent = Agent("You answer questions about cities.", model=model, capabilities=[population])
    reply = asyncio.run(agent("How many people live in Ghent?"))
    assert (reply.text, reply.reason, reply.ok, reply.iterations) == ("265,086 people.", "replied", True, 2)
    assert [a.capability for a in reply.actions] == ["population"]
    assert reply.usage.cost is not None and reply.usage.cost > 0
    # the context is kept between messages, also over another event loop
    reply = asyncio.run(agent("Which city was it?"))
    assert reply.text == "Ghent, as you asked."
    assert [m.role for m in agent.messages] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert agent.usage.total > reply.usage.total > 0


def test_the_limit_is_exact_and_gives_what_was_achieved() -> None:
    n = iter(range(100))
    model = ScriptedModel(lambda _: Reply(f"step {next(n)}", calls=(Call("population", {"city": "Ghent"}),)))

    async def run() -> None:
        async with Agent(model=model, capabilities=[population], iterations=2) as agent:
            reply = await agent("go on for ever")
            assert (reply.reason, reply.detail, reply.iterations, reply.text) == (
                "limit",
                "iterations",
                2,
                "step 1",
            )

    asyncio.run(run())


def test_a_function_that_raises_is_a_failed_outcome() -> None:
    model = ScriptedModel([Reply(calls=(Call("population", {"city": "Atlantis"}),)), "I do not know it."])
    reply = asyncio.run(Agent(model=model, capabilities=[population])("Atlantis?"))
    assert reply.text == "I do not know it."
    assert "KeyError" in str(model.asked[1].context.messages[-1])


def test_the_gate_asks_the_program() -> None:
    asked: list[tuple[str, str]] = []

    async def approve(action: Action, reason: str) -> bool:
        asked.append((action.capability, reason))
        return action.arguments["text"] == "hello"

    script = [
        Reply(calls=(Call("send", {"text": "hello"}),)),
        Reply(calls=(Call("send", {"text": "spam"}),)),
        "done",
    ]
    model = ScriptedModel(script)
    reply = asyncio.run(Agent(model=model, capabilities=[send], approve=approve)("send it"))
    assert reply.text == "done"
    assert asked[0] == ("send", "it sends, publishes or changes something of others")
    assert "sent hello" in str(model.asked[1].context.messages[-1])
    assert "said no" in str(model.asked[2].context.messages[-1])


def test_messages_at_the_same_time_do_not_mix() -> None:
    model = ScriptedModel(lambda context: context.messages[-1].text.split("\n")[0].upper())

    async def run() -> None:
        async with Agent(model=model) as agent:
            replies = await asyncio.gather(*(agent(word) for word in ("one", "two", "three")))
            assert [r.text for r in replies] == ["ONE", "TWO", "THREE"]

    asyncio.run(run())


def test_a_journal_keeps_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"

    async def run(model: ScriptedModel, text: str) -> str:
        async with Agent(model=model, journal=path) as agent:
            return (await agent(text)).text

    assert asyncio.run(run(ScriptedModel(["noted"]), "my name is Ada")) == "noted"
    later = ScriptedModel(["Ada"])
    assert asyncio.run(run(later, "what is my name?")) == "Ada"
    assert "my name is Ada" in str(later.asked[0].context.messages)


def test_a_capability_or_a_folder_that_does_not_exist_is_told_before_anything_runs(tmp_path: Path) -> None:
    async def run(**given: Any) -> None:
        agent = Agent("You.", model=ScriptedModel(["never"]), **given)
        try:
            await agent("hi")
        finally:
            await agent.close()

    with pytest.raises(UseError, match=r"Did you mean files\.read"):
        asyncio.run(run(capabilities=["files.raed"]))
    with pytest.raises(UseError, match="no folder to work in"):
        asyncio.run(run(workspace=tmp_path / "nowhere"))
