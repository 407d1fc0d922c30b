"""Textor from Python: what a program of ten lines can do."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from textor import Agent, capability
from textor.actions import Action
from textor.errors import UseError
from textor.live import Delta
from textor.messages import Media
from textor.steps import Done, Step
from textor.testing import Call, Reply, ScriptedModel

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


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


STEPS = [
    {"thought": "who?", "description": "the person says", "criticism": "none"},
    {"thought": "look", "command": {"name": "population", "arguments": {"city": "Ghent"}}},
    {"thought": "enough", "criticism": "old figures", "response": "265,086 people."},
]


@pytest.mark.parametrize("native", [True, False])
def test_the_thoughts_of_each_step_are_shown_and_kept(native: bool) -> None:
    """After micro-agi-js: thought, description and criticism, also those beside the answer."""
    said: list[Reply | str] = [
        Reply(calls=(Call("iterate", step),)) if native else json.dumps(step) for step in STEPS
    ]
    seen: list[Any] = []
    model = ScriptedModel(said)
    agent = Agent(model=model, capabilities=[population], dialect="step", watch=seen.append)
    reply = asyncio.run(agent("How many people live in Ghent?"))
    assert reply.text == "265,086 people."
    told = [(s.thoughts.thought, s.thoughts.description, s.thoughts.criticism) for s in reply.steps]
    assert told == [("who?", "the person says", "none"), ("look", "", ""), ("enough", "", "old figures")]
    assert [piece for piece in seen if isinstance(piece, Step)] == list(reply.steps)
    # what it thought is what it is shown of itself later
    assert "old figures" in str(agent.messages[-1])


def test_a_stream_gives_text_steps_outcomes_and_the_reply_in_order() -> None:
    model = ScriptedModel([Reply("looking", calls=(Call("population", {"city": "Ghent"}),)), "265,086."])

    async def run() -> list[Any]:
        async with Agent(model=model, capabilities=[population]) as agent:
            return [piece async for piece in agent.stream("Ghent?")]

    pieces = asyncio.run(run())
    kinds = [p.kind if isinstance(p, Delta) else type(p).__name__ for p in pieces]
    order = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]
    assert order == ["text", "action", "argument", "Step", "Done", "text", "Step", "Reply"]
    done = next(p for p in pieces if isinstance(p, Done))
    assert (done.action.capability, done.outcome.state) == ("population", "done")
    assert "".join(p.text for p in pieces if isinstance(p, Delta) and p.kind == "text") == "looking265,086."


def test_a_fault_of_the_one_who_watches_reaches_the_caller_and_the_agent_goes_on() -> None:
    model = ScriptedModel(["one", "two"])
    seen: list[Any] = []

    def watch(piece: Any) -> None:
        seen.append(piece)
        if len(seen) == 1:
            raise ValueError("not now")

    agent = Agent(model=model, watch=watch)
    with pytest.raises(ValueError, match="not now"):
        asyncio.run(agent("hello"))
    assert asyncio.run(agent("again")).ok


@pytest.mark.parametrize(
    ("answer", "told"), [(lambda question: f"{question} Ada", "who? Ada"), (None, "Nobody")]
)
def test_an_agent_asks_back_in_the_middle_of_a_turn(answer: Any, told: str) -> None:
    model = ScriptedModel([Reply(calls=(Call("ask", {"question": "who?"}),)), "done"])
    agent = Agent(model=model, capabilities=["ask"], answer=answer, approve=lambda action, reason: True)
    assert asyncio.run(agent("greet")).text == "done"
    assert told in str(model.asked[1].context.messages[-1])


def test_a_turn_is_stopped_from_beside_it_and_the_next_message_goes_on() -> None:
    begun = asyncio.Event()

    @capability
    async def dig() -> str:
        """Dig for ever."""
        begun.set()
        await asyncio.Event().wait()
        return "water"

    model = ScriptedModel([Reply(calls=(Call("dig", {}),)), "here I am"])

    async def run() -> None:
        async with Agent(model=model, capabilities=[dig]) as agent:
            turn = asyncio.ensure_future(agent("dig"))
            await begun.wait()
            await agent.stop(now=True)
            assert (await turn).reason == "stopped"
            assert (await agent("and now?")).text == "here I am"

    asyncio.run(run())


def test_a_word_reaches_an_agent_at_work() -> None:
    begun, said = asyncio.Event(), asyncio.Event()

    @capability
    async def dig() -> str:
        """Dig until somebody speaks."""
        begun.set()
        await said.wait()
        return "water"

    model = ScriptedModel([Reply(calls=(Call("dig", {}),)), "deeper then", "nothing more"])

    async def run() -> None:
        async with Agent(model=model, capabilities=[dig]) as agent:
            turn = asyncio.ensure_future(agent("dig"))
            await begun.wait()
            await agent.say("deeper")
            said.set()
            await turn

    asyncio.run(run())
    assert "deeper" in " ".join(str(m) for m in model.asked[1].context.messages if m.role != "system")


def test_files_go_along_as_values_and_from_agent_to_agent(tmp_path: Path) -> None:
    """An image is shown, a text is a variable, and `$name` hands both to another agent, which uses
    the same model."""
    picture = tmp_path / "the cup.png"
    picture.write_bytes(PNG)
    (tmp_path / "sizes.csv").write_text("a,b\n1,2\n", "utf-8")
    call = Call("call", {"type": "chat", "name": "seer", "message": "What is $the_cup beside $sizes?"})
    model = ScriptedModel([Reply(calls=(call,)), "a red dot", "It is a red dot."])
    agent = Agent(model=model, capabilities=["call"], workspace=tmp_path)
    reply = asyncio.run(agent("What is it?", files=[picture, tmp_path / "sizes.csv"]))
    assert reply.text == "It is a red dot."
    for asked in model.asked[:2]:
        last = asked.context.messages[-1]
        assert [p.value.media_type for p in last.parts if isinstance(p, Media)] == ["image/png"]
        assert "variable $sizes: text" in str(last)
    with pytest.raises(UseError, match="is no file"):
        asyncio.run(agent("And this?", files=[tmp_path / "nothing.png"]))


def test_an_agent_type_its_prompt_and_a_temperature(tmp_path: Path) -> None:
    folder = tmp_path / ".textor" / "agents"
    folder.mkdir(parents=True)
    text = "---\npurpose: counts\ndialects: [script]\ntemperature: 0.5\n---\nYou count."
    (folder / "counter.md").write_text(text, "utf-8")
    model = ScriptedModel(["three", "four"])
    asyncio.run(Agent("In Dutch.", agent="counter", model=model, workspace=tmp_path)("count"))
    asyncio.run(Agent(agent="counter", model=model, workspace=tmp_path, temperature=0.0)("count"))
    first, second = (asked.context for asked in model.asked)
    assert first.messages[0].text.startswith("You count.\n\nIn Dutch.")
    assert "<|!>" in first.messages[0].text or "<!|" in first.messages[0].text
    assert (first.temperature, second.temperature) == (0.5, 0.0)


def test_titles_and_patterns_of_an_agent_type_call_functions_of_the_program(tmp_path: Path) -> None:
    """AIlice's pattern-action pairs: the pattern in the agent type, the action a typed function."""
    pytest.importorskip("re2")
    folder = tmp_path / ".textor" / "agents"
    folder.mkdir(parents=True)
    text = (
        "---\ndialects: [script]\ntitles: {UPDATE MEMORY: keep}\npatterns:\n"
        "  - {pattern: 'people in (?P<city>\\S+)\\?', capability: population}\n---\nYou count."
    )
    (folder / "counter.md").write_text(text, "utf-8")
    kept: list[str] = []

    @capability(effects=())
    def keep(text: str) -> None:
        """Keep a text."""
        kept.append(text)

    model = ScriptedModel(['people in "Ghent"?', "# UPDATE MEMORY\n265,086 in Ghent\n", "Kept."])
    agent = Agent(agent="counter", model=model, capabilities=[population, keep], workspace=tmp_path)
    assert asyncio.run(agent("count")).text == "Kept."
    assert kept == ["265,086 in Ghent"]
    assert "265086" in str(model.asked[1].context.messages[-1])


def test_messages_are_readable() -> None:
    model = ScriptedModel([Reply(calls=(Call("population", {"city": "Ghent"}),)), "265,086."])
    agent = Agent(model=model, capabilities=[population])
    asyncio.run(agent("Ghent?"))
    assert [str(message) for message in agent.messages] == [
        "user:\nGhent?",
        'assistant:\npopulation({"city": "Ghent"})',
        "tool:\npopulation -> 265086",
        "assistant:\n265,086.",
    ]


def test_a_program_reviews_replies_before_they_run() -> None:
    seen: list[str] = []

    async def review(step: Step) -> bool | str:
        seen.append(step.text)
        return {"send spam": "No spam.", "send hello": True}.get(step.text, False)

    script = [
        Reply("send spam", calls=(Call("send", {"text": "spam"}),)),
        Reply("send hello", calls=(Call("send", {"text": "hello"}),)),
        "all sent",
    ]
    model = ScriptedModel(script)
    agent = Agent(model=model, capabilities=[send], approve=lambda action, reason: True, review=review)
    reply = asyncio.run(agent("send it"))
    assert (reply.reason, seen) == ("stopped", ["send spam", "send hello", "all sent"])
    assert "No spam." in str(model.asked[1].context.messages[-1])
    assert "sent hello" in str(model.asked[2].context.messages[-1])
