"""A module's question: how a person reads it, and what their answer becomes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kernel_parts import begin, ended, machine, until

from textor import events as e
from textor.actions import Capability, Outcome
from textor.assembly import open_machine
from textor.capabilities.modules.questions import Answer, Field, Question
from textor.capabilities.port import Scope as PortScope
from textor.capabilities.table import Entry, TableProvider
from textor.config import Config
from textor.testing import Call, Reply, ScriptedModel
from textor.tree.elicitation import ask_person, read_answer, told

ONE = Question("shop", "How many?", (Field("count", "integer", required=True),))
TWO = Question(
    "shop", "Where to?", (Field("street", required=True), Field("express", "yes or no", default=False))
)


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (ONE, "3", Answer("accept", {"count": 3})),
        (ONE, '{"count": 4}', Answer("accept", {"count": 4})),
        (ONE, "three", Answer("decline")),
        (ONE, "no", Answer("decline")),
        (TWO, '{"street": "Main 1"}', Answer("accept", {"street": "Main 1", "express": False})),
        (
            TWO,
            '{"street": "Main 1", "express": "yes"}',
            Answer("accept", {"street": "Main 1", "express": True}),
        ),
        (TWO, '{"express": true}', Answer("decline")),
        (TWO, "Main 1", Answer("decline")),
        (Question("m", "Sure?"), "yes", Answer("accept")),
        (Question("m", "Sure?"), "No", Answer("decline")),
        (Question("m", "Sure?", (Field("ok", "yes or no"),)), "no", Answer("accept", {"ok": False})),
        (Question("m", "?", (Field("c", choices=("red", "blue")),)), "green", Answer("decline")),
        (
            Question("m", "?", (Field("c", "texts", choices=("a", "b")),)),
            "a, b",
            Answer("accept", {"c": ["a", "b"]}),
        ),
        (Question("m", "?", (Field("c", "texts", choices=("a",)),)), '{"c": [{"a": 1}]}', Answer("decline")),
        (Question("m", "?", (Field("n", "number"),)), "1e999", Answer("decline")),
        (Question("m", "?", (Field("n", "number"),)), "nan", Answer("decline")),
    ],
)
def test_an_answer_in_the_kind_that_was_asked_for(question: Question, text: str, answer: Answer) -> None:
    assert read_answer(question, text) == answer


def test_a_question_says_who_asks_and_how_to_answer() -> None:
    assert "module shop asks: Where to?" in told(TWO)
    assert '{"street": …, "express": …}' in told(TWO)
    assert "Open https://example.org/login" in told(Question("m", "Log in", url="https://example.org/login"))


def test_nobody_is_asked_outside_a_session() -> None:
    assert asyncio.run(ask_person(ONE, None)) == Answer("cancel")


def test_a_secret_reaches_the_module_and_neither_journal_nor_model(tmp_path: Path) -> None:
    got: list[Answer] = []

    async def perform(arguments: dict[str, object], scope: PortScope) -> Outcome:
        question = Question("vault", "The password?", (Field("password", secret=True, required=True),))
        got.append(await ask_person(question, scope))
        return Outcome("done", f"opened with {got[0].content['password']}")

    opened = Capability("vault.open", "Open the vault.")

    async def run() -> None:
        model = ScriptedModel([Reply(calls=(Call("vault_open"),)), "It is open."])
        async with machine(model, tmp=tmp_path) as made:
            await made.services.registry.add(TableProvider("vault", [Entry(opened, perform)]))
            session = await begin(made, model, "open it")
            events = await until(session, lambda ev: isinstance(ev.body, e.Asked))
            assert events[-1].body.secret
            await session.reply(events[-1].body.key, "open sesame!", secret=True)
            events = await until(session, ended)
            assert got == [Answer("accept", {"password": "open sesame!"})]
            assert "open sesame" not in str([ev.body for ev in events])
            assert "open sesame" not in str(model.asked[1].context)
            assert len(made.services.hub.secrets) == 0

    asyncio.run(run())


def test_a_secret_that_got_lost_is_asked_for_again(tmp_path: Path) -> None:
    """The process where it was given ended before it was fetched: the next one asks, and says why."""
    got: list[Answer] = []

    async def perform(arguments: dict[str, object], scope: PortScope) -> Outcome:
        question = Question("vault", "The password?", (Field("password", secret=True, required=True),))
        got.append(await ask_person(question, scope))
        return Outcome("done", "opened")

    async def run() -> None:
        model = ScriptedModel([Reply(calls=(Call("vault_open"),)), "It is open."])
        async with machine(model, tmp=tmp_path) as made:
            opened = Capability("vault.open", "Open the vault.")
            await made.services.registry.add(TableProvider("vault", [Entry(opened, perform)]))
            session = await begin(made, model, "open it")
            first = (await until(session, lambda ev: isinstance(ev.body, e.Asked)))[-1]
            await made.journal.append(  # as from a process that is gone, with what it held in memory
                session.id, [made.services.event(e.Answered(first.body.key, "[given in secret]"))], epoch=None
            )
            made.host.wake(session.id)
            again = (await until(session, lambda ev: isinstance(ev.body, e.Asked), first.seq))[-1].body
            assert "did not reach the process" in again.question and again.secret
            await session.reply(again.key, "open sesame!", secret=True)
            await until(session, ended)
            assert got == [Answer("accept", {"password": "open sesame!"})]

    asyncio.run(run())


def test_a_secret_given_in_another_process_reaches_the_host(tmp_path: Path) -> None:
    """Two machines over one data folder: one hosts, in the other a person answers."""
    got: list[Answer] = []

    async def perform(arguments: dict[str, object], scope: PortScope) -> Outcome:
        question = Question("vault", "The password?", (Field("password", secret=True, required=True),))
        got.append(await ask_person(question, scope))
        return Outcome("done", "opened")

    async def run() -> None:
        config = Config(path=tmp_path / "config.toml", data=tmp_path / "data")
        model = ScriptedModel([Reply(calls=(Call("vault_open"),)), "It is open."])
        opened = Capability("vault.open", "Open the vault.")
        async with open_machine(config) as host, open_machine(config) as face:
            assert host.host is not None and face.host is None
            host._models.add(model)
            await host.services.registry.add(TableProvider("vault", [Entry(opened, perform)]))
            definition = e.Definition("t", capabilities=("vault.open",), prompt="P")
            session = await host.create("open", workspace=tmp_path, definition=definition, model=model.id)
            events = await until(session, lambda ev: isinstance(ev.body, e.Asked))
            there = await face.session(session.id)
            await there.reply(events[-1].body.key, "open sesame!", secret=True)
            await until(session, ended)
        assert got == [Answer("accept", {"password": "open sesame!"})]

    asyncio.run(run())
    assert list((tmp_path / "data" / "handed").iterdir()) == []
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or b"open sesame" not in path.read_bytes(), path
