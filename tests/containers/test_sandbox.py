"""Commands in a sandbox by container: the same promises as bubblewrap keeps."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from textor.actions import Outcome
from textor.capabilities.doors import Door
from textor.capabilities.processes import Limits
from textor.capabilities.sandbox import find_sandbox
from textor.capabilities.shell import ShellProvider
from textor.containers.engine import Engine
from textor.containers.labels import INSTANCE, KIND, SANDBOX, this_process
from textor.containers.proxy import NetworkDoor, allows
from textor.containers.sandbox import ContainerSandbox

from .conftest import SANDBOX as IMAGE
from .conftest import Desk, ours

Run = Callable[..., Awaitable[Outcome]]


def play(
    engine: Engine,
    desk: Desk,
    scene: Callable[[Run], Awaitable[Any]],
    limits: Limits | None = None,
) -> Any:
    """Run a scene with `run(command, **arguments)`; no container of ours is left after it."""

    async def whole() -> Any:
        shell = ShellProvider(ContainerSandbox(engine, IMAGE, this_process()), limits)

        async def run(command: str, **arguments: Any) -> Outcome:
            return await desk.perform(shell, "shell.run", command=command, **arguments)

        try:
            return await scene(run)
        finally:
            await shell.close()
            assert await engine.list({INSTANCE: this_process().instance, KIND: SANDBOX}) == []

    return asyncio.run(whole())


def one(engine: Engine, desk: Desk, command: str, limits: Limits | None = None, **arguments: Any) -> Outcome:
    return play(engine, desk, lambda run: run(command, **arguments), limits)


def test_exit_status_and_output_in_order(engine: Engine, desk: Desk) -> None:
    async def scene(run: Run) -> None:
        done = await run("echo out; echo err >&2; echo é > made; exit 3")
        assert (done.state, done.exit_status, done.text) == ("done", 3, "exit status 3\nout\nerr")
        assert (await run("pwd; cat made; cat")).text == f"exit status 0\n{desk.workspace}\né"
        assert (desk.workspace / "made").stat().st_uid == os.getuid()
        assert (await run("kill -9 $$")).exit_status == 137
        assert (await run("no-such-program")).exit_status == 127
        assert (await run("cat <<'E'\n$HOME `x` \"'\\n\nE")).text == "exit status 0\n$HOME `x` \"'\\n"
        assert (await run("printf 'a\\0\\377b'")).text == "exit status 0\na��b"

    play(engine, desk, scene)


def test_only_the_workspace_is_there_and_nothing_of_a_command_stays(
    engine: Engine, desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("sk-1")
    (desk.workspace / "out").symlink_to(tmp_path / "secret")
    (desk.workspace / ".ssh").mkdir()
    (desk.workspace / ".ssh" / "id").write_text("sk-1")
    (desk.workspace / ".netrc").write_text("sk-1")

    async def scene(run: Run) -> None:
        outside = f"cat {tmp_path}/secret"
        for command in (outside, "cat out", "touch /usr/new", "touch /new", "mount -t tmpfs x /usr"):
            assert (await run(command)).exit_status != 0, command
        assert "sk-1" not in (await run("cat .ssh/* .netrc; env; cat /proc/*/environ")).text
        assert (await run("touch /tmp/x && ls /tmp")).exit_status == 0
        assert (await run("ls /tmp/x")).exit_status != 0
        background = await run("sleep 600 & echo back")
        assert background.text == "exit status 0\nback"
        assert "sleep" not in (await run("cat /proc/[0-9]*/comm")).text

    play(engine, desk, scene)


def test_what_runs_outside_by_itself_cannot_be_changed(engine: Engine, desk: Desk) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(desk.workspace), *words], check=True)

    async def scene(run: Run) -> None:
        git("init", "-q")
        git("init", "-q", "sub")
        config = desk.workspace / ".git" / "config"
        before = config.read_bytes()
        for attack in (
            "echo evil >> .git/config",
            "echo evil > x && mv x .git/config",
            "echo evil > .git/hooks/pre-commit",
            "mv .git old",
            "echo evil > sub/.git/config",
        ):
            assert (await run(attack)).exit_status != 0, attack
        assert config.read_bytes() == before
        git("config", "user.name", "A")  # the warm container has the file that this one took the place of
        assert (await run("echo evil >> .git/config")).exit_status != 0
        assert "A" in config.read_text() and "evil" not in config.read_text()
        done = await run("echo x > .git/index.lock && mv .git/index.lock .git/index && echo > .git/commondir")
        assert done.exit_status == 0 and "moved aside" in done.text

    play(engine, desk, scene)


def test_a_timeout_and_a_cancelling_end_all(engine: Engine, desk: Desk) -> None:
    async def scene(run: Run) -> None:
        stopped = await run("trap '' TERM; echo before; sleep 600 | sleep 600", timeout=0.5)
        assert (stopped.state, stopped.exit_status) == ("failed", None)
        assert stopped.text == "stopped after 0.5 s (timeout)\nbefore"
        for times in (1, 2):
            desk.shown.clear()
            task = asyncio.create_task(run("echo up; sleep 600"))
            while not desk.shown:  # noqa: ASYNC110 - the line comes from inside
                await asyncio.sleep(0)
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
            outcome = await task
            assert outcome.state == "cancelled"
            assert outcome.text == "cancelled; all its processes are ended\nup"

    play(engine, desk, scene)


def test_limits_hold(engine: Engine, desk: Desk) -> None:
    limits = Limits(memory=100 << 20, processes=40)

    async def scene(run: Run) -> None:
        greedy = await run("python3 -c 'x = bytearray(10_000_000_000)'")
        assert greedy.state == "failed"
        assert greedy.text == "stopped: it used more than 100 MiB of memory"
        # each of the four keeps within the limit of one; together they do not
        program = "x = b'x' * 40_000_000; __import__('signal').pause()"
        together = await run(f'for i in 1 2 3 4; do python3 -c "{program}" & done; wait')
        assert together.text.startswith("stopped: it used more than 100 MiB of memory")
        bomb = await run("f() { f | f & }; f; sleep 600", timeout=2)
        assert bomb.text.startswith("stopped after 2 s")
        assert "Resource temporarily unavailable" in bomb.text
        assert (await run("echo well")).text == "exit status 0\nwell"
        endless = await run("yes", timeout=0.3)
        assert endless.values[0].size <= 8_000_100

    play(engine, desk, scene, limits)


def test_commands_go_on_when_their_containers_are_removed(engine: Engine, desk: Desk) -> None:
    async def scene(run: Run) -> None:
        for n in range(12):
            if n % 4 == 2:
                for state in await engine.list({INSTANCE: this_process().instance, KIND: SANDBOX}):
                    await engine.remove(state.id)
            assert (await run(f"echo {n}")).text == f"exit status 0\n{n}"
        task = asyncio.create_task(run("echo up; sleep 600"))
        desk.shown.clear()
        while not desk.shown:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for state in await engine.list({INSTANCE: this_process().instance, KIND: SANDBOX}):
            await engine.remove(state.id)
        lost = await task
        assert lost.state == "failed"
        assert "ended from outside" in lost.text
        assert (await run("echo well")).text == "exit status 0\nwell"

    play(engine, desk, scene)


def test_what_cannot_be_made_is_said(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def told(sandbox: ContainerSandbox, workspace: Path) -> str:
        shell = ShellProvider(sandbox)
        try:
            return (await Desk(workspace).perform(shell, "shell.run", command="true")).text
        finally:
            await shell.close()

    owner = this_process()
    missing = ContainerSandbox(engine, "textor/none:test", owner)
    assert "The sandbox cannot be made" in asyncio.run(told(missing, desk.workspace))
    gone = ContainerSandbox(Engine(f"unix://{tmp_path}/none"), IMAGE, owner)
    assert "does not answer" in asyncio.run(told(gone, desk.workspace))
    assert "whole file system" in asyncio.run(told(ContainerSandbox(engine, IMAGE, owner), Path("/")))


# -- programs that stay ----------------------------------------------------------------------


def test_a_command_with_its_input_and_output(engine: Engine, desk: Desk) -> None:
    sandbox = ContainerSandbox(engine, IMAGE, this_process())
    argv = sandbox.command(["sh", "-c", "read x; echo got $x; echo err >&2; cat; exit 5"], desk.workspace)
    done = subprocess.run(argv, input="one\ntwo\n", capture_output=True, text=True, env=sandbox.env)
    assert (done.returncode, done.stdout, done.stderr) == (5, "got one\ntwo\n", "err\n")
    none = sandbox.command(["no-such-program"], desk.workspace)
    failed = subprocess.run(none, capture_output=True, text=True, env=sandbox.env, stdin=subprocess.DEVNULL)
    assert failed.returncode == 125
    assert "no-such-program" in failed.stderr
    assert not [name for name in ours() if "sandbox" in name]


@pytest.mark.parametrize("whom", ["worker", "supervisor", "starter"])
def test_whoever_is_killed_no_container_stays(engine: Engine, desk: Desk, whom: str) -> None:
    sandbox = ContainerSandbox(engine, IMAGE, this_process())
    argv = sandbox.command(["sh", "-c", "echo up; sleep 600"], desk.workspace)
    starter = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    process = subprocess.Popen(
        [sys.executable, "-c", starter, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=sandbox.env,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"up\n"
    supervisor = child_of(process.pid)
    if whom == "worker":
        os.kill(child_of(supervisor), signal.SIGKILL)
    elif whom == "supervisor":
        os.kill(supervisor, signal.SIGTERM)
    else:
        process.kill()
    assert process.stdout.read() == b""  # its end comes when the last that holds it is gone
    process.wait(30)
    process.stdin.close()
    assert not [name for name in ours() if "sandbox" in name]


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


# -- the way out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("pypi.org", "pypi.org", 443, True),
        ("pypi.org", "PyPI.org.", 80, True),
        ("pypi.org", "pypi.org", 22, False),
        ("pypi.org:22", "pypi.org", 22, True),
        ("pypi.org:22", "pypi.org", 443, False),
        ("pypi.org", "evilpypi.org", 443, False),
        ("pypi.org", "pypi.org.evil.net", 443, False),
        ("*.pypi.org", "files.pypi.org", 443, True),
        ("*.pypi.org", "pypi.org", 443, False),
        ("*.pypi.org", ".pypi.org", 443, False),
        ("[::1]:8080", "::1", 8080, True),
    ],
)
def test_rules_of_hosts(rule: str, host: str, port: int, allowed: bool) -> None:
    assert allows(rule, host, port) is allowed


FETCH = "import urllib.request as u; print(u.urlopen('http://{}/x?y=1', timeout=20).read().decode())"


TUNNEL = "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT {} HTTP/1.1\\r\\n\\r\\n' >&3; head -n 1 <&3"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    host = next(line for line in lines if line.lower().startswith("host:"))
    text = f"{lines[0]} {host.split(':')[1].strip()}"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("kind", ["container", "bubblewrap"])
def test_the_network_by_list(request: pytest.FixtureRequest, desk: Desk, kind: str) -> None:
    engine = request.getfixturevalue("engine") if kind == "container" else None

    async def whole() -> None:
        server = await asyncio.start_server(answer, "127.0.0.2", 0)
        port = server.sockets[0].getsockname()[1]
        door = NetworkDoor([f"127.0.0.2:{port}"])
        await door.start()
        container = ContainerSandbox(engine, IMAGE, this_process(), door) if engine is not None else None
        shell = ShellProvider(container or find_sandbox(door))

        async def run(command: str) -> Outcome:
            return await desk.perform(shell, "shell.run", command=command)

        try:
            good = await run(f'python3 -c "{FETCH.format(f"127.0.0.2:{port}")}"')
            assert good.text == "exit status 0\nGET /x?y=1 HTTP/1.1 127.0.0.2"
            other = await run(f'python3 -c "{FETCH.format(f"127.0.0.3:{port}")}"')
            assert "HTTP Error 403" in other.text
            past = await run(f"exec 3<>/dev/tcp/127.0.0.2/{port}")  # not through the proxy
            assert past.exit_status != 0
            assert "200 Connection" in (await run(TUNNEL.format(f"127.0.0.2:{port}"))).text
            assert "403 Refused" in (await run(TUNNEL.format("127.0.0.2:22"))).text
            assert "400 Refused" in (await run(TUNNEL.format("127.0.0.2:99999"))).text
        finally:
            server.close()
            await shell.close()

    asyncio.run(whole())


def test_a_name_below_an_allowed_one_cannot_point_home() -> None:
    async def ask() -> str:
        door = NetworkDoor(["*.localhost:*", "*.localhost:8080"])
        await door.start()
        try:
            reader, writer = await asyncio.open_unix_connection(door.socket("proxy.sock"))
            writer.write(b"CONNECT x.localhost:8080 HTTP/1.1\r\n\r\n")
            answer = (await reader.read()).decode()
            writer.close()
            return answer
        finally:
            door.close()

    answer = asyncio.run(ask())
    assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 502"))  # 502 where the name is not known


def test_a_door_leaves_nothing() -> None:
    door = Door([("tcp:1", "unix:/x")])
    assert (door.folder / "relay.py").exists()
    assert (door.folder.stat().st_mode & 0o777) == 0o700
    door.close()
    assert not door.folder.exists()
