"""The container capabilities on the real engine. What waits here, waits for a container."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from textor.actions import Outcome
from textor.containers import container as containers
from textor.containers.engine import Allowance, Engine
from textor.containers.labels import this_process
from textor.containers.provider import KEPT, ContainersProvider
from textor.containers.specs import Rules

from .conftest import BASE, BUSYBOX, Desk, ours


@asynccontextmanager
async def opened(engine: Engine, rules: Rules | None = None) -> AsyncIterator[ContainersProvider]:
    provider = ContainersProvider(engine, this_process(), rules)
    try:
        yield provider
    finally:
        await provider.close()


def play(
    engine: Engine,
    desk: Desk,
    scene: Callable[[Callable[..., Awaitable[Outcome]], ContainersProvider], Awaitable[Any]],
    rules: Rules | None = None,
) -> Any:
    """Run a scene with `do(capability, **arguments)`; nothing of the desk's session is left after it."""

    async def run() -> Any:
        async with opened(engine, rules) as provider:

            async def do(what: str, /, **arguments: Any) -> Outcome:
                return await desk.perform(provider, what, **arguments)

            return await scene(do, provider)

    result = asyncio.run(run())
    assert [name for name in ours() if desk.session in name] == []
    return result


def short(script: str, **more: Any) -> dict[str, Any]:
    return {
        "image": BUSYBOX,
        "name": "it",
        "command": "sh",
        "parameters": ["-c", script],
        "timeout": 20_000,
        **more,
    }


def long(script: str, **more: Any) -> dict[str, Any]:
    return short(script, **more) | {"timeout": 0}


def start(engine: Engine, desk: Desk, script: str, rules: Rules | None = None, **more: Any) -> Outcome:
    return play(engine, desk, lambda do, _: do("start_container", **short(script, **more)), rules)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    while not condition():  # noqa: ASYNC110 - what is waited for is the engine's, and tells nobody
        await asyncio.sleep(0)


# -- short-lived ---------------------------------------------------------------------------


def test_exit_status_and_output_are_the_outcome(engine: Engine, desk: Desk) -> None:
    done = start(engine, desk, "echo out; echo err >&2; exit 3")
    assert (done.state, done.exit_status) == ("done", 3)
    assert sorted(done.text.splitlines()) == ["err", "exit status 3", "out"]  # two pipes: in any order


def test_it_can_do_nothing_to_anybody(engine: Engine, desk: Desk) -> None:
    script = "id -u; touch /x; touch /tmp/x && echo tmp; ls /sys/class/net; "
    script += "grep -E 'Cap|NoNew' /proc/self/status"
    text = start(engine, desk, script).text
    assert "\n65534\n" in text
    assert "Read-only file system" in text
    assert "\ntmp\nlo\n" in text  # no network but its own
    assert re.findall(r"Cap\w+:\t(\w+)", text) == ["0000000000000000"] * 5
    assert "NoNewPrivs:\t1" in text


def test_an_endless_program_is_stopped_as_told(engine: Engine, desk: Desk) -> None:
    stopped = start(engine, desk, "echo before; while :; do :; done", timeout=300)
    assert stopped.state == "failed"
    assert stopped.text == "exit status 137; stopped after 300 ms (timeout)\nbefore"


def test_the_bounds_are_exact_about_memory_and_processes(engine: Engine, desk: Desk) -> None:
    rules = Rules(allowance=Allowance(memory=64 << 20, processes=20))
    greedy = {"image": BASE, "command": "python3", "parameters": ["-c", "x = b'x' * 10_000_000_000"]}
    text = start(engine, desk, "", rules, **greedy).text
    assert "exit status 137; stopped: it used more memory than it may" in text or "MemoryError" in text
    bomb = start(engine, desk, "f() { f | f & }; f; echo over; sleep 600", rules, timeout=1500)
    assert "can't fork" in bomb.text
    assert start(engine, desk, "echo well").text == "exit status 0\nwell"


def test_there_is_no_network(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, _: Any) -> Outcome:
        server = await asyncio.start_server(lambda r, w: w.close(), "0.0.0.0", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            calls = [f"nc -w 2 {host} {port} </dev/null" for host in ("127.0.0.1", "172.17.0.1")]
            return await do("start_container", **short("; ".join(calls)))

    done = play(engine, desk, scene)
    assert done.exit_status == 1
    assert done.text.count("nc:") == 2


def test_cancelling_is_confirmed(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> Outcome:
        task = asyncio.create_task(do("start_container", **short("trap '' TERM; read x")))
        await until(lambda: [row.status for row in provider.snapshot(desk.session)] == ["running"])
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        return await task

    outcome = play(engine, desk, scene)
    assert (outcome.state, outcome.text) == ("cancelled", "cancelled; the container it is stopped")


def test_big_output_is_a_value(engine: Engine, desk: Desk) -> None:
    done = start(engine, desk, "seq 20000")
    [value] = done.values
    assert desk.blobs.get(value.blob).decode().split() == [str(n) for n in range(1, 20001)]
    assert done.text.startswith("exit status 0\n1\n2\n")


def test_only_the_newest_that_have_ended_are_kept(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> None:
        for n in range(KEPT + 2):
            await do("start_container", **short("true", name=f"n{n}"))
        assert [row.name for row in provider.snapshot(desk.session)] == [f"n{n}" for n in range(2, KEPT + 2)]

    play(engine, desk, scene)


# -- long-lived ----------------------------------------------------------------------------


def test_a_talk_with_a_program(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, _: Any) -> None:
        script = "printf 'name? '; read n; echo hello $n; echo hm >&2; read x; exit 4"
        assert (await do("start_container", **long(script))).text == "The container it is running."
        prompt = await do("read_stdout", name="it", timeout=20_000)
        assert prompt.text == "6 bytes, 0 left; running\nname? "
        assert (await do("write_stdin", name="it", text="Zoë\n")).data == {"bytes": 5}
        first = await do("read_stdout", name="it", n=8, timeout=20_000)
        assert first.text.endswith("; running\nhello Zo")
        second = await do("read_stdout", name="it", timeout=20_000)
        assert second.text == "3 bytes, 0 left; running\në\n"
        assert (await do("read_stderr", name="it", timeout=20_000)).text.endswith("\nhm\n")
        waiting = await do("wait_container", name="it", timeout=1)
        assert (waiting.exit_status, waiting.text.split(";")[0]) == (None, "it is running")
        await do("write_stdin", name="it", text="\n")
        over = await do("wait_container", name="it")
        assert (over.exit_status, over.text.split(";")[0]) == (4, "it is finished: exit status 4")

    play(engine, desk, scene)


def test_a_silent_program_is_read_on(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, _: Any) -> None:
        await do("start_container", **long("read x; echo woke"))
        for _ in range(3):
            silent = await do("read_stdout", name="it", timeout=20)
            assert silent.text == "0 bytes, 0 left; running"
        await do("write_stdin", name="it", text="\n")
        assert (await do("read_stdout", name="it", timeout=20_000)).text.endswith("\nwoke\n")

    play(engine, desk, scene)


def test_a_full_buffer_holds_the_writer_up_and_loses_nothing(
    engine: Engine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "FULL", 100_000)

    async def scene(do: Any, provider: ContainersProvider) -> None:
        await do("start_container", **long("seq 300000; read x"))
        read, counted = "", 0
        while not read.endswith("\n300000\n"):
            outcome = await do("read_stdout", name="it", n=50_000, timeout=20_000)
            text = outcome.text.partition("\n")[2]
            counted += outcome.data["bytes"]
            assert outcome.data["left"] < 2_000_000  # what was under way when it was paused
            read += text
        assert counted == len(read)
        assert read.split() == [str(n) for n in range(1, 300_001)]

    play(engine, desk, scene)


def test_what_was_read_while_the_engine_is_away_is_not_lost_and_the_writer_goes_on(
    engine: Engine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "FULL", 100_000)
    own = Engine(engine.client.address)

    async def scene(do: Any, provider: ContainersProvider) -> None:
        await do("start_container", **long("seq 300000; read x"))
        container = provider._find("it", desk.session)
        while not container._paused:  # noqa: ASYNC110 - the program fills it
            await asyncio.sleep(0.05)
        own.client.address = "unix:///nowhere/engine.sock"
        read, left = "", 1
        while left:
            outcome = await do("read_stdout", name="it", n=50_000)
            assert outcome.state == "done", outcome.text
            read, left = read + outcome.text.partition("\n")[2], outcome.data["left"]
        own.client.address = engine.client.address
        async with asyncio.timeout(60):
            while not read.endswith("\n300000\n"):
                outcome = await do("read_stdout", name="it", n=50_000, timeout=1_000)
                read += outcome.text.partition("\n")[2]
        assert read.split() == [str(n) for n in range(1, 300_001)]

    play(own, desk, scene)


def test_stop_remove_and_names(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> None:
        await do("start_container", **long("trap 'echo bye; exit 7' TERM; echo up; while :; do read x; done"))
        await do("read_stdout", name="it", timeout=20_000)
        again = await do("start_container", **long("true"))
        assert "A container it is running already." in again.text
        stopped = await do("stop_container", name="it")
        assert stopped.exit_status == 7
        assert stopped.text == "it has ended: exit status 7; stopped by the agent."
        assert (await do("read_stdout", name="it")).text == "4 bytes, 0 left; finished\nbye\n"
        twice = await do("stop_container", name="it")
        assert (twice.text, twice.exit_status) == ("it has ended.", 7)
        replaced = await do("start_container", **short("echo new"))
        assert replaced.text == "exit status 0\nnew"
        assert (await do("remove_container", name="it")).text == "it is removed."
        assert (await do("remove_container", name="it")).text == "There is no container it."
        wrong = await do("read_stdout", name="itt")
        assert wrong.state == "failed"
        assert "There is no container 'itt'" in wrong.text
        assert (await do("list_containers")).text == "There are no containers."

    play(engine, desk, scene)


def test_a_port_is_reached_although_there_is_no_network(engine: Engine, desk: Desk) -> None:
    (desk.workspace / "site").mkdir()
    (desk.workspace / "site" / "index.html").write_text("hello web")

    async def scene(do: Any, provider: ContainersProvider) -> None:
        server = {"parameters": ["-f", "-p", "8080", "-h", "/site"], "command": "httpd"}
        started = await do("start_container", **long("", **server, volumes=["site:/site:ro"], ports=["8080"]))
        port = int(re.search(r"port 8080 is 127\.0\.0\.1:(\d+)", started.text)[1])
        answers = await asyncio.gather(*(get(port, "/") for _ in range(4)))
        assert all(answer.endswith("hello web") for answer in answers)
        assert "404 Not Found" in await get(port, "/none")

    play(engine, desk, scene)


async def get(port: int, path: str) -> str:
    for _ in range(100):  # until the server inside listens
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        if answer:
            return answer
    raise AssertionError("nobody answers")


def test_volumes_are_the_workspace_and_stay_ours(engine: Engine, desk: Desk) -> None:
    done = start(engine, desk, "echo made > /w/made.txt; echo x > /r/no", volumes=[".:/w", ".:/r:ro"])
    assert "Read-only file system" in done.text
    made = desk.workspace / "made.txt"
    assert (made.read_text(), made.stat().st_uid) == ("made\n", os.getuid())
    outside = start(engine, desk, "true", volumes=["/etc:/e"])
    assert outside.state == "failed"
    assert "no workspace or shared folder" in outside.text


def test_secrets_are_masked_everywhere(engine: Engine, desk: Desk) -> None:
    environment = {"API_KEY": "sk-123456", "PLAIN": "seen"}

    async def scene(do: Any, provider: ContainersProvider) -> None:
        texts = [await do("start_container", **long("env; read x", environment=environment))]
        texts.append(await do("read_stdout", name="it", timeout=20_000))
        texts.append(await do("list_containers"))
        told = json.dumps([[o.text, o.data] for o in texts]) + repr(provider.snapshot(desk.session))
        assert "sk-123456" not in told
        assert told.count("seen") >= 3

    play(engine, desk, scene)


def test_the_status_part(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> None:
        await do("start_container", **long("printf abc; printf de >&2; read x", description="a test"))
        await do("read_stdout", name="it", n=1, timeout=20_000)
        await do("read_stderr", name="it", n=1, timeout=20_000)
        [row] = provider.snapshot(desk.session)
        assert (row.name, row.description, row.status) == ("it", "a test", "running")
        assert (row.stdout, row.stderr, row.final) == (2, 1, "")
        assert provider.snapshot("another session") == []

    play(engine, desk, scene)


# -- what goes wrong -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"image": "textor/none:test"}, "There is no image 'textor/none:test'"),
        ({"command": "no-such-program"}, "no-such-program"),
        ({"name": "a b"}, "no name for a container"),
        ({"ports": ["x"]}, "The port 'x'"),
        ({"environment": {"a=b": "c"}}, "no name of an environment variable"),
    ],
)
def test_what_cannot_be_started_is_said_and_leaves_nothing(
    engine: Engine, desk: Desk, arguments: dict[str, Any], says: str
) -> None:
    outcome = start(engine, desk, "true", **arguments)
    assert outcome.state == "failed"
    assert says in outcome.text


def test_images_by_list_or_gate(engine: Engine, desk: Desk) -> None:
    def capability(rules: Rules | None) -> Any:
        return asyncio.run(ContainersProvider(engine, this_process(), rules).capabilities())[0]

    assert not capability(None).sandboxed  # so the gate asks
    listed = Rules(images=["textor/busy*"])
    assert capability(listed).sandboxed
    assert start(engine, desk, "true", listed).exit_status == 0
    assert "is not allowed here" in start(engine, desk, "true", listed, image=BASE).text


def test_a_container_that_is_gone_is_said_once(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> list[Outcome]:
        await do("start_container", **long("while read x; do echo $x; done"))
        await do("write_stdin", name="it", text="first\n")
        await do("read_stdout", name="it", timeout=20_000)
        [name] = [name for name in await names(engine) if desk.session in name]
        await engine.remove(name)
        await until(lambda: provider.snapshot(desk.session)[0].status == "finished")
        return [await do("write_stdin", name="it", text="more\n") for _ in range(300)]

    outcomes = play(engine, desk, scene)
    assert {outcome.state for outcome in outcomes} == {"failed"}
    assert "the container is gone" in outcomes[0].text
    assert {outcome.text for outcome in outcomes[1:]} == {"it takes no input: it is finished."}


async def names(engine: Engine) -> list[str]:
    return [state.name for state in await engine.list({"textor.instance": ""})]


def test_the_same_action_again_finds_its_container(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> None:
        first = await do("start_container", key="k1", **short("date +%N; echo $$"))
        again = await do("start_container", key="k1", **short("date +%N; echo $$"))
        assert first.exit_status == again.exit_status == 0
        assert len(provider.snapshot(desk.session)) == 1

    play(engine, desk, scene)


def test_a_reading_that_is_repeated_gives_the_same(engine: Engine, desk: Desk) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> None:
        await do("start_container", **long("echo one; read x"))
        first = await do("read_stdout", key="r1", name="it", timeout=20_000)
        assert first.text.endswith("\none\n")
        assert await do("read_stdout", key="r1", name="it") == first

    play(engine, desk, scene)


def test_a_port_that_is_taken_leaves_no_container(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    async def scene(do: Any, provider: ContainersProvider) -> Outcome:
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await do("start_container", **long("read x", ports=[f"{port}:80"]))

    outcome = play(engine, desk, scene)
    assert outcome.state == "failed"
    assert "cannot be used" in outcome.text
