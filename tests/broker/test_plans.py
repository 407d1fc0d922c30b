"""Plans with the person in the loop, over real sessions and real apps; cases R15 to R17."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from broker_parts import begun, foreign, http_form, launch_form, machine, note_app, run_all

from textor import events as e
from textor.broker.plans import Plans
from textor.broker.prompt import INSTRUCTION, shown_apps, without_facts
from textor.broker.view import plan_json
from textor.errors import UseError
from textor.testing import ScriptedModel


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))


def states(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [(line["state"], line["capability"]) for line in plan["lines"]]


def runs(plan: dict[str, Any]) -> list[str]:
    return [line["run"]["state"] for line in plan["lines"]]


WRITTEN = """\
Sure! Here are the actions:
1. start note application
2) write note [milk, 2 litres]
- Write Note [bread]
read note"""


def test_a_request_becomes_a_list_that_runs_in_order(tmp_path: Path) -> None:
    """R15: numbers and bullets are stripped, the preamble is no action."""

    async def test() -> None:
        async with machine([WRITTEN], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "note milk and bread", tmp_path)
            plan = await plan_json(plans, id)
            assert states(plan) == [
                ("note", ""),
                ("match", "note.start"),
                ("match", "note.write"),
                ("match", "note.write"),
                ("match", "note.read"),
            ]
            assert (plan["request"], plan["status"], plan["original"]) == (
                "note milk and bread",
                "ready",
                WRITTEN,
            )
            assert plan["lines"][2]["arguments"] == {"text": "milk, 2 litres"}
            assert plan["lines"][2]["parameters"] == [{"name": "text", "takes": "a string", "required": True}]
            assert runs(plan) == ["", "", "", "", ""]  # nothing runs by itself

            plan = await run_all(plans, id)
            assert runs(plan) == ["", "done", "done", "done", "done"]
            assert plan["lines"][4]["run"]["text"] == "milk, 2 litres\nbread"
            told = [entry["text"] for entry in plan["lines"][2]["run"]["log"]]
            assert told == ["to be run: write note [milk, 2 litres]", "started", "done: 1 lines"]
            assert plan["status"] == "ready"
            assert await plans.run(id) == []  # all was run

            model = made._models("scripted:model")
            assert isinstance(model, ScriptedModel)
            assert len(model.asked) == 1  # the lines themselves cost nothing
            system, user = model.contexts[0].messages[0].text, model.contexts[0].messages[-1].text
            assert system.startswith(INSTRUCTION)
            assert "set cell [row] to [text]" in system
            assert "Current Date = " in user
            assert user.endswith("\n\nnote milk and bread")
            assert without_facts(user) == "note milk and bread"

    asyncio.run(test())


def test_facts_of_the_person_stand_before_the_request_each_on_one_line(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(["read note"], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            more = {"User's Name": "Anna\nBerg", "Current Date": "", "Home = x": "Oslo"}
            made.config.apps.facts.update(more)
            id = await begun(made, "a = b\n\nwhat is in it?", tmp_path)
            (created,) = [
                each async for each in made.journal.read(id) if isinstance(each.body, e.MessagePosted)
            ]
            told = "User's Name = Anna Berg\nHome x = Oslo\n\na = b\n\nwhat is in it?"
            assert created.body.text == told
            assert (await plan_json(made.broker.plans, id))["request"] == "a = b\n\nwhat is in it?"

    asyncio.run(test())


def test_examples_stand_as_earlier_turns(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(["read note"], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            book = made.broker.apps.book
            from textor.broker.forms import read_example

            for question, profile in (("note that milk is needed", ""), ("only at work", "work")):
                told = {
                    "AppClass": "note",
                    "Question": question,
                    "Answers": ["write note [milk]"],
                    "Profile": profile,
                }
                await made.broker.apps.store.write(lambda told=told: book.teach(read_example(told)))
            await begun(made, "what is in it?", tmp_path)
            model = made._models("scripted:model")
            assert isinstance(model, ScriptedModel)
            messages = model.contexts[0].messages
            assert [(m.role, m.text) for m in messages[1:3]] == [
                ("user", "note that milk is needed"),
                ("assistant", "write note [milk]"),
            ]
            assert len(messages) == 4

    asyncio.run(test())


def test_what_must_not_run_does_not(tmp_path: Path) -> None:
    """R16 and R17: a denial, something that no app can do, brackets of all kinds."""
    lines = [
        "do not start note application",
        "delete all my files",
        "set cell [0] to [[x [y] z]]",
        "write note [never closed",
        "set cell [first] to [b]",
        "write note [a] and [b]",
        "write note [x [y] z]",
    ]

    async def test() -> None:
        async with machine(["\n".join(lines)], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "try it", tmp_path)
            found = {line["text"]: line for line in (await plan_json(plans, id))["lines"]}
            ready = [text for text in lines if found[text]["ready"]]
            assert ready == [lines[2], lines[6]]
            assert found[lines[2]]["arguments"] == {"row": 0, "text": "[x [y] z]"}
            assert found[lines[6]]["arguments"] == {"text": "x [y] z"}
            assert "never closed" in found[lines[3]]["fault"]
            assert "row: should be an integer" in found[lines[4]]["fault"]
            with pytest.raises(UseError, match="“delete all my files” cannot be run"):
                await plans.run(id, [found[lines[1]]["id"]])
            plan = await run_all(plans, id)
            assert set(runs(plan)) == {""}
            assert "“do not start note application” needs you" in plan["halted"]

    asyncio.run(test())


def test_a_person_corrects_the_list_and_the_original_is_kept(tmp_path: Path) -> None:
    async def test() -> None:
        reply = "start note application\nwrite note [milk]\nread note"
        async with machine([reply], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "note milk", tmp_path)
            before = [line["id"] for line in (await plan_json(plans, id))["lines"]]
            await plans.edit(
                id, "start note application\nwrite note [oat milk]\n\n2. write note [tea]\nread note"
            )
            plan = await plan_json(plans, id)
            ids = [line["id"] for line in plan["lines"]]
            assert [ids[0], ids[1], ids[3]] == before  # what stays keeps its name
            await plans.edit_line(id, ids[2], "write note [green\ntea]")
            await plans.skip(id, ids[1])
            plan = await run_all(plans, id)
            assert runs(plan) == ["done", "", "done", "done"]
            assert plan["lines"][3]["run"]["text"] == "green tea"
            assert plan["original"] == reply
            reviewed = [
                event.body async for event in made.journal.read(id) if isinstance(event.body, e.ReplyReviewed)
            ]
            assert [r.message.text for r in reviewed if r.message] == [plan["text"]]

            await plans.edit_line(id, ids[1], "")  # a line is taken away, one is typed by hand and run alone
            await plans.edit(id, plan["text"] + "\nwrite note [by hand]")
            last = (await plan_json(plans, id))["lines"][-1]["id"]
            plan = await run_all(plans, id, [last])
            assert plan["lines"][-1]["run"]["text"] == "2 lines"

    asyncio.run(test())


def test_two_apps_with_the_same_phrase_are_told_apart_by_a_person(tmp_path: Path) -> None:
    path = foreign(tmp_path)
    forms = [
        launch_form(path, "email"),
        http_form("set subject to []", "subject", "email"),
        launch_form(path, "post"),
        http_form("set subject to []", "subject", "post"),
    ]

    async def test() -> None:
        async with machine(["start post application\nset subject to [x]"], tmp=tmp_path, forms=forms) as made:
            plans = made.broker.plans
            id = await begun(made, "subject", tmp_path)
            line = (await plan_json(plans, id))["lines"][1]
            assert (line["state"], line["ready"]) == ("ambiguous", False)
            assert [c["capability"] for c in line["candidates"]] == ["email.set_subject", "post.set_subject"]
            with pytest.raises(UseError, match=r"No app offers 'post\.set' here"):
                await plans.choose(id, line["id"], "post.set")
            await plans.choose(id, line["id"], "post.set_subject")
            plan = await run_all(plans, id)
            assert runs(plan) == ["done", "done"]
            assert plan["lines"][1]["capability"] == "post.set_subject"

    asyncio.run(test())


def test_a_choice_has_to_fit_the_brackets(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine(["put down that milk is short"], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "x", tmp_path)
            (line,) = (await plan_json(plans, id))["lines"]
            await plans.choose(id, line["id"], "note.write")
            (line,) = (await plan_json(plans, id))["lines"]
            assert (line["ready"], line["fault"]) == (
                False,
                "The line has 0 texts in brackets. Write it as “write note [text]”.",
            )
            await plans.choose(id, line["id"], "")
            with pytest.raises(UseError, match=r"The plan has no line 'l9'\. There is: l1\."):
                await plans.choose(id, "l9", "note.write")

    asyncio.run(test())


def test_a_failed_line_stops_the_queue_unless_told_otherwise(tmp_path: Path) -> None:
    reply = "start note application\nset cell [4] to [x]\nwrite note [later]"

    async def test() -> None:
        async with machine([reply], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "x", tmp_path)
            plan = await run_all(plans, id)
            assert runs(plan) == ["done", "failed", ""]
            assert "IndexError" in plan["lines"][1]["run"]["text"]
            assert plan["halted"] == "“set cell [4] to [x]” failed"
            plan = await run_all(plans, id, go_on=True)
            assert runs(plan) == ["done", "failed", "done"]
            assert len([x for x in plan["lines"][1]["run"]["log"] if x["text"] == "started"]) == 2

    asyncio.run(test())


def test_sending_asks_at_the_gate_and_a_stop_ends_the_queue(tmp_path: Path) -> None:
    reply = "start note application\npublish note\nwrite note [after]"

    async def test() -> None:
        async with machine([reply], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "x", tmp_path)
            publish = (await plan_json(plans, id))["lines"][1]["id"]
            await plans.run(id)
            await asked(plans, id, publish)
            plan = await plan_json(plans, id)
            assert runs(plan) == ["done", "asked", "queued"]
            assert "sends, publishes or changes" in plan["lines"][1]["run"]["reason"]
            assert plan["status"] == "running"
            with pytest.raises(UseError, match="This line runs just now"):
                await plans.edit_line(id, publish, "read note")
            await plans.answer(id, publish, False, "not yet")
            await plans.finished(id)
            plan = await plan_json(plans, id)
            assert runs(plan) == ["done", "denied", ""]

            await plans.run(id, [publish])
            await asked(plans, id, publish)
            await plans.answer(id, publish, True)
            await plans.finished(id)
            assert runs(await plan_json(plans, id)) == ["done", "done", ""]

            await plans.edit_line(id, publish, "publish note now, please")
            await plans.choose(id, publish, "note.publish")
            await plans.run(id, [publish])
            await asked(plans, id, publish)
            await plans.stop(id)
            await plans.finished(id)
            plan = await plan_json(plans, id)
            assert runs(plan) == ["done", "cancelled", ""]
            assert plan["halted"] == "you stopped it"

    asyncio.run(test())


def test_unattended_the_unclear_lines_go_back_to_the_model_once(tmp_path: Path) -> None:
    replies = [
        "start note application\nwrite down [milk] somewhere for me please",
        "start note application\nwrite note [milk]",
    ]

    async def test() -> None:
        async with machine(replies, tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "note milk", tmp_path, attended=False)
            assert (await plan_json(plans, id))["lines"][1]["ready"] is False
            await plans.clear_up(id)
            plan = await run_all(plans, id)
            assert runs(plan) == ["done", "done"]
            model = made._models("scripted:model")
            assert isinstance(model, ScriptedModel)
            told = model.contexts[1].messages[-1].text
            assert "* write down [milk] somewhere for me please" in told
            assert "write note [text]" in told
            await plans.clear_up(id)  # once is enough
            assert len(model.asked) == 2

    asyncio.run(test())


def test_a_plan_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    async def test() -> None:
        async with machine([], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            plans = made.broker.plans
            id = await begun(made, "x", tmp_path)
            plan = await plan_json(plans, id)
            assert plan["status"] == "failed"
            assert "has no reply for generation 1" in plan["detail"]
            with pytest.raises(UseError, match="The request is empty"):
                await plans.create(" ", workspace=tmp_path)
            with pytest.raises(UseError, match="There is no profile 'wrok'"):
                await plans.create("x", workspace=tmp_path, profile="wrok")
            with pytest.raises(UseError, match="There is no plan 'plan-none'"):
                await plans.draft("plan-none")

    asyncio.run(test())


def test_after_a_restart_what_ran_is_known_and_the_rest_waits(tmp_path: Path) -> None:
    reply = "start note application\nwrite note [a]\npublish note\nwrite note [b]"

    async def test() -> None:
        async with machine([reply], tmp=tmp_path, forms=note_app(tmp_path)) as made:
            broker = made.broker
            id = await begun(made, "x", tmp_path)
            publish = (await plan_json(broker.plans, id))["lines"][2]["id"]
            await broker.plans.run(id)
            await asked(broker.plans, id, publish)
            await broker.plans.close()  # the queue's process ends

            again = Plans(
                made.services, broker.apps.book, broker.compiler, broker.plans._make, lambda m: m, {}
            )
            assert runs(await plan_json(again, id)) == ["done", "done", "asked", ""]
            await again.answer(id, publish, True)
            await again._ended(id, f"{publish}-1")
            assert runs(await run_all(again, id)) == ["done", "done", "done", "done"]

    asyncio.run(test())


def test_only_the_apps_of_the_profile_are_shown_and_compiled_against(tmp_path: Path) -> None:
    path = foreign(tmp_path)
    forms = [*note_app(tmp_path), launch_form(path), http_form("set email subject to []", "subject")]

    async def test() -> None:
        async with machine(["set email subject to [x]"], tmp=tmp_path, forms=forms) as made:
            apps = made.broker.apps
            await apps.store.write(lambda: apps.book.set_profile("notes", ["note"]))
            await apps.store.write(lambda: apps.book.activate("notes"))
            id = await begun(made, "x", tmp_path)
            (line,) = (await plan_json(made.broker.plans, id))["lines"]
            assert line["ready"] is False
            assert "email.set_subject" not in [c["capability"] for c in line["candidates"]]

    asyncio.run(test())


def test_of_many_apps_those_that_the_request_speaks_of_are_shown(tmp_path: Path) -> None:
    from broker_parts import fill

    from textor.broker.book import Book

    book, path = Book(), foreign(tmp_path)
    for number in range(60):
        name = "telescope" if number == 40 else f"tool{number}"
        fill(
            book,
            [
                launch_form(path, name),
                *(http_form(f"turn {name} knob {k} to []", f"k{k}", name) for k in range(5)),
            ],
        )
    shown = [app.name for app in shown_apps(book, "point the telescope at the moon", "")]
    assert len(shown) == 20
    assert "telescope" in shown


async def asked(plans: Plans, id: str, line: str) -> None:
    """Wait until the line stands at the gate."""
    while True:
        draft = await plans.draft(id)
        if any(attempt.state == "asked" for attempt in draft.runs_of(line)):
            return
        await plans.wait(id, draft.seq)
