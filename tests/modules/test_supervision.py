"""Modules that start, fail, hang and die: one outcome each, and the rest works on (T1, T2, L6)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from module_parts import HERE, Desk, HttpServer, alive, free_port, odd, runs, until, until_state

from textor.capabilities.modules.link import placed
from textor.capabilities.modules.module import FIRST_PAUSE, GIVE_UP, LONGEST_PAUSE, Module
from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import ModuleSpec
from textor.errors import CapabilityError

GENERATIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@pytest.mark.parametrize("protocol", GENERATIONS)
def test_both_generations_of_the_protocol_over_a_pipe(tmp_path: Path, protocol: str) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path, protocol=protocol)])
        try:
            outcome = await Desk(tmp_path).perform(provider, "odd.echo", text="hello")
            module = provider.module("odd")
            await module.ping()
            assert (outcome.state, outcome.text) == ("done", "hello")
            assert module.protocol == GENERATIONS[protocol]
            # a protocol that is fixed beforehand leaves out the question who is there
            assert module.server == ("" if protocol == "2026-07-28" else "odd 1.2")
        finally:
            await provider.close()

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
def test_both_generations_of_the_protocol_at_an_address(tmp_path: Path, protocol: str) -> None:
    async def main(server: HttpServer) -> None:
        provider = ModulesProvider([ModuleSpec("odd", address=server.address, protocol=protocol)])
        try:
            outcome = await Desk(tmp_path).perform(provider, "odd.echo", text="hello")
            assert (outcome.state, outcome.text) == ("done", "hello")
            assert provider.module("odd").protocol == GENERATIONS[protocol]
        finally:
            await provider.close()

    with HttpServer(tmp_path) as server:
        asyncio.run(main(server))


def test_a_module_that_lacks_a_library_shows_its_last_lines_and_the_rest_works(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import sys\nprint('begins', file=sys.stderr)\nimport library_that_is_missing\n")

    async def main() -> None:
        specs = [ModuleSpec("broken", (sys.executable, str(broken))), odd(tmp_path)]
        provider = ModulesProvider(specs)
        desk = Desk(tmp_path)
        try:
            failed, fine = await asyncio.gather(
                desk.perform(provider, "broken.anything"), desk.perform(provider, "odd.echo", text="x")
            )
            assert failed.state == "failed"
            assert "exit status 1" in failed.text
            assert "No module named 'library_that_is_missing'" in failed.text
            assert fine.text == "x"
            module = provider.module("broken")
            assert module.state in ("waiting", "starting", "failed")
            assert "library_that_is_missing" in module.trouble
        finally:
            await provider.close()

    asyncio.run(main())


def test_a_command_that_does_not_exist_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        module = Module(ModuleSpec("none", ("no-such-program-here",)))
        with pytest.raises(CapabilityError, match="no-such-program-here cannot be started: No such file"):
            await module.ready()
        await module.close()

    asyncio.run(main())


def test_a_start_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async def main() -> None:
        spec = ModuleSpec("slow", ("sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 1000"), start=0.5)
        module = Module(spec, sleep=_for_ever)
        with pytest.raises(CapabilityError, match=r"did not answer within 0\.5 seconds"):
            await module.ready()
        await until_state(module, "waiting")
        await until(lambda: not alive(int((tmp_path / "pid").read_text())))
        # nobody waits for the next try in the dark
        with pytest.raises(CapabilityError, match="did not answer"):
            await module.ready()
        await module.close()

    asyncio.run(main())


async def _for_ever(seconds: float) -> None:
    await asyncio.Event().wait()


def test_restarts_come_after_growing_pauses_and_end(tmp_path: Path) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async def main() -> None:
        module = Module(ModuleSpec("bad", (sys.executable, "-c", "raise SystemExit(3)")), sleep=sleep)
        with pytest.raises(CapabilityError, match="exit status 3"):
            await module.ready()
        await until_state(module, "failed")
        assert pauses == [min(LONGEST_PAUSE, FIRST_PAUSE * 2**n) for n in range(GIVE_UP)]
        # a call is reason enough for another try
        with pytest.raises(CapabilityError, match="exit status 3"):
            await module.ready()
        await until(lambda: len(pauses) == GIVE_UP + 1)
        await module.close()

    asyncio.run(main())


def test_a_module_that_dies_in_a_call_gives_unknown_and_runs_once(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        desk = Desk(tmp_path)
        try:
            outcome = await desk.perform(provider, "odd.crash")
            assert outcome.state == "unknown"
            assert "was not repeated" in outcome.text
            assert "the odd server starts" in outcome.text  # its last lines
            assert runs(tmp_path, "crash") == 1
            # it is started again by itself
            assert (await desk.perform(provider, "odd.echo", text="back")).text == "back"
            assert runs(tmp_path, "started") == 2
        finally:
            await provider.close()

    asyncio.run(main())


def test_what_may_be_repeated_is_repeated(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        try:
            outcome = await Desk(tmp_path).perform(provider, "odd.crash_once")
            assert (outcome.state, outcome.text) == ("done", "alive")
            assert runs(tmp_path, "crash_once") == 2
        finally:
            await provider.close()

    asyncio.run(main())


def test_a_person_may_say_that_a_tool_can_be_repeated(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path, idempotent=("crash",))], sleep=lambda s: asyncio.sleep(0))
        try:
            outcome = await Desk(tmp_path).perform(provider, "odd.crash")
            assert outcome.state == "failed"
            assert "lost 3 times" in outcome.text
            assert runs(tmp_path, "crash") == 3
        finally:
            await provider.close()

    asyncio.run(main())


def test_a_call_that_never_left_is_put_back(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        desk = Desk(tmp_path)
        module = provider.module("odd")
        try:
            await module.ready()
            assert module.pid is not None
            os.killpg(module.pid, signal.SIGKILL)
            await until(lambda: module.state != "ready")
            calls = [desk.perform(provider, "odd.echo", text=str(n)) for n in range(3)]
            assert [outcome.text for outcome in await asyncio.gather(*calls)] == ["0", "1", "2"]
            assert runs(tmp_path, "echo") == 3
        finally:
            await provider.close()

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
def test_a_call_that_outlives_its_deadline_is_cancelled_and_told(tmp_path: Path, protocol: str) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path, deadline=6.0, protocol=protocol)])
        desk = Desk(tmp_path)
        try:
            await provider.module("odd").ready()
            began = time.monotonic()
            provider.module("odd").spec = odd(tmp_path, deadline=0.5, protocol=protocol)
            outcome = await desk.perform(provider, "odd.hang")
            assert time.monotonic() - began < 3
            assert outcome.state == "unknown"
            assert "no result within 0.5 seconds" in outcome.text
            await until(lambda: runs(tmp_path, "hang_stopped") == 1)
            assert (await desk.perform(provider, "odd.echo", text="on")).text == "on"
        finally:
            await provider.close()

    asyncio.run(main())


def test_stop_ends_a_call_within_a_second_and_the_module_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        desk = Desk(tmp_path)
        try:
            await provider.module("odd").ready()
            task = asyncio.create_task(desk.perform(provider, "odd.hang"))
            await until(lambda: runs(tmp_path, "hang") == 1)
            began = time.monotonic()
            task.cancel()
            # not confirmed: MCP does not tell whether a server has stopped
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 1
            await until(lambda: runs(tmp_path, "hang_stopped") == 1)
            assert (await desk.perform(provider, "odd.echo", text="on")).text == "on"
            assert runs(tmp_path, "started") == 1
        finally:
            await provider.close()

    asyncio.run(main())


def test_closing_in_a_call_leaves_one_outcome(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        task = asyncio.create_task(Desk(tmp_path).perform(provider, "odd.hang"))
        await until(lambda: runs(tmp_path, "hang") == 1)
        await provider.close()
        assert (await task).state == "unknown"

    asyncio.run(main())


def test_a_closing_that_is_cancelled_is_finished_all_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        module = Module(odd(tmp_path))
        await module.ready()
        pid = module.pid
        assert pid is not None
        closing = asyncio.create_task(module.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not alive(pid)

    asyncio.run(main())


def test_closing_ends_all_that_the_module_started(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        outcome = await Desk(tmp_path).perform(provider, "odd.spawn")
        child, module = int(outcome.text), provider.module("odd").pid
        assert module is not None
        assert alive(child)
        await provider.close()
        assert not alive(module)
        assert not alive(child)

    asyncio.run(main())


OWNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from module_parts import Desk, odd
from textor.capabilities.modules.provider import ModulesProvider

async def main():
    marks = Path({marks!r})
    provider = ModulesProvider([odd(marks)])
    outcome = await Desk(marks).perform(provider, "odd.spawn")
    print(outcome.text, provider.module("odd").pid, flush=True)
    if {raises}:
        raise RuntimeError("we fail")
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["SIGKILL", "SIGTERM", "SIGINT", "exception"])
def test_however_we_end_nothing_is_left(tmp_path: Path, way: str) -> None:
    source = OWNER.format(here=str(HERE), marks=str(tmp_path), raises=way == "exception")
    owner = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert owner.stdout is not None
    child, launcher = (int(word) for word in owner.stdout.readline().split())
    if way != "exception":
        owner.send_signal(getattr(signal, way))
    owner.wait(20)
    owner.stdout.close()
    asyncio.run(until(lambda: not alive(child) and not alive(launcher), 5))


def test_a_killed_launcher_takes_its_module_along(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        desk = Desk(tmp_path)
        try:
            await desk.perform(provider, "odd.echo", text="x")
            launcher = provider.module("odd").pid
            assert launcher is not None
            children = Path(f"/proc/{launcher}/task/{launcher}/children")
            if not children.exists():
                return  # only Linux tells a program that its parent died
            server = int(children.read_text())
            os.kill(launcher, signal.SIGKILL)
            await until(lambda: not alive(server), 5)
            # a call that meets it before its end was noticed is lost, and is not repeated
            await until(lambda: provider.module("odd").pid != launcher)
            assert (await desk.perform(provider, "odd.echo", text="again")).text == "again"
        finally:
            await provider.close()

    asyncio.run(main())


def test_a_module_that_closes_its_stdout_is_lost_and_ended(tmp_path: Path) -> None:
    async def main() -> None:
        # answers the start like the raw server, then closes stdout and stays
        tools = tmp_path / "tools.json"
        tools.write_text('[{"name": "t", "inputSchema": {"type": "object"}}]')
        called = 'if method == "tools/call":'
        closes = "\n        __import__('os').close(1); __import__('time').sleep(1000)"
        source = (HERE / "raw_server.py").read_text().replace(called, called + closes)
        file = tmp_path / "closing.py"
        file.write_text(source)
        provider = ModulesProvider([ModuleSpec("raw", (sys.executable, str(file), str(tools)))])
        try:
            began = time.monotonic()
            await provider.module("raw").ready()
            outcome = await Desk(tmp_path).perform(provider, "raw.t")
            assert outcome.state == "unknown"
            assert time.monotonic() - began < 10
        finally:
            await provider.close()

    asyncio.run(main())


def test_an_http_server_that_dies_in_a_call_gives_unknown(tmp_path: Path) -> None:
    async def main() -> None:
        server = HttpServer(tmp_path)
        provider = ModulesProvider([ModuleSpec("odd", address=server.address)])
        desk = Desk(tmp_path)
        try:
            assert (await desk.perform(provider, "odd.echo", text="x")).text == "x"
            outcome = await desk.perform(provider, "odd.crash")
            assert outcome.state == "unknown"
            assert runs(tmp_path, "crash") == 1
            # now it is down, and the reason is told
            outcome = await desk.perform(provider, "odd.echo", text="x")
            assert outcome.state == "failed"
            assert "does not answer" in outcome.text
            # it comes back at the same address
            with HttpServer(tmp_path, server.port):
                await until_state(provider.module("odd"), "ready")
                assert (await desk.perform(provider, "odd.echo", text="y")).text == "y"
        finally:
            server.kill()
            await provider.close()

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
def test_an_http_server_that_was_restarted_gets_the_call(tmp_path: Path, protocol: str) -> None:
    """An older protocol has sessions, which a new process does not know; a call is then put back."""

    async def main() -> None:
        server = HttpServer(tmp_path)
        provider = ModulesProvider([ModuleSpec("odd", address=server.address, protocol=protocol)])
        desk = Desk(tmp_path)
        try:
            await desk.perform(provider, "odd.echo", text="x")
            server.kill()
            with HttpServer(tmp_path, server.port):
                outcome = await desk.perform(provider, "odd.echo", text="y")
                assert (outcome.state, outcome.text) == ("done", "y")
                assert runs(tmp_path, "echo") == 2
        finally:
            server.kill()
            await provider.close()

    asyncio.run(main())


def test_a_server_that_we_start_and_reach_at_an_address(tmp_path: Path) -> None:
    async def main() -> None:
        port = free_port()
        spec = odd(tmp_path)
        spec = ModuleSpec("odd", (*spec.command, "--http", str(port)), address=f"http://127.0.0.1:{port}/mcp")
        provider = ModulesProvider([spec])
        desk = Desk(tmp_path)
        try:
            assert (await desk.perform(provider, "odd.echo", text="x")).text == "x"
            assert (await desk.perform(provider, "odd.crash")).state == "unknown"
            assert (await desk.perform(provider, "odd.echo", text="y")).text == "y"
            module = provider.module("odd").pid
        finally:
            await provider.close()
        assert module is not None
        assert not alive(module)

    asyncio.run(main())


def test_an_idle_module_is_ended_and_comes_back(tmp_path: Path) -> None:
    now = [0.0]
    naps: list[asyncio.Event] = []

    async def sleep(seconds: float) -> None:
        naps.append(asyncio.Event())
        await naps[-1].wait()

    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path, idle=60.0)], clock=lambda: now[0], sleep=sleep)
        desk, module = Desk(tmp_path), provider.module("odd")
        try:
            assert (await desk.perform(provider, "odd.echo", text="x")).text == "x"
            await until(lambda: naps)
            now[0] = 61.0
            naps[-1].set()
            await until_state(module, "off")
            assert module.known
            assert (await desk.perform(provider, "odd.echo", text="y")).text == "y"
            assert runs(tmp_path, "started") == 2
        finally:
            await provider.close()

    asyncio.run(main())


def test_many_calls_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([odd(tmp_path)])
        desk = Desk(tmp_path)
        try:
            outcomes = await asyncio.gather(
                *(desk.perform(provider, "odd.echo", text=f"n{n}") for n in range(50))
            )
            assert [outcome.text for outcome in outcomes] == [f"n{n}" for n in range(50)]
        finally:
            await provider.close()

    asyncio.run(main())


def test_secrets_of_our_environment_do_not_reach_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "secret-1")
    monkeypatch.setenv("OTHER_TOKEN", "secret-2")
    file = tmp_path / "env.txt"
    command = ("sh", "-c", f"env > {file}; exit 1")

    async def start(**more: Any) -> str:
        module = Module(ModuleSpec("m", command, **more), sleep=_for_ever)
        try:
            with pytest.raises(CapabilityError) as caught:
                await module.ready()
            return str(caught.value)
        finally:
            await module.close()

    asyncio.run(start(env={"TOKEN": "${OTHER_TOKEN}", "PLAIN": "x"}))
    told = file.read_text()
    assert "secret-1" not in told
    assert "TOKEN=secret-2" in told.splitlines()
    assert "PLAIN=x" in told
    assert "needs the environment variable NOT_SET_HERE" in asyncio.run(start(env={"A": "${NOT_SET_HERE}"}))


def test_nothing_heavy_is_imported_before_a_module_is_started() -> None:
    source = (
        "import sys, textor.capabilities.modules.provider, textor.capabilities.modules.following\n"
        "print([name for name in ('mcp', 'pydantic', 'httpx2', 'anyio') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_module_in_a_container_is_run_by_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ModuleSpec("m", ("serve", "--x"), env={"TOKEN": "t"}, cwd="/srv", placement="container:img:1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CapabilityError, match="neither docker nor podman"):
        placed(spec)
    engine = tmp_path / "podman"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    words = placed(spec)
    assert words[:3] == [str(engine), "run", "--rm"]
    assert words[-7:] == ["--env", "TOKEN", "--workdir", "/srv", "img:1", "serve", "--x"]
    assert "t" not in words  # a list of processes shows no value


def test_the_box_is_run_by_our_own_python() -> None:
    words = placed(ModuleSpec("m", ("textor:files", "--root", "x")))
    # -P: nothing that lies in the workspace is taken for one of our packages
    assert words == [sys.executable, "-P", "-m", "textor.modules.files", "--root", "x"]
