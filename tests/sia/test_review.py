"""Edited replies: read by the agent's own dialect, and what runs is what stands in the dialogue."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sia_parts import ended, machine, until

from textor import events as e
from textor.errors import UseError
from textor.events import Definition
from textor.messages import ToolCall
from textor.record.review import Draft, EditedCall, draft_of, parse_draft
from textor.testing import Call, Reply, ScriptedModel

PRINT = Reply("I print.", calls=(Call("print", {"text": "one"}),))
XML = 'I print.\n<actions><print text="one"/></actions>'


def play(
    tmp: Path, reply: str | Reply, dialect: str, *drafts: Draft
) -> tuple[list[e.Event], list[str], Draft]:
    """A turn whose first reply is edited. The events, the faults of drafts that were refused, and
    the first reply as a draft."""

    async def run() -> tuple[list[e.Event], list[str], Draft]:
        model = ScriptedModel([reply, "Done."], native_tools=dialect == "tools")
        definition = Definition("t", dialects=(dialect,), capabilities=("print", "time.now"), review=True)
        refused: list[str] = []
        async with machine(model, tmp=tmp) as made:
            session = await made.create("go", workspace=tmp, definition=definition, model=model.id)
            seen = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished))
            first = draft_of(seen[-1].body)  # type: ignore[arg-type]
            for draft in drafts:
                try:
                    await session.edit_reply("main", draft)
                except UseError as error:
                    refused.append(str(error))
            after = len(seen)
            await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished), after)
            await session.review("main", "accept")
            await until(session, ended)
            events = [ev async for ev in made.journal.read(session.id)]
            with pytest.raises(UseError, match="No reply"):
                await session.edit_reply("main", Draft("late"))
            return events, refused, first

    return asyncio.run(run())


def test_a_native_call_is_edited_and_keeps_its_id(tmp_path: Path) -> None:
    calls = (EditedCall("print", {"text": "two"}), EditedCall("time.now"))
    events, refused, first = play(tmp_path, PRINT, "tools", Draft("I print twice.", calls))
    assert (first, refused) == (Draft("I print.", (EditedCall("print", {"text": "one"}),)), [])
    raw = next(ev.body for ev in events if isinstance(ev.body, e.GenerationFinished))
    review = next(ev.body for ev in events if isinstance(ev.body, e.ReplyReviewed))
    assert review.message is not None
    sent = [part for part in review.message.parts if isinstance(part, ToolCall)]
    before = [part for part in raw.message.parts if isinstance(part, ToolCall)]
    assert sent[0].call_id == before[0].call_id and len({s.call_id for s in sent}) == 2
    outcomes = [ev.body.outcome.text for ev in events if isinstance(ev.body, e.ActionFinished)]
    assert outcomes[0] == "two" and len(outcomes) == 2


def test_text_is_edited_in_the_dialect_and_faults_are_told(tmp_path: Path) -> None:
    bad = Draft("<actions><prnt text='x'/></actions>")
    good = Draft('Better.\n<actions><print text="a &lt; b"/></actions>')
    events, refused, first = play(
        tmp_path, XML, "xml", bad, Draft(""), Draft("x", (EditedCall("print"),)), good
    )
    assert first == Draft(XML)
    assert len(refused) == 3
    assert "prnt" in refused[0] and "empty" in refused[1] and "in the text" in refused[2]
    assert [ev.body.outcome.text for ev in events if isinstance(ev.body, e.ActionFinished)] == ["a < b"]


def test_an_action_becomes_an_answer(tmp_path: Path) -> None:
    async def run() -> str:
        model = ScriptedModel([PRINT])
        definition = Definition("t", capabilities=("print",), review=True)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("go", workspace=tmp_path, definition=definition, model=model.id)
            await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished))
            await session.edit_reply("main", Draft("Rather not."))
            return (await until(session, ended))[-1].body.text  # type: ignore[attr-defined,no-any-return]

    assert asyncio.run(run()) == "Rather not."


def test_a_draft_that_cannot_be_read_is_told() -> None:
    for text in ("", "{", '{"text": 1}', '{"text": "x", "call": []}'):
        with pytest.raises(UseError, match="cannot be read"):
            parse_draft(text)
