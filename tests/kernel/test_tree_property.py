"""Random trees: every call has one outcome, every question one answer, every message comes once."""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_parts import bodies, machine
from test_tree import write_types

from textor import events as e
from textor.events import Event, Limits
from textor.messages import (
    NO_STOP,
    CallChunk,
    Chunk,
    Context,
    FinishChunk,
    Grammar,
    Stop,
    TextChunk,
    ToolResult,
    Usage,
    UsageChunk,
)

QUESTION = re.compile(r"with the id ([\w./-]+)[\]:]")


class Wanderer:
    """A model that does something else every time, after a random number of turns of the loop."""

    id = "scripted:boss"
    window = 100_000
    native_tools = True
    grammars = False

    def __init__(self, seed: int, breadth: int) -> None:
        self._random = random.Random(seed)
        self._breadth = breadth
        self._replies = Counter[str]()

    def count(self, text: str) -> int:
        return len(text) // 4

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        return 0.0

    async def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        for _ in range(self._random.randrange(12)):
            await asyncio.sleep(0)
        calls = self._calls(context)
        yield TextChunk(f"words {self._random.random()}")
        for index, (name, arguments) in enumerate(calls):
            yield CallChunk(index, f"c{index}", name, arguments)
            await asyncio.sleep(0)
        yield UsageChunk(Usage(10, 10))
        yield FinishChunk("tool_calls" if calls else "stop")

    def _calls(self, context: Context) -> list[tuple[str, str]]:
        """Answer what is open, else with falling eagerness call, ask or just reply."""
        shown = "\n".join(
            part.text
            for message in context.messages
            for part in message.parts
            if isinstance(part, ToolResult) or getattr(part, "text", "")
            if hasattr(part, "text")
        )
        answered = shown.count("answer")
        questions = [key for key in QUESTION.findall(shown) if f"'{key}' was answered" not in shown]
        chosen: list[tuple[str, str]] = []
        if questions and self._random.random() < 0.8:
            chosen.append(("answer", f'{{"id": "{questions[-1]}", "text": "so be it {answered}"}}'))
        eager = 1.0 / (1 + len(context.messages) / 3)
        for _ in range(self._breadth):
            dice = self._random.random()
            if dice < 0.45 * eager:
                name = self._random.choice("abc")
                background = self._random.choice(["true", "false"])
                message = f"task {self._random.random()}"
                task = f'"type": "boss", "name": "{name}", "message": "{message}"'
                chosen.append(("call", f'{{{task}, "background": {background}}}'))
            elif dice < 0.7 * eager:
                chosen.append(("ask", f'{{"question": "why {self._random.random()}?"}}'))
        return chosen


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_random_trees(seed: int, breadth: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(asyncio.wait_for(wander(Path(folder), seed, breadth), 60))


async def wander(folder: Path, seed: int, breadth: int) -> None:
    write_types(folder, ["boss"])
    model = Wanderer(seed, breadth)
    async with machine(model, tmp=folder) as made:  # type: ignore[arg-type]
        session = await made.create(
            "begin", workspace=folder, agent="boss", attended=False, limits=Limits(iterations=6, agents=12)
        )
        host = made.host
        assert host is not None
        while host._active or host._again:  # noqa: ASYNC110 - nothing tells that all is at rest
            await asyncio.sleep(0.001)
        assert not host.faults
        events = [event async for event in made.journal.read(session.id)]
        state = await session.state()
    assert all(agent.turn is None for agent in state.agents.values()), "a turn never ended"
    assert not any(agent.inbox for agent in state.agents.values()), "a message was never delivered"
    assert not state.owed, "a reply never reached its caller"
    assert not state.questions, "a question was never answered"
    check(events)


def check(events: list[Event]) -> None:
    started = {b.action for b in bodies(events, e.ActionStarted)}
    outcomes = Counter(b.action for b in bodies(events, e.ActionFinished))
    assert set(outcomes.values()) <= {1}, "two outcomes"
    assert started <= set(outcomes), "an action without an outcome"
    posted = {event.id for event in events if isinstance(event.body, e.MessagePosted)}
    delivered = Counter(id for b in bodies(events, e.MessagesDelivered) for id in b.ids)
    assert set(delivered) == posted
    assert set(delivered.values()) <= {1}, "a message was delivered twice"
    # every reply that is owed is handed over once: as an outcome or as a message
    handed = Counter(b.outcome.hands for b in bodies(events, e.ActionFinished) if b.outcome.hands)
    handed.update(b.hands for b in bodies(events, e.MessagePosted) if b.hands)
    assert set(handed.values()) <= {1}, "a reply or question was handed over twice"
    asked = {b.key for b in bodies(events, e.Asked)}
    answers = {b.action: b.outcome for b in bodies(events, e.ActionFinished) if b.action in asked}
    assert set(answers) == asked
