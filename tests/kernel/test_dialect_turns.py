"""A turn in each dialect of text: what the model writes runs, and what came of it goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_parts import bodies, machine

from textor import capability
from textor import events as e
from textor.events import Definition, Event
from textor.testing import Call, Reply, ScriptedModel

HELD: list[str] = []
KNOWN = ("keep", "time.now", "notes.set")


@capability
def keep(text: str) -> str:
    """Keep a text."""
    HELD.append(text)
    return f"kept {len(text)} characters"


def turn(
    folder: Path,
    replies: Sequence[str | Reply],
    text: str = "go",
    dialects: Sequence[str] = ("script",),
    **more: Any,
) -> tuple[e.TurnEnded, list[Event], ScriptedModel]:
    """One turn of an agent of these dialects; (its end, all events, the model)."""

    async def run() -> tuple[e.TurnEnded, list[Event], ScriptedModel]:
        HELD.clear()
        model = ScriptedModel(replies, native_tools="tools" in dialects)
        definition = Definition("tester", dialects=tuple(dialects), capabilities=KNOWN, **more)
        async with machine(model, [keep], tmp=folder) as made:
            session = await made.create(
                workspace=folder, definition=definition, model=model.id, policy="yes", attended=False
            )
            end = await session.ask(text)
            return end, [ev async for ev in made.journal.read(session.id)], model

    return asyncio.run(run())


def test_script_defines_and_uses_variables_and_code_blocks(tmp_path: Path) -> None:
    message = 'Keep this:\n```python\nprint("a\\nb")\n```'
    replies = [
        'greeting := <!|"hello"|!>\n!KEEP<!|greeting + " world"|!>',
        "!KEEP<!|code_python_1|!>",
        "!KEEP<!|last|!>",
        "All is kept.",
    ]
    end, _, model = turn(tmp_path, replies, message)
    assert end.text == "All is kept."
    assert ["hello world", 'print("a\\nb")\n', f"kept {len(HELD[1])} characters"] == HELD
    assert "variable $greeting" in str(model.asked[1].context.messages[-1])
    assert "$code_python_1" in str(model.asked[0].context.messages[-1])


def test_script_section_titles_and_a_near_miss(tmp_path: Path) -> None:
    replies = [
        'KEEP<!|"mark missing"|!>',
        "# UPDATE MEMORY\nthe cat eats at nine\n",
        "Done.",
    ]
    end, events, model = turn(tmp_path, replies, titles={"UPDATE MEMORY": "keep"})
    assert end.text == "Done."
    assert [h.strip() for h in HELD] == ["the cat eats at nine"]
    assert "!KEEP" in str(model.asked[1].context.messages[-1])
    assert len(bodies(events, e.ActionStarted)) == 1


def test_a_section_is_a_note_under_its_title(tmp_path: Path) -> None:
    """AIlice's UPDATE MEMORY with what is in the box: `notes.set` needs a key and a text."""
    replies = ["## WHAT I KNOW\nthe cat eats at nine\n", "Done."]
    end, _, model = turn(tmp_path, replies, titles={"WHAT I KNOW": "notes.set"})
    assert end.text == "Done."
    assert "note WHAT I KNOW: the cat eats at nine" in str(model.asked[1].context.messages[-1])


def test_xml_runs_the_last_block_and_shows_results_in_it(tmp_path: Path) -> None:
    replies = [
        '<actions><keep text="wrong"/></actions>\nno wait\n'
        "<actions><keep><text><![CDATA[a < b & c]]></text></keep></actions>",
        "Kept.",
    ]
    end, _, model = turn(tmp_path, replies, dialects=["xml"])
    assert (end.text, HELD) == ("Kept.", ["a < b & c"])
    assert "kept 9 characters" in str(model.asked[1].context.messages[-1])


def test_step_thinks_acts_and_answers(tmp_path: Path) -> None:
    replies = [
        '{"thought": "hm", "description": "let me think", "criticism": "none"}',
        '{"thought": "keep", "description": "d", "criticism": "c", '
        '"command": {"name": "keep", "arguments": {"text": "x"}}}',
        '{"thought": "done", "description": "d", "criticism": "c", "response": "It is kept."}',
    ]
    end, events, _ = turn(tmp_path, replies, dialects=["step"])
    assert (end.text, HELD) == ("It is kept.", ["x"])
    assert [b.think for b in bodies(events, e.GenerationFinished)] == [True, False, False]


def test_step_that_only_thinks_is_bounded(tmp_path: Path) -> None:
    thought = '{"thought": "hm", "description": "d", "criticism": "c"}'
    end, _, model = turn(tmp_path, [thought] * 20, dialects=["step"])
    assert end.reason == "failed"
    assert len(model.asked) < 10


def test_native_calls_and_text_in_one_reply(tmp_path: Path) -> None:
    both = Reply('!KEEP<!|"from text"|!>', calls=(Call("keep", {"text": "from a call"}),))
    end, events, model = turn(tmp_path, [both, "Both."], dialects=["tools", "script"])
    assert end.text == "Both."
    assert sorted(HELD) == ["from a call", "from text"]
    roles = [m.role for m in model.asked[1].context.messages]
    assert roles[-3:] == ["assistant", "tool", "user"]
    assert len({b.action for b in bodies(events, e.ActionFinished)}) == 2


def test_plan_lines_run_one_after_the_other_and_are_the_reply(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first\n")

    async def run() -> e.TurnEnded:
        model = ScriptedModel(["1. list files in [.]\n2. read file [a.txt]"], native_tools=False)
        definition = Definition("tester", dialects=("plan",), capabilities=("files.*",))
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create(workspace=tmp_path, definition=definition, model=model.id)
            return await session.ask("look")

    end = asyncio.run(run())
    assert end.reason == "replied"
    assert "a.txt" in end.text
    assert "first" in end.text
