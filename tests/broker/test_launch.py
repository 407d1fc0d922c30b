"""Case T5 and the ways in which an app can fail: real programs, real ports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from broker_parts import (
    Desk,
    calls_in,
    ending,
    foreign,
    http_form,
    launch_form,
    note_app,
    register,
)

from textor.broker import processes
from textor.broker.book import PORT
from textor.broker.launch import KEPT_LOGS, Launcher, free_port
from textor.broker.provider import AppsProvider
from textor.errors import CapabilityError
from textor.events import Stored
from textor.journal.memory import MemoryJournal


@pytest.fixture(autouse=True)
def _calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "data"))


def actions(path: Path) -> list[dict[str, object]]:
    ways = [http_form(f"do {way}", way) for way in ("crash", "hang", "broken", "big")]
    return [launch_form(path), http_form("set email subject to []", "subject"), *ways]


def test_a_strangers_program_is_launched_and_receives_its_calls(tmp_path: Path) -> None:
    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal()), Desk(tmp_path)
        await register(apps, actions(foreign(tmp_path)))
        with ending(apps):
            early = await desk.perform(apps, "email.set_subject", text="lost")
            assert (early.state, early.text) == (
                "failed",
                "email is not running. Start it first: start email application.",
            )
            started = await desk.perform(apps, "email.start")
            (record,) = apps.book.records.values()
            assert started.text == f"email is open (port {record.port})."
            assert record.speaks == "document"
            text = 'Ω [x] "q" a=b:c -5 4,600'
            outcome = await desk.perform(apps, "email.set_subject", text=text)
            assert (outcome.state, outcome.text) == ("done", "Done: set email subject.")
            assert calls_in(tmp_path / "calls") == [("subject", text)]
            assert "Launch" not in (tmp_path / "calls").read_text()  # and no token of ours went to it

    asyncio.run(test())


def test_how_an_app_fails_is_the_outcome_of_its_line(tmp_path: Path) -> None:
    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal(), timeout=0.5), Desk(tmp_path)
        await register(apps, actions(foreign(tmp_path)))
        with ending(apps):
            await desk.perform(apps, "email.start")
            broken = await desk.perform(apps, "email.do_broken")
            assert (broken.state, broken.text) == ("failed", "email answered 500.")
            hanging = await desk.perform(apps, "email.do_hang")
            assert hanging.state == "unknown"
            assert "It did not answer within 0.5 seconds." in hanging.text
            apps._timeout = 30
            big = await desk.perform(apps, "email.do_big")
            assert (big.state, big.text) == (
                "failed",
                "email: Its answer is bigger than 20 MB and was not taken.",
            )
            crash = await desk.perform(apps, "email.do_crash")
            assert crash.state == "unknown"
            assert "It broke the connection off" in crash.text
            gone = await desk.perform(apps, "email.set_subject", text="x")
            assert (gone.state, "email has ended; its window is gone." in gone.text) == ("failed", True)
            assert apps.book.records == {}

    asyncio.run(test())


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("exits", "email ended when it was started (exit status 7). It said:\na library is missing"),
        ("silent", "email was not ready after 0.5 seconds: nothing of it listens on port"),
    ],
)
def test_an_app_that_does_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, told: str
) -> None:
    monkeypatch.setenv("WAY", way)
    patience = 0.5 if way == "silent" else 20.0

    async def test() -> None:
        apps = AppsProvider(MemoryJournal(), patience=patience)
        await register(apps, actions(foreign(tmp_path)))
        with pytest.raises(CapabilityError) as error:
            await apps.start("email")
        assert told in str(error.value)
        assert apps.book.records == {}

    asyncio.run(test())


def test_the_port_of_a_dead_app_is_never_called_though_a_stranger_holds_it(tmp_path: Path) -> None:
    """T5: the app dies between launch and first call, and another program takes its port."""

    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal()), Desk(tmp_path)
        await register(apps, actions(foreign(tmp_path)))
        with ending(apps):
            record = await apps.start("email")
            await kill(record.pid)
            with stranger(record.port) as heard:
                outcome = await desk.perform(apps, "email.set_subject", text="secret")
                assert outcome.state == "failed"
                assert outcome.text.startswith("email has ended; its window is gone.")
                assert heard == []

    asyncio.run(test())


def test_a_process_is_known_again_after_the_clock_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    own, booted = os.getpid(), psutil.boot_time()
    began = processes.born(own)
    assert processes.is_alive(own, began)
    created = psutil.Process(own).create_time()
    for boot, create in ((booted + 3600, created + 3600), (booted + 3600, created)):  # Linux; elsewhere
        monkeypatch.setattr(psutil, "boot_time", lambda boot=boot: boot)
        monkeypatch.setattr(psutil.Process, "create_time", lambda self, create=create: create)
        assert processes.is_alive(own, began)
    monkeypatch.setattr(psutil, "boot_time", lambda: booted)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created + 60)
    assert not processes.is_alive(own, began)  # one that has its number by now


def test_what_cannot_be_seen_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS for the processes of others."""
    import psutil

    def denied(self: object, kind: str = "") -> None:
        raise psutil.AccessDenied(1)

    with stranger(free_port()) as heard:
        assert processes.listens(os.getpid(), heard.port) is True
        assert processes.listens(os.getpid(), free_port()) is False
        assert processes.listens(2**30, heard.port) is False
        monkeypatch.setattr(psutil.Process, "net_connections", denied)
        assert processes.listens(os.getpid(), heard.port) is None


def test_what_old_instances_wrote_is_not_kept_for_ever(tmp_path: Path) -> None:
    async def test() -> None:
        folder = tmp_path / "apps" / "logs"
        folder.mkdir(parents=True)
        for number in range(KEPT_LOGS + 20):
            path = folder / f"email-{number:04x}.log"
            path.write_text(f"number {number}\n")
            os.utime(path, (number, number))
        apps, desk = AppsProvider(MemoryJournal(), tmp_path), Desk(tmp_path)
        await register(apps, actions(foreign(tmp_path)))
        with ending(apps):
            assert apps.launcher.said("email", 5) == (
                f"email-{KEPT_LOGS + 19:04x}",
                [f"number {KEPT_LOGS + 19}"],
            )
            await desk.perform(apps, "email.start")
            (record,) = apps.book.records.values()
            left = sorted(path.stem for path in folder.iterdir())
            assert len(left) == KEPT_LOGS and record.id in left
            assert left[0] != "email-0000"
            assert apps.launcher.said("radio", 5) == ("", [])

    asyncio.run(test())


def test_a_strangers_app_is_found_again_by_the_next_process(tmp_path: Path) -> None:
    """It cannot prove anything; who listens on its port, and when that began, tells."""

    async def test() -> None:
        journal, desk = MemoryJournal(), Desk(tmp_path)
        first = AppsProvider(journal)
        await register(first, actions(foreign(tmp_path)))
        with ending(first):
            await desk.perform(first, "email.start")
            (record,) = first.book.records.values()
            later = AppsProvider(journal)
            await later.adopt()
            assert list(later.book.records.values()) == [record]
            assert (await desk.perform(later, "email.set_subject", text="again")).state == "done"
            os.kill(record.pid, signal.SIGKILL)
            first.launcher._started[record.id].wait()
            await later.adopt()
            assert later.book.records == {}

    asyncio.run(test())


def test_a_stranger_with_the_number_of_our_process_is_not_taken_for_it(tmp_path: Path) -> None:
    """After a restart: the record names a port that another program listens on by now."""

    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal()), Desk(tmp_path)
        await register(apps, actions(foreign(tmp_path)))
        own = os.getpid()
        with stranger(free_port()) as heard:
            port = heard.port
            for pid, born in ((own, "12345"), (1, processes.born(1))):
                value = {
                    "id": "email-1",
                    "app_class": "email",
                    "port": port,
                    "pid": pid,
                    "born": born,
                    "started": 1.0,
                    "nonce": "n",
                }
                await apps.store.write(lambda value=value: [Stored(PORT, "email-1", value)])
                outcome = await desk.perform(apps, "email.set_subject", text="secret")
                assert outcome.state == "failed"
            # even the right process is asked to prove itself where it said that it can
            value |= {"pid": own, "born": processes.born(own), "speaks": "sdk"}
            await apps.store.write(lambda: [Stored(PORT, "email-1", value)])
            await apps.adopt()
            assert apps.book.records == {}
            assert [line for line in heard if "POST" in line] == []

    asyncio.run(test())


def test_a_port_that_was_taken_meanwhile_is_given_up_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        apps = AppsProvider(MemoryJournal())
        await register(apps, actions(foreign(tmp_path)))
        with ending(apps), stranger(free_port()) as heard:
            ports = iter([heard.port, free_port()])
            monkeypatch.setattr("textor.broker.launch.free_port", lambda: next(ports))
            record = await apps.start("email")
            assert record.port != heard.port

    asyncio.run(test())


def test_an_app_of_ours_proves_itself_and_its_results_are_values(tmp_path: Path) -> None:
    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal()), Desk(tmp_path)
        await register(apps, note_app(tmp_path))
        with ending(apps):
            record = await apps.start("note")
            assert record.speaks == "sdk"
            await desk.perform(apps, "note.write", text="one")
            last = await desk.perform(apps, "note.write", text="[two]")
            assert (last.text, last.labels) == ("2 lines", ("app:note",))
            cell = await desk.perform(apps, "note.cell", row=0, text="1e3")
            assert cell.text == "set"
            wrong = await desk.perform(apps, "note.cell", row=7, text="x")
            assert wrong.state == "failed"
            assert "note answered 500: The app failed inside: IndexError" in wrong.text
            read = await desk.perform(apps, "note.read")
            assert read.text == "1e3\n[two]"
            assert apps.launcher.token(record) not in json.dumps(
                [event async for event in stored_of(apps)], default=str
            )

    asyncio.run(test())


def test_apps_outlive_the_server_and_are_found_again(tmp_path: Path) -> None:
    async def test() -> None:
        journal, data, desk = MemoryJournal(), tmp_path / "data", Desk(tmp_path)
        first = AppsProvider(journal, data)
        await register(first, [*note_app(tmp_path), *actions(foreign(tmp_path))])
        with ending(first):
            await first.start("note")
            await first.start("email")
            other = await first.start("email")
            await first.close()
            await kill(other.pid)

            second = AppsProvider(journal, data)
            await second.adopt()
            with ending(second):
                assert sorted(r.app_class for r in second.book.records.values()) == ["email", "note"]
                outcome = await desk.perform(second, "note.write", text="after the restart")
                assert (outcome.state, outcome.text) == ("done", "1 lines")
                assert (await desk.perform(second, "email.set_subject", text="here")).state == "done"
                await second.close()

                # a process that does not know the secret cannot have them prove themselves
                third = AppsProvider(journal)
                third.launcher = Launcher(None)
                await third.adopt()
                assert [r.app_class for r in third.book.records.values()] == ["email"]
                await third.close()

    asyncio.run(test())


def test_the_newest_instance_gets_the_calls_or_the_one_that_is_pointed_at(tmp_path: Path) -> None:
    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal()), Desk(tmp_path)
        await register(apps, actions(foreign(tmp_path)))
        with ending(apps):
            one, two = await apps.start("email"), await apps.start("email")
            for text in ("second", "first", "third"):
                if text == "first":
                    await apps.point_at(one.id)
                if text == "third":
                    three = await apps.start("email")
                await desk.perform(apps, "email.set_subject", text=text)
            lines = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
            assert [(port, body["Text"]) for port, _, body in lines] == [
                (two.port, "second"),
                (one.port, "first"),
                (three.port, "third"),
            ]
            await apps.stop(three.id)
            assert not processes.is_alive(three.pid, three.born)
            assert sorted(apps.book.records) == sorted([one.id, two.id])
            assert await apps.prune() == [apps.book.records[one.id], two]

    asyncio.run(test())


def test_a_ui_action_shows_its_text_and_holds_nothing_up(tmp_path: Path) -> None:
    async def test() -> None:
        apps, desk = AppsProvider(MemoryJournal()), Desk(tmp_path)
        await register(
            apps, [launch_form(foreign(tmp_path)), http_form("warn about []", "", ActionType="UI")]
        )
        for name in ("user.tell", "email.warn_about"):
            assert (await desk.perform(apps, name, text="careful")).text == "careful"
        assert desk.shown == ["careful", "careful"]

    asyncio.run(test())


# -- helpers ---------------------------------------------------------------------------------


async def stored_of(apps: AppsProvider):  # type: ignore[no-untyped-def]
    async for event in apps.store._journal.read("machine"):
        yield event.body.value


async def kill(pid: int) -> None:
    """End a child of ours, and see that it is gone."""
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitpid, pid, 0)


class stranger(list[str]):
    """Another program on a port: it keeps the first line of whatever it is sent."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port
        self._listener = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                if told := connection.recv(1000):
                    self.append(told.decode().splitlines()[0])

    def __enter__(self) -> stranger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
