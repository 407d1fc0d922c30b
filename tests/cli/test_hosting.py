"""One host process per database; others hand it their sessions and follow, and one of them takes
over when it dies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from textor.testing import Call, Gate, Reply

from .conftest import Program

Scripted = Callable[..., Any]


@contextmanager
def serving(textor: Program) -> Iterator[subprocess.Popen[str]]:
    """A Textor server as the hosting process."""
    argv = [*textor.command, "serve", "--json", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        argv, cwd=textor.folder, env=textor.env, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"]
        try:
            yield process
        finally:
            process.kill()


def test_a_run_beside_a_server_is_hosted_by_it(textor: Program, scripted: Scripted) -> None:
    (textor.folder / "a.txt").write_text("x")
    replies = [Reply(calls=(Call("files_list", {"folder": "."}),)), "There is a.txt."]
    with scripted(replies), serving(textor):
        done = textor("run", "what is here?")
        assert (done.returncode, done.stdout) == (0, "There is a.txt.\n")


def test_when_the_host_dies_the_one_that_follows_takes_over(textor: Program, scripted: Scripted) -> None:
    gate = Gate()
    with scripted([Reply("never finished", gates={5: gate}), "Finished after all."]) as server:
        with serving(textor) as host:
            argv = [*textor.command, "run", "go"]
            with subprocess.Popen(
                argv, cwd=textor.folder, env=textor.env, stdout=subprocess.PIPE, text=True
            ) as run:
                gate.reached.wait_blocking()
                host.kill()
                assert run.stdout is not None
                assert run.stdout.read() == "Finished after all.\n"
                assert run.wait() == 0
        gate.open()
        assert len(server.requests) == 2
