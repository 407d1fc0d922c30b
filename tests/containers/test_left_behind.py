"""What a process left in the middle of something is taken up where it stood."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from textor.containers.client import EngineGone
from textor.containers.engine import Engine, until_back
from textor.containers.labels import SESSION, Owner, this_process
from textor.containers.provider import ContainersProvider
from textor.containers.specs import spec_of

from .conftest import BUSYBOX, Desk
from .own_engine import OwnEngine

HI = {"image": BUSYBOX, "command": "echo", "parameters": ["hi"]}
STAY = {"image": BUSYBOX, "command": "sh", "parameters": ["-c", "while read x; do echo got $x; done"]}


def of_the_dead(data: Path) -> Owner:
    """A process over this data folder that runs no more."""
    return Owner(f"4194305-1-{this_process().instance.rpartition('-')[2]}", this_process(data).home)


def provider(engine: Engine, data: Path, *, dead: bool = False) -> ContainersProvider:
    owner = of_the_dead(data) if dead else this_process(data)
    return ContainersProvider(engine, owner, None, data / "containers")


@asynccontextmanager
async def next_start(engine: Engine, data: Path, session: str) -> AsyncIterator[ContainersProvider]:
    after = provider(engine, data)
    try:
        await after.adopt([session])
        yield after
    finally:
        await after.close()
        assert await engine.list({SESSION: session}) == []


async def make(before: ContainersProvider, desk: Desk, key: str, /, **arguments: Any) -> str:
    """Make the container of an action, without starting it; its id."""
    desk.key = key
    full = {"name": "", "description": "", "environment": {}, "volumes": [], "ports": [], "timeout": 0}
    spec, _ = spec_of({**full, "writable": False, **arguments}, desk, before.owner, before.rules)
    return await before.engine.create(spec)


def test_one_that_was_made_and_not_started_is_started(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def scene() -> None:
        before = provider(engine, tmp_path, dead=True)
        await make(before, desk, "k1", **STAY, name="it", ports=["8080"])
        await make(before, desk, "k2", image=BUSYBOX, name="bad", command="no-such-program", parameters=[])
        async with next_start(engine, tmp_path, desk.session) as after:
            # the one that cannot be started does not keep the other, and its action tells why
            told = await desk.perform(after, "start_container", key="k1", **STAY, name="it", ports=["8080"])
            assert told.text.startswith("The container it is running. port 8080 is 127.0.0.1:")
            bad = {**HI, "name": "bad", "command": "no-such-program"}
            fault = await desk.perform(after, "start_container", key="k2", **bad)
            assert fault.state == "failed" and "no-such-program" in fault.text

    asyncio.run(scene())


def test_one_that_the_engine_made_after_the_next_start_has_looked(
    engine: Engine, desk: Desk, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with next_start(engine, tmp_path, desk.session) as after:
            made = await make(provider(engine, tmp_path, dead=True), desk, "k1", **STAY, name="it")
            told = await desk.perform(after, "start_container", key="k1", **STAY, name="it")
            assert told.text == "The container it is running."
            (state,) = await engine.list({SESSION: desk.session})
            assert (state.id, state.status) == (made, "running")
            # another's container of that name is not taken
            other = Desk(desk.workspace, desk.session)
            theirs = provider(engine, tmp_path / "other", dead=True)
            stranger = await make(theirs, other, "k2", **STAY, name="two")
            fault = await other.perform(after, "start_container", key="k2", **STAY, name="two")
            assert fault.state == "failed" and "Conflict" in fault.text
            assert (await engine.inspect(stranger)).status == "created"
            await engine.remove(stranger)

    asyncio.run(scene())


def test_ports_are_what_they_were(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def scene() -> tuple[str, str]:
        before = provider(engine, tmp_path, dead=True)
        first = await desk.perform(before, "start_container", **STAY, name="it", ports=["8080"])
        for forwarders in before._forwarders.values():
            for forwarder in forwarders:
                await forwarder.close()
        async with next_start(engine, tmp_path, desk.session) as after:
            second = await desk.perform(after, "list_containers")
        for container in before._all():
            await container.close()
        return first.text, second.text

    ports = [re.findall(r"127.0.0.1:(\d+)", text) for text in asyncio.run(scene())]
    assert len(ports[0]) == 1 and ports[0] == ports[1]


def test_a_short_one_that_ended_in_time_was_not_stopped(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def scene() -> str:
        wish = {**HI, "name": "it", "timeout": 1}
        id = await make(provider(engine, tmp_path, dead=True), desk, "k1", **wish)
        await engine.start(id)
        await engine.wait(id)  # and its time is over as well when we look again
        async with next_start(engine, tmp_path, desk.session) as after:
            return (await desk.perform(after, "start_container", key="k1", **wish)).text

    assert asyncio.run(scene()) == "exit status 0\nhi"


def test_an_end_is_said_once_also_after_a_restart(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def scene() -> list[str]:
        before = provider(engine, tmp_path, dead=True)
        await desk.perform(before, "start_container", **HI, name="it")
        told = [(await desk.perform(before, "wait_container", key="w1", name="it")).text]
        for container in before._all():
            await container.close()
        async with next_start(engine, tmp_path, desk.session) as after:
            for key in ("w2", "w1"):  # another action, and the same once more: its outcome was lost
                await asyncio.wait_for(after._find("it", desk.session).ended(None), 20)
                told.append((await desk.perform(after, "wait_container", key=key, name="it")).text)
        return told

    first, other, again = asyncio.run(scene())
    assert first == "it is finished: exit status 0; 3 bytes of stdout unread, 0 bytes of stderr unread."
    assert other == first.replace(": exit status 0", "")
    assert again == first


def test_who_waits_for_a_container_that_is_removed_is_told(engine: Engine, desk: Desk) -> None:
    async def scene() -> tuple[str, str, str]:
        only = ContainersProvider(engine, this_process())
        await desk.perform(only, "start_container", **STAY, name="it")
        wait = {"name": "it", "timeout": 100_000}
        waiting = asyncio.create_task(desk.perform(only, "wait_container", **wait))
        reading = asyncio.create_task(desk.perform(only, "read_stdout", **wait))
        await asyncio.sleep(0)
        removed = await desk.perform(only, "remove_container", name="it")
        async with asyncio.timeout(20):
            told = (removed.text, (await waiting).text, (await reading).text)
        await only.close()
        return told

    removed, waited, read = asyncio.run(scene())
    assert removed == "it is removed."
    assert "it is finished" in waited and "0 bytes, 0 left; finished" in read


def test_input_over_a_broken_connection_is_not_claimed_and_not_sent_twice(engine: Engine, desk: Desk) -> None:
    async def scene() -> list[str]:
        only = ContainersProvider(engine, this_process())
        await desk.perform(only, "start_container", **STAY, name="it")
        container = only._find("it", desk.session)
        assert container._attached is not None
        container._attached.reader.set_exception(ConnectionResetError("cut"))  # it may have been sent
        told = [(await desk.perform(only, "write_stdin", name="it", text="a\n")).state]
        assert container._attached is None
        told.append((await desk.perform(only, "write_stdin", name="it", text="b\n")).state)
        assert container._attached is not None
        container._attached.writer.transport.abort()  # nothing can be sent there, so another is made
        told.append((await desk.perform(only, "write_stdin", name="it", text="c\n")).state)
        read = ""
        async with asyncio.timeout(20):
            while "got c" not in read:
                outcome = await desk.perform(only, "read_stdout", name="it", timeout=20_000)
                read += outcome.text.partition("\n")[2]
        await only.close()
        return [*told, read]

    assert asyncio.run(scene()) == ["unknown", "done", "done", "got a\ngot b\ngot c\n"]


def test_what_cannot_be_kept_is_not_read(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def scene() -> tuple[str, str]:
        only = provider(engine, tmp_path)
        (tmp_path / "containers").touch()  # no folder can be made there
        await desk.perform(only, "start_container", **HI, name="it")
        await desk.perform(only, "wait_container", key="w1", name="it")
        fault = await desk.perform(only, "read_stdout", name="it")
        (tmp_path / "containers").unlink()
        read = await desk.perform(only, "read_stdout", name="it")
        await only.close()
        assert fault.state == "failed"
        return fault.text, read.text

    fault, read = asyncio.run(scene())
    assert fault.startswith("Nothing was read") and str(tmp_path) in fault
    assert read == "3 bytes, 0 left; finished\nhi\n"


def test_what_is_given_up_while_the_engine_is_away_ends_when_it_is_back(
    engine: Engine, desk: Desk, tmp_path: Path
) -> None:
    own = OwnEngine(live_restore=True)

    async def scene() -> None:
        away = await own.with_image(engine)
        only = provider(away, tmp_path)
        sleep = {"image": BUSYBOX, "command": "sleep", "parameters": ["600"]}
        short = asyncio.create_task(
            desk.perform(only, "start_container", **sleep, name="it", timeout=500_000)
        )
        while not only.snapshot(desk.session):  # noqa: ASYNC110 - the engine makes it
            await asyncio.sleep(0.05)
        await desk.perform(only, "start_container", **STAY, name="two")
        await asyncio.to_thread(own.stop)
        short.cancel()
        given_up = await short
        assert given_up.state == "unknown" and "when the engine is back" in given_up.text
        removed = await desk.perform(only, "remove_container", name="two")
        assert removed.state == "failed"  # and nothing is claimed: it is still there
        with pytest.raises(EngineGone):
            await away.list({})
        await own.start()
        await until_back(away)
        over = await desk.perform(only, "wait_container", name="it", timeout=60_000)
        assert "finished: exit status 137; cancelled" in over.text
        assert (await desk.perform(only, "remove_container", name="two")).text == "two is removed."
        await only.close()
        assert await away.list({SESSION: desk.session}) == []

    try:
        asyncio.run(scene())
    finally:
        own.remove()
