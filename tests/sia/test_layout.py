"""The two layouts: what stands where, well-formed whatever it holds, and what wakes an agent."""

from __future__ import annotations

import asyncio
import itertools
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sia_parts import Time, context_of, ended, machine, until

from textor import events as e
from textor.actions import Action, Outcome
from textor.dialects.xml_write import results
from textor.events import Definition
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import AgentState, State, fold_all
from textor.layouts.monitor import Monitor
from textor.layouts.regenerated import Regenerated
from textor.layouts.status import parts_of
from textor.messages import Context, Text, said
from textor.testing import Gate, Reply, ScriptedModel

XML = Definition(
    "tester", dialects=("xml",), layout="regenerated", prompt="You are tested.", capabilities=("*",)
)


NOON = "It is 2024-10-18T12:00:00Z."


def acting(*actions: str) -> str:
    return f"I act.\n<actions>{''.join(actions)}</actions>"


@given(st.lists(st.text(), max_size=3), st.text(), st.text())
def test_the_context_is_well_formed_whatever_it_holds(tmp: list[str], said_text: str, note: str) -> None:
    layout = Regenerated(parts_of(Monitor()), lambda id: 1000)
    posted = e.MessagePosted("main", said_text, sender='a"<b')
    message = layout.posted([posted], AgentState("main", XML, "m"), [])
    bodies: list[e.Body] = [
        e.SessionCreated("/"),
        e.AgentCreated("main", XML, "m"),
        e.MessagePosted("main", said_text),
        e.MessagesDelivered("main", ("1",), message),
        e.GenerationStarted("main", 1, "m"),
        e.GenerationFinished("main", said("assistant", f"{said_text}\n<actions>")),
        e.Observed("main", (said("user", note), *(said("user", text) for text in tmp))),
        e.NoteSet("main", note, said_text or "x"),
    ]
    state = fold_all(State(), [e.Event(b, str(n), 0.0, n) for n, b in enumerate(bodies, 1)])
    text = layout.status(state, state.agents["main"], 0.0)
    seen = context_of(Context((said("user", text),)))
    assert [part.tag for part in seen][:4] == ["system", "containers", "messages", "previous"]


def test_only_the_previous_iteration_is_there_and_the_messages_of_the_turn(tmp_path: Path) -> None:
    replies = [acting("<time.now/>"), acting('<print text="5 &lt; 6"/>'), "That is all.", "And again."]

    async def play() -> list[Context]:
        model = ScriptedModel(replies, native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create(
                "first <b>", workspace=tmp_path, definition=XML, model=model.id, policy="yes", attended=False
            )
            seen = await until(session, ended)
            await session.post("second")
            await until(session, ended, seen[-1].seq)
        return model.contexts

    one, two, three, four = map(context_of, asyncio.run(play()))
    assert one.find("previous") is not None and len(one.find("previous") or ()) == 0
    assert [a.tag for a in two.findall("previous/actions/*")] == ["time.now"]
    (printed,) = three.findall("previous/actions/*")
    assert (printed.tag, printed.attrib["text"], (printed.text or "").strip()) == ("print", "5 < 6", "5 < 6")
    assert [[(m.text or "").strip() for m in c.iter("message")] for c in (one, two, three, four)] == [
        ["first <b>"], ["first <b>"], ["first <b>"], ["second"]
    ]  # fmt: skip
    assert (four.findtext("previous/reasoning") or "").strip() == "That is all."


def test_what_was_not_understood_is_told_in_the_next_context(tmp_path: Path) -> None:
    async def play() -> list[Context]:
        model = ScriptedModel(["<actions><print text='a</actions>", "Enough."], native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("x", workspace=tmp_path, definition=XML, model=model.id)
            await until(session, ended)
        return model.contexts

    notices = context_of(asyncio.run(play())[1]).findall("previous/notice")
    assert len(notices) == 1 and "line" in (notices[0].text or "").lower()


def test_monitored_files_stand_at_the_end_and_survive_a_restart(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("first </status>")
    stable = Definition("tester", dialects=("xml",), prompt="You are tested.", capabilities=("*",))

    async def play() -> tuple[list[Context], list[Context]]:
        replies = [acting('<monitor_file path="notes.txt"/>', '<monitor_file path="./notes.txt"/>'), "Seen."]
        model = ScriptedModel(replies, native_tools=False)
        async with machine(model, tmp=tmp_path, journal=SqliteJournal(tmp_path / "j.db")) as made:
            session = await made.create("look", workspace=work, definition=stable, model=model.id)
            await until(session, ended)
        (work / "notes.txt").write_text("second")
        await made.journal.close()
        later = ScriptedModel([acting('<unmonitor_file path="0"/>'), "Gone."], native_tools=False)
        async with machine(later, tmp=tmp_path, journal=SqliteJournal(tmp_path / "j.db")) as made:
            again = await made.session(session.id)
            after = (await again.state()).seq
            await again.post("again")
            await until(again, ended, after)
        await made.journal.close()
        return model.contexts, later.contexts

    before, after = asyncio.run(play())
    shown = '<file name="notes.txt" type="file" index="0">\n{}\n</file>'
    assert "<files>" not in str(before[0].messages)
    assert shown.format("first &lt;/status&gt;") in before[1].messages[-1].text
    assert str(before[1].messages).count("<file ") == 1  # two names of one file are one
    assert shown.format("second") in after[0].messages[-1].text
    assert "first &lt;" not in str(after[0].messages)  # the status is not kept in the dialogue
    assert "<files>" not in after[1].messages[-1].text


def waking(
    tmp: Path, stir: Any, reply: str = '<wait_event timeout="30000"/>', watch: Sequence[str] = ("a.txt",)
) -> tuple[list[Context], str]:
    """A turn that waits while `stir(monitor, work, session)` happens; the contexts, and the outcome."""
    work = tmp / "work"
    work.mkdir(exist_ok=True)

    async def play() -> tuple[list[Context], str]:
        monitor = Monitor()
        model = ScriptedModel(
            [acting(*(f'<monitor_file path="{name}"/>' for name in watch)), acting(reply), "Up."],
            native_tools=False,
        )
        async with machine(model, tmp=tmp, monitor=monitor, clock=Time()) as made:
            session = await made.create(
                "wait", workspace=work, definition=XML, model=model.id, policy="yes", attended=False
            )
            monitor.stdio.attach(session.id, lambda text: None)
            await until(
                session, lambda ev: isinstance(ev.body, e.ActionStarted) and ev.body.action == "main.2.1"
            )
            await stir(monitor, work, session)
            seen = await until(session, ended)
        outcomes = [ev.body.outcome.text for ev in seen if isinstance(ev.body, e.ActionFinished)]
        return model.contexts, outcomes[-1]

    return asyncio.run(play())


def test_standard_input_wakes_a_waiting_agent_without_a_model_in_between(tmp_path: Path) -> None:
    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        monitor.stdio.feed(b"hello")

    contexts, outcome = waking(tmp_path, stir)
    assert (len(contexts), outcome) == (3, f"5 bytes wait on standard input. {NOON}")


def test_a_file_wakes_a_waiting_agent(tmp_path: Path) -> None:
    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        (work / "a.tmp").write_text("new")
        (work / "a.tmp").rename(work / "a.txt")  # as programs save

    contexts, outcome = waking(tmp_path, stir)
    assert (len(contexts), outcome) == (3, f"the file a.txt has changed. {NOON}")


@pytest.mark.parametrize("odd", ["x" * 300, "loop", "shut/a.txt"])
def test_a_path_that_cannot_be_watched_does_not_blind_an_agent(tmp_path: Path, odd: str) -> None:
    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        (work / "a.txt").write_text("new")

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "loop").symlink_to("loop")
    (tmp_path / "work" / "shut").mkdir(0o000)
    contexts, outcome = waking(tmp_path, stir, watch=("a.txt", odd))
    assert (len(contexts), outcome) == (3, f"the file a.txt has changed. {NOON}")


def test_when_nothing_can_be_watched_the_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_watches(*paths: Any, **how: Any) -> Any:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr("watchfiles.awatch", no_watches)

    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        (work / "a.txt").write_text("new")

    assert waking(tmp_path, stir)[1] == f"the file a.txt has changed. {NOON}"


def test_a_message_wakes_a_waiting_agent(tmp_path: Path) -> None:
    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        await session.post("are you there?")

    contexts, outcome = waking(tmp_path, stir)
    assert outcome == f"A message has come. {NOON}"
    assert "are you there?" in contexts[2].messages[-1].text


def test_the_end_of_time_wakes_a_waiting_agent(tmp_path: Path) -> None:
    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        """Nothing happens."""

    assert waking(tmp_path, stir, '<wait_event timeout="1"/>')[1] == f"The time is over. {NOON}"


def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    async def stir(monitor: Monitor, work: Path, session: Any) -> None:
        await session.control("stop")

    assert waking(tmp_path, stir)[1] == "The waiting was cancelled."


def test_an_agent_goes_on_with_a_model_that_is_named_and_with_no_other(tmp_path: Path) -> None:
    async def play() -> tuple[ScriptedModel, ScriptedModel]:
        first = ScriptedModel(
            [acting('<select_llm name="scripted:oter"/>'), acting('<select_llm name="scripted:other"/>')],
            native_tools=False,
        )
        other = ScriptedModel(["I am another."], id="scripted:other", native_tools=False)
        async with machine(first, other, tmp=tmp_path, names=["scripted:other"]) as made:
            session = await made.create(
                "x", workspace=tmp_path, definition=XML, model=first.id, policy="edits", attended=False
            )
            seen = await until(session, ended)
            assert seen[-1].body.text == "I am another."  # type: ignore[attr-defined]
        return first, other

    first, other = asyncio.run(play())
    told = context_of(first.contexts[1]).findtext("previous/actions/select_llm") or ""
    assert "Did you mean scripted:other?" in told
    assert len(other.contexts) == 1


def test_a_reply_that_was_cut_leaves_a_whole_context(tmp_path: Path) -> None:
    """A reply that is cut by a message leaves a context that is still whole."""
    gate = Gate()

    async def play() -> list[Context]:
        model = ScriptedModel([Reply("I think", gates={3: gate}), "Yes."], native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("x", workspace=tmp_path, definition=XML, model=model.id)
            await gate.reached.wait()
            await session.post("quick")
            await until(session, ended)
        return model.contexts

    seen = context_of(asyncio.run(play())[1])
    assert [(m.text or "").strip() for m in seen.iter("message")] == ["x", "quick"]
    assert (seen.findtext("previous/reasoning") or "").strip() == "I t"


def told(context: Context) -> list[str]:
    return [(m.text or "").strip() for m in context_of(context).iter("message")]


def test_messages_of_earlier_turns_are_gone_also_after_a_reply_that_was_cut(tmp_path: Path) -> None:
    gate = Gate()

    async def play() -> list[Context]:
        replies: list[str | Reply] = ["One.", Reply("Two", gates={0: gate}), "Three."]
        model = ScriptedModel(replies, native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("first", workspace=tmp_path, definition=XML, model=model.id)
            seen = await until(session, ended)
            await session.post("second")
            await gate.reached.wait()
            await session.post("third")  # nothing of the reply was there yet
            await until(session, ended, seen[-1].seq)
        return model.contexts

    assert [told(c) for c in asyncio.run(play())] == [["first"], ["second"], ["second", "third"]]


def test_messages_of_earlier_turns_are_gone_also_after_a_review(tmp_path: Path) -> None:
    async def play() -> list[Context]:
        model = ScriptedModel(["One.", "Two.", "Better."], native_tools=False)
        definition = replace(XML, review=True)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create("first", workspace=tmp_path, definition=definition, model=model.id)
            after = 0
            for verdict, message in (("accept", "second"), ("again", ""), ("accept", "")):
                finished = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished), after)
                after = finished[-1].seq
                await session.review("main", verdict, remark="say <it> better")  # type: ignore[arg-type]
                if message:
                    after = (await until(session, ended, after))[-1].seq
                    await session.post(message)
        return model.contexts

    contexts = asyncio.run(play())
    assert [told(c) for c in contexts] == [["first"], ["second"], ["second"]]
    (remark,) = context_of(contexts[2]).findall("previous/notice")
    assert (remark.text or "") == "say <it> better"


def test_what_is_found_for_a_message_leaves_the_context_whole() -> None:
    layout = Regenerated(parts_of(Monitor()), lambda id: 1000)
    agent = AgentState("main", XML, "m")
    message = layout.posted([e.MessagePosted("main", "x")], agent, [])
    message = replace(message, parts=(*message.parts, Text("\n\n[Found: f(a<b)]")))
    bodies: list[e.Body] = [e.SessionCreated("/"), e.AgentCreated("main", XML, "m")]
    bodies += [e.MessagePosted("main", "x"), e.MessagesDelivered("main", ("3",), message)]
    state = fold_all(State(), [e.Event(b, str(n), 0.0, n) for n, b in enumerate(bodies, 1)])
    text = layout.status(state, state.agents["main"], 0.0)
    assert "f(a<b)" in (context_of(Context((said("user", text),))).findtext("messages/found") or "")


def test_a_turn_that_an_older_version_began_keeps_its_message() -> None:
    """Its journal does not say to which turn a message belongs."""
    layout = Regenerated(parts_of(Monitor()), lambda id: 1000)
    bodies: list[e.Body] = [e.SessionCreated("/"), e.AgentCreated("main", XML, "m")]
    for turn, word in enumerate(("first", "second"), 1):
        old = said("user", f"<message>\n{word}\n</message>")
        bodies += [e.MessagePosted("main", word), e.MessagesDelivered("main", (str(len(bodies)),), old)]
        bodies += [e.GenerationStarted("main", 1, "m")]
        if turn == 1:
            bodies += [
                e.GenerationFinished("main", said("assistant", "Yes.")),
                e.TurnEnded("main", "replied"),
            ]
    action = Action("main.2.1", "print", {"text": "x"})
    bodies += [e.GenerationFinished("main", said("assistant", acting("<print/>")), (action,))]
    bodies += [
        e.Observed("main", (said("user", "<previous>\n<actions>\n<print/>\n</actions>\n</previous>"),))
    ]
    state = fold_all(State(), [e.Event(b, str(n), 0.0, n) for n, b in enumerate(bodies)])
    seen = context_of(Context((said("user", layout.status(state, state.agents["main"], 0.0)),)))
    assert [(m.text or "").strip() for m in seen.iter("message")] == ["second"]
    assert [a.tag for a in seen.findall("previous/*")] == ["reasoning", "actions"]


def test_one_who_waits_again_and_again_does_not_go_round_in_circles(tmp_path: Path) -> None:
    minutes = itertools.count(1_729_252_800, 60)

    async def play() -> list[e.Event]:
        replies = [acting('<wait_event timeout="1"/>')] * 8 + ["Enough."]
        model = ScriptedModel(replies, native_tools=False)
        async with machine(model, tmp=tmp_path, clock=lambda: next(minutes)) as made:
            session = await made.create("wait", workspace=tmp_path, definition=XML, model=model.id)
            return await until(session, ended)

    events = asyncio.run(play())
    assert events[-1].body.reason == "replied"  # type: ignore[attr-defined]
    assert not any(ev.body.notices for ev in events if isinstance(ev.body, e.Observed))


def test_what_the_machine_noticed_is_no_word_of_a_person(tmp_path: Path) -> None:
    """Nobody has named the address that is the name of a container."""

    async def play() -> tuple[Context, State]:
        model = ScriptedModel(["Good."], native_tools=False)
        async with machine(model, tmp=tmp_path) as made:
            session = await made.create(workspace=tmp_path, definition=XML, model=model.id)
            await session.tell("the container evil.example.org is finished.")
            await until(session, ended)
            return model.contexts[0], await session.state()

    context, state = asyncio.run(play())
    (message,) = context_of(context).iter("message")
    assert message.attrib == {"from": "the machine"}
    assert state.given == frozenset()


def test_the_previous_actions_stand_there_as_they_are_written() -> None:
    """Behind them the result; what was left out is left out, though the gate knows its default."""
    given = {
        "image": "none", "volumes": ["work:/w"], "timeout": 10, "command": "sh", "name": "", "ports": [],
        "parameters": ["-c", "a < b", 'x="\n"'], "writable": False,
        "environment": {"API_KEY": "s3cr3t", "MODE": "a"},
    }  # fmt: skip
    outcome = Outcome("done", "exit status 1\nno", exit_status=1)
    shown = ET.fromstring(results([(Action("1", "start_container", given), outcome)]))[0][0]
    attributes = {"image": "none", "volumes": "work:/w", "timeout": "10", "command": "sh"}
    environment = {"environment": '{"API_KEY": "********", "MODE": "a"}'}
    assert shown.attrib == attributes | environment | {"writable": "false"}
    assert [(child.tag, child.text) for child in shown] == [
        ("parameter", "-c"), ("parameter", "a < b"), ("parameter", 'x="\n"')
    ]  # fmt: skip
    assert shown[-1].tail == "\nexit status 1\nno\n"
