"""Real programs, and the real bubblewrap. Nothing here sleeps; what waits, waits for a process."""

import asyncio
import contextlib
import os
import sys
import threading
from pathlib import Path

import pytest

from textor.actions import Outcome
from textor.capabilities import live
from textor.capabilities import sandbox as sandboxes
from textor.capabilities import shell as shells
from textor.capabilities.live import standing
from textor.capabilities.processes import Limits, Tape, descendants
from textor.capabilities.sandbox import Bubblewrap
from textor.capabilities.shell import ShellProvider
from textor.errors import CapabilityError
from textor.values import content_of

PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(params=["host", "sandbox"])
def shell(request):
    return ShellProvider(None if request.param == "host" else request.getfixturevalue("sandbox"))


@pytest.fixture
def boxed(sandbox):
    return ShellProvider(sandbox)


def run(desk, shell, command, **arguments):
    return desk.do(shell, "shell.run", command=command, **arguments)


def still_running() -> list[int]:
    return [pid for pid in descendants(os.getpid(), 1000) if not ended(pid)]


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be asked how it ended (a program of another test)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# -- on both -------------------------------------------------------------------------------


def test_the_exit_status_is_always_told(desk, shell):
    done = run(desk, shell, "echo out; echo err >&2; exit 3")
    assert (done.state, done.exit_status, done.text) == ("done", 3, "exit status 3\nout\nerr")
    assert run(desk, shell, "true").text == "exit status 0"
    assert run(desk, shell, "kill -9 $$").exit_status == 137
    assert run(desk, shell, "no-such-program").exit_status == 127
    assert run(desk, shell, "if (").exit_status == 2


def test_it_runs_in_the_workspace_and_gets_no_input(desk, shell):
    done = run(desk, shell, "pwd; cat; echo é > made.txt")
    assert done.text == f"exit status 0\n{desk.workspace}"
    assert (desk.workspace / "made.txt").read_text() == "é\n"


def test_any_command_text_arrives_as_it_is(desk, shell):
    done = run(desk, shell, "cat <<'E'\n$HOME `x` \"'\\n\nE")
    assert done.text == "exit status 0\n$HOME `x` \"'\\n"
    assert run(desk, shell, "printf 'a\\0\\377b'").text == "exit status 0\na��b"
    assert run(desk, shell, "echo a\0b").state in ("failed", "done")  # no program can be told a NUL


def test_a_timeout_stops_it_and_keeps_what_came(desk, shell):
    stopped = run(desk, shell, "echo before; sleep 600", timeout=0.3)
    assert stopped.state == "failed"
    assert stopped.text == "stopped after 0.3 s (timeout)\nbefore"
    assert stopped.exit_status is None
    assert still_running() == []


def test_what_is_left_in_the_background_ends_with_it(desk, shell):
    assert run(desk, shell, "sleep 600 & sleep 600 & echo back").text == "exit status 0\nback"
    assert still_running() == []


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_is_confirmed(desk, shell, times):
    async def cancel():
        started = asyncio.Event()
        desk.progress = lambda text: started.set()
        task = asyncio.create_task(
            desk.perform(shell, "shell.run", command="trap '' TERM INT; echo up; sleep 600 | sleep 600")
        )
        await started.wait()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        outcome = await task
        return outcome, still_running()

    outcome, running = asyncio.run(cancel())
    assert (outcome.state, outcome.text) == ("cancelled", "cancelled; all its processes are ended\nup")
    assert running == []


def test_looking_around_in_a_big_workspace_holds_nobody_up(desk, boxed, monkeypatch):
    """Never in the thread of the loop, which all sessions share."""
    threads = []

    def noted(workspace):
        threads.append(threading.current_thread())
        return standing(workspace)

    for module in (live, sandboxes, shells):
        monkeypatch.setattr(module, "standing", noted)
    assert run(desk, boxed, "echo hi").text == "exit status 0\nhi"
    assert len(threads) == 3  # before, to shut it in, and after
    assert threading.main_thread() not in threads


def test_cancelling_at_any_moment_of_the_start_leaves_nothing(desk, shell):
    marker = desk.workspace / "ran"

    async def cancel(after: int):
        task = asyncio.create_task(desk.perform(shell, "shell.run", command=f"echo x > {marker}; sleep 600"))
        for _ in range(after):  # turns of the loop, so that the kill meets the start in many states
            await asyncio.sleep(0)
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    for after in (1, 2, 5, 10, 20, 40, 80, 150, 300, 600, 1200, 2500):
        [outcome] = asyncio.run(cancel(after))
        assert isinstance(outcome, Outcome), outcome
        assert outcome.state == "cancelled"
        assert still_running() == []
    assert processes_with(str(marker)) == []


def processes_with(text: str) -> list[str]:
    """The command lines of this machine that hold `text`; orphans of ours would be among them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if text in line:
                found.append(line)
    return found


def test_big_output_is_a_value(desk, shell):
    done = run(desk, shell, "seq 20000; exit 1")
    [value] = done.values
    assert content_of(value, desk.blobs).decode().split() == [str(n) for n in range(1, 20001)]
    assert done.text.startswith("exit status 1\n1\n2\n")
    assert done.text.endswith("\n20000")
    assert value.handle in done.text


def test_endless_output_is_bounded(desk, shell):
    stopped = run(desk, shell, "yes", timeout=0.3)
    assert stopped.values[0].size <= 8_000_100


def test_a_timeout_out_of_range_is_refused(desk, shell):
    for timeout in (0, -1, 1e9, float("nan")):
        assert run(desk, shell, "true", timeout=timeout).text.startswith("shell.run: timeout must be from")


def test_a_person_sees_the_newest_line(desk, shell):
    run(desk, shell, "echo working")
    assert desk.shown == ["working"]


# -- on the host ---------------------------------------------------------------------------


def test_secrets_of_ours_are_not_handed_on(desk, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("GITHUB_TOKEN", "sk-2")
    monkeypatch.setenv("DB_PASSWORD", "sk-3")
    monkeypatch.setenv("KEPT", "yes")
    text = run(desk, ShellProvider(None), "env").text
    assert "sk-" not in text
    assert "KEPT=yes" in text


# -- in the sandbox ------------------------------------------------------------------------


def test_the_capability_says_whether_it_is_sandboxed(sandbox):
    def told(provider):
        return asyncio.run(provider.capabilities())[0].sandboxed

    assert told(ShellProvider(sandbox))
    assert not told(ShellProvider(None))


def test_no_network(desk, boxed):
    program = "import socket; socket.create_connection(('127.0.0.1', PORT), 2)"

    async def serve_and_try():
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        command = f'{PYTHON} -c "{program.replace("PORT", str(port))}"'
        async with server:
            free = await desk.perform(ShellProvider(None), "shell.run", command=command)
            shut = await desk.perform(boxed, "shell.run", command=command)
        return free, shut

    free, shut = asyncio.run(serve_and_try())
    assert free.exit_status == 0
    assert shut.exit_status == 1
    assert "Connection refused" in shut.text or "unreachable" in shut.text


def test_only_the_workspace_can_be_written_and_little_be_read(desk, boxed, tmp_path):
    (tmp_path / "secret").write_text("sk-1")
    (desk.workspace / "out").symlink_to(tmp_path / "secret")
    for command in (
        f"cat {tmp_path}/secret",
        "cat out",
        "cat /etc/shadow",
        "ls /home",
        "touch /usr/new",
        "touch /new",
        "touch /dev/new",
        "touch /etc/new",
        "mount -t tmpfs none /usr",
    ):
        assert run(desk, boxed, command).exit_status != 0, command
    run(desk, boxed, f"touch {tmp_path}/new")  # a folder of that name is there, but a private one
    assert not (tmp_path / "new").exists()
    assert run(desk, boxed, "touch new && touch /tmp/x && echo $HOME").exit_status == 0
    assert (desk.workspace / "new").exists()
    assert not Path("/tmp/x").exists()


def test_neither_our_environment_nor_our_processes_are_seen(desk, boxed, monkeypatch):
    monkeypatch.setenv("KEPT", "sk-1")
    assert "sk-1" not in run(desk, boxed, "env; cat /proc/*/environ | tr '\\0' '\\n'").text
    assert f"\n{os.getpid()}\n" not in run(desk, boxed, "ls /proc").text
    assert run(desk, boxed, "id -u").text == f"exit status 0\n{os.getuid()}"


def test_keys_in_a_home_folder_as_workspace_are_hidden(desk, boxed):
    (desk.workspace / ".ssh").mkdir()
    (desk.workspace / ".ssh" / "id").write_text("sk-1")
    (desk.workspace / ".netrc").write_text("sk-2")
    (desk.workspace / ".bashrc").write_text("plain")
    assert "sk-" not in run(desk, boxed, "cat .ssh/* .netrc .bashrc").text
    assert "plain" in run(desk, boxed, "cat .bashrc").text
    assert (desk.workspace / ".netrc").read_text() == "sk-2"


def test_the_whole_file_system_is_no_workspace(boxed, desk):
    desk.workspace = Path("/")
    assert "whole file system" in run(desk, boxed, "true").text


def test_a_big_allocation_does_not_hurt(desk, boxed):
    done = run(desk, boxed, f'{PYTHON} -c "x = bytearray(10_000_000_000)"')
    assert done.exit_status == 1
    assert "MemoryError" in done.text


def test_memory_is_limited_over_all_processes_together(desk, sandbox):
    # each of the four keeps within the limit of one; together they do not
    program = "x = b'x' * 40_000_000; input() if False else __import__('signal').pause()"
    command = f'for i in 1 2 3 4; do {PYTHON} -c "{program}" & done; wait'
    stopped = run(desk, ShellProvider(sandbox, Limits(memory=100 << 20)), command)
    assert stopped.state == "failed"
    assert stopped.text.startswith("stopped: it used more than 100 MiB of memory")
    assert still_running() == []


def test_a_fork_bomb_does_not_hurt(desk, sandbox):
    shell = ShellProvider(sandbox, Limits(processes=40))
    # root is not bound by the kernel's own limit: the watch stops it; others are refused the fork
    ended = run(desk, shell, "f() { f | f & }; f; sleep 600", timeout=5)
    assert ended.state == "failed"
    assert ended.text.startswith("stopped")
    assert still_running() == []
    assert run(desk, shell, "echo well").text == "exit status 0\nwell"


def test_a_killed_textor_leaves_nothing_running(desk, sandbox):
    argv = sandbox.command(["sh", "-c", "echo up; exec sleep 600"], desk.workspace)
    parent = (
        "import os, subprocess, sys\n"
        "subprocess.Popen(sys.argv[1:], stdout=1)\n"
        "os.read(0, 1)\n"
        "os.kill(os.getpid(), 9)\n"
    )

    async def kill() -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", parent, *argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        assert await process.stdout.readline() == b"up\n"
        process.stdin.write(b"x")
        # the end of the output comes when the last process that holds it is gone
        rest = await asyncio.wait_for(process.stdout.read(), 30)
        await process.wait()
        process.stdin.close()
        return rest

    assert asyncio.run(kill()) == b""


def test_without_bubblewrap_there_is_no_sandbox_and_a_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandboxes.find_sandbox() is None
    assert sandboxes.why_no_sandbox() == "bubblewrap (bwrap) is not installed."
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    broken.chmod(0o755)
    assert sandboxes.find_sandbox() is None
    assert sandboxes.why_no_sandbox() == "bubblewrap does not work here: no namespaces here"


def test_the_root_folder_cannot_be_shut_in():
    with pytest.raises(CapabilityError, match="whole file system"):
        Bubblewrap("bwrap").command(["true"], Path("/"))


# -- the tape ------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_a_tape_keeps_head_and_tail_and_counts_the_rest(piece):
    content = bytes(range(65, 91)) * 4
    tape = Tape(20)
    for start in range(0, len(content), piece):
        tape.add(content[start : start + piece])
    assert tape.content() == content[:10] + b"\n[... 84 bytes left out ...]\n" + content[-10:]
    whole = Tape(200)
    whole.add(content)
    assert whole.content() == content
