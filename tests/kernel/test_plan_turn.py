"""Free lines of a plan: compiled by meaning in a step of their own, asked about when uncertain."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from kernel_parts import bodies, ended, machine, until

from textor import capability
from textor import events as e
from textor.events import Definition
from textor.testing import ScriptedModel

SENT: list[str] = []


@capability(phrases=["set email subject to []"], examples=["make [Lunch] the subject line"])
def subject(text: str) -> str:
    """Set the subject of the email."""
    SENT.append(text)
    return f"subject is {text}"


@capability(phrases=["start email application"], examples=["compose a fresh message"])
def start() -> str:
    """Launch an empty email in the email app."""
    SENT.append("started")
    return "started"


def run_plan(folder: Path, plan: str, *, attended: bool, allow: bool = True) -> list[e.Event]:
    async def run() -> list[e.Event]:
        SENT.clear()
        model = ScriptedModel([plan], native_tools=False)
        definition = Definition("tester", dialects=("plan",), capabilities=("subject", "start"))
        async with machine(model, [subject, start], tmp=folder) as made:
            session = await made.create(
                "go", workspace=folder, definition=definition, model=model.id, attended=attended
            )
            seen: list[e.Event] = []
            while not seen or not ended(seen[-1]):
                seen += await until(
                    session,
                    lambda ev: ended(ev) or getattr(ev.body, "verdict", "") == "ask",
                    seen[-1].seq if seen else 0,
                )
                if isinstance(judged := seen[-1].body, e.ActionJudged):
                    await session.answer(judged.action, allow)
            return seen

    return asyncio.run(run())


def test_exact_lines_need_no_compiling(tmp_path: Path) -> None:
    events = run_plan(tmp_path, "start email application\nset email subject to [Hi]", attended=False)
    assert SENT == ["started", "Hi"]
    assert not bodies(events, e.PlanCompiled)


def test_a_free_line_is_compiled_in_its_place(tmp_path: Path) -> None:
    plan = "start email application\nset the email subject to [Hi]\nset email subject to [Ho]"
    events = run_plan(tmp_path, plan, attended=True)
    [compiled] = bodies(events, e.PlanCompiled)
    assert [a.capability for a in compiled.actions] == ["start", "subject", "subject"]
    assert SENT == ["started", "Hi", "Ho"]
    [line] = compiled.lines
    assert line["candidates"][0]["capability"] == "subject"
    assert json.dumps(line)


def test_what_is_not_certain_is_asked_about_and_denied_when_nobody_is_there(tmp_path: Path) -> None:
    plan = "subject could be [Hi]"
    events = run_plan(tmp_path, plan, attended=True, allow=False)
    [compiled] = bodies(events, e.PlanCompiled)
    assert compiled.lines[0]["state"] in ("weak", "ambiguous"), compiled.lines
    [judged] = bodies(events, e.ActionJudged)
    assert "not certain" in judged.reason
    assert SENT == []
    events = run_plan(tmp_path, plan, attended=False)
    assert [b.outcome.state for b in bodies(events, e.ActionFinished)] == ["denied"]
    assert SENT == []


def test_a_refusal_is_asked_once_more(tmp_path: Path) -> None:
    async def run() -> None:
        model = ScriptedModel(
            ["I am sorry, but I cannot do that.", "start email application"], native_tools=False
        )
        definition = Definition("tester", dialects=("plan",), capabilities=("subject", "start"))
        async with machine(model, [subject, start], tmp=tmp_path) as made:
            session = await made.create(workspace=tmp_path, definition=definition, model=model.id)
            end = await session.ask("go")
            assert (end.reason, len(model.asked)) == ("replied", 2)

    asyncio.run(run())


def test_what_no_capability_is_like_never_runs(tmp_path: Path) -> None:
    for line in ("order a pizza", "do not start email application", "delete all my files"):
        events = run_plan(tmp_path, line, attended=False)
        assert SENT == [], line
        assert [b.outcome.state for b in bodies(events, e.ActionFinished)] in (["failed"], ["denied"]), line
        assert events[-1].body.reason == "failed"
