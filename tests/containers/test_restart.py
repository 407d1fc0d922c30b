"""Textor is killed, the engine is stopped: what runs is found again or removed, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from textor.containers.client import EngineGone
from textor.containers.container import About, Container
from textor.containers.engine import Engine, Spec
from textor.containers.labels import INSTANCE, SANDBOX, this_process
from textor.containers.provider import ContainersProvider
from textor.containers.reap import reap, remove_all

from .conftest import BUSYBOX, Desk, ours
from .own_engine import OwnEngine

#: A Textor that starts a container, reads a little and is killed.
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from containers.conftest import BUSYBOX, Desk
from textor.containers.engine import find_engine
from textor.containers.labels import this_process
from textor.containers.provider import ContainersProvider

async def main(data, workspace, session, timeout):
    engine = await find_engine()
    provider = ContainersProvider(engine, this_process(data), None, data / "containers")
    desk = Desk(workspace, session)
    script = "echo one; echo two; read x; echo got $x; read y; exit 5"
    if timeout:
        script = "echo begun; sleep 600"
    start = asyncio.create_task(desk.perform(provider, "start_container", key="k1", image=BUSYBOX,
        name="it", command="sh", parameters=["-c", script], timeout=timeout))
    if timeout:
        while not provider.snapshot(session):
            await asyncio.sleep(0)
    else:
        await start
        outcome = await desk.perform(provider, "read_stdout", key="r1", name="it", n=4, timeout=20000)
        assert outcome.text.endswith("one\\n"), outcome
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])))
"""


def die(desk: Desk, data: Path, timeout: int = 0) -> None:
    argv = [Path(__file__).parents[1], data, desk.workspace, desk.session, timeout]
    done = subprocess.run([sys.executable, "-c", KILLED, *map(str, argv)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def left(session: str) -> list[str]:
    return [name for name in ours() if session in name]


def test_a_session_that_goes_on_has_its_containers_again(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    die(desk, tmp_path)
    assert len(left(desk.session)) == 1

    async def go_on() -> None:
        provider = ContainersProvider(engine, this_process(tmp_path), None, tmp_path / "containers")
        try:
            assert await provider.adopt([desk.session]) == ["it"]
            again = await desk.perform(
                provider, "start_container", key="k1", image=BUSYBOX, name="it", command="sh"
            )
            assert again.text == "The container it is running."
            repeated = await desk.perform(provider, "read_stdout", key="r1", name="it")
            assert repeated.text.endswith("\none\n")
            rest = await desk.perform(provider, "read_stdout", name="it", timeout=20_000)
            assert rest.text.endswith("\ntwo\n")
            await desk.perform(provider, "write_stdin", name="it", text="more\nend\n")
            over = await desk.perform(provider, "wait_container", name="it")
            assert over.exit_status == 5
            assert (await desk.perform(provider, "read_stdout", name="it")).text.endswith("\ngot more\n")
        finally:
            await provider.close()

    asyncio.run(go_on())
    assert left(desk.session) == []
    assert list((tmp_path / "containers").iterdir()) == []


def test_a_short_one_that_outlived_us_is_still_bounded(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    die(desk, tmp_path, timeout=1000)

    async def go_on() -> str:
        provider = ContainersProvider(engine, this_process(tmp_path), None, tmp_path / "containers")
        try:
            await provider.adopt([desk.session])
            arguments = {"image": BUSYBOX, "name": "it", "timeout": 1000}
            outcome = await desk.perform(provider, "start_container", key="k1", **arguments)
            return outcome.text
        finally:
            await provider.close()

    assert asyncio.run(go_on()) == "exit status 137; stopped after 1000 ms (timeout)\nbegun"
    assert left(desk.session) == []


def test_a_session_that_is_gone_leaves_nothing(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    die(desk, tmp_path)
    other = tmp_path / "other"
    other.mkdir()

    async def start(data: Path) -> None:
        provider = ContainersProvider(engine, this_process(data), None, data / "containers")
        assert await provider.adopt([]) == []
        await provider.close()

    asyncio.run(start(other))  # the data folder of others: its own next start looks after it
    assert len(left(desk.session)) == 1
    asyncio.run(start(tmp_path))
    assert left(desk.session) == []


def test_what_a_living_process_has_is_left_alone(engine: Engine, desk: Desk) -> None:
    async def look() -> None:
        mine = this_process()
        labels = mine.labels(SANDBOX)
        name = f"textor-{desk.session}-living"
        id = await engine.create(Spec(name, BUSYBOX, ["sleep", "600"], labels=labels))
        stranger = this_process(desk.workspace)
        parent = f"{os.getppid()}-{_born(os.getppid())}-{mine.instance.split('-')[2]}"
        assert await reap(engine, type(stranger)(parent, stranger.home)) == []
        assert (await engine.inspect(id)).status == "created"
        await remove_all(engine, await engine.list({INSTANCE: mine.instance}))
        assert await engine.list({INSTANCE: mine.instance}) == []

    asyncio.run(look())


def _born(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


# -- the engine itself ---------------------------------------------------------------------


@pytest.fixture
def own_engine(engine: Engine) -> Iterator[OwnEngine]:
    own = OwnEngine()
    try:
        yield own
    finally:
        own.remove()


def test_the_engine_is_stopped_and_started_in_the_middle(
    engine: Engine, own_engine: OwnEngine, desk: Desk
) -> None:
    async def scene() -> None:
        own = await own_engine.with_image(engine)
        provider = ContainersProvider(own, this_process())
        arguments = {"image": BUSYBOX, "name": "it", "command": "sh"}
        script = ["-c", "trap 'echo bye; exit 3' TERM; echo one; while :; do read x; done"]
        await desk.perform(provider, "start_container", **arguments, parameters=script)
        first = await desk.perform(provider, "read_stdout", name="it", timeout=20_000)
        assert first.text.endswith("\none\n")
        waiting = asyncio.create_task(desk.perform(provider, "wait_container", name="it", timeout=100_000))
        await asyncio.to_thread(own_engine.stop)

        gone = await desk.perform(provider, "write_stdin", name="it", text="x\n")
        assert gone.state == "failed"
        assert "container engine" in gone.text
        fresh = await desk.perform(provider, "start_container", **(arguments | {"name": "two"}))
        assert "does not answer" in fresh.text

        await own_engine.start()
        over = await waiting  # the engine ended it, and its last words are there
        assert over.exit_status == 3
        assert (await desk.perform(provider, "read_stdout", name="it")).text.endswith("\nbye\n")
        again = await desk.perform(
            provider, "start_container", **arguments, parameters=["-c", "echo again"], timeout=20_000
        )
        assert again.text == "exit status 0\nagain"
        await provider.close()
        assert await own.list({INSTANCE: ""}) == []

    asyncio.run(scene())


@pytest.mark.parametrize("how", ["reset", "end"])
def test_a_broken_connection_loses_nothing_and_doubles_nothing(engine: Engine, desk: Desk, how: str) -> None:
    async def scene() -> str:
        script = "seq 1000; read x; seq 1001 2000; read y; printf end"
        name = f"textor-{desk.session}-broken"
        labels = this_process().labels(SANDBOX)
        spec = Spec(name, BUSYBOX, ["sh", "-c", script], labels=labels, stdin="open")
        container = Container(engine, await engine.create(spec), desk.session, "k", About("it"))
        read = ""
        try:
            await container.begin(await engine.inspect(container.id))
            read += await container.read(1, 100, 20)
            attached = container._attached
            assert attached is not None
            if how == "reset":
                attached.reader.set_exception(ConnectionResetError("cut"))
            else:
                attached.writer.transport.abort()
            for line in ("a\n", "b\n"):
                await written(container, line.encode())
            final = await container.ended(20)
            assert str(final) == "exit status 0"
            while text := await container.read(1, 777, 0):
                read += text
        finally:
            await container.close()
            await engine.remove(container.id)
        return read

    assert asyncio.run(scene()).split() == [*map(str, range(1, 2001)), "end"]


async def written(container: Container, data: bytes) -> None:
    """Write; the first time may tell that the connection is broken."""
    try:
        await container.write(data)
    except EngineGone:
        await container.write(data)
