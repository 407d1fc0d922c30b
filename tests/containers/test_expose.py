"""A program in the sandbox whose port a person can open, in both kinds of sandbox."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from textor.actions import Outcome
from textor.capabilities.sandbox import Sandbox, find_sandbox, why_no_sandbox
from textor.containers.engine import Engine
from textor.containers.expose import SandboxProvider
from textor.containers.labels import this_process
from textor.containers.sandbox import ContainerSandbox

from .conftest import SANDBOX, Desk, ours


@pytest.fixture(params=["container", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if request.param == "container":
        engine: Engine = request.getfixturevalue("engine")
        return ContainerSandbox(engine, SANDBOX, this_process())
    found = find_sandbox()
    assert found is not None, why_no_sandbox()
    return found


def play(sandbox: Sandbox, desk: Desk, scene: Callable[..., Awaitable[Any]]) -> Any:
    async def run() -> Any:
        provider = SandboxProvider(sandbox)

        async def do(what: str, /, **arguments: Any) -> Outcome:
            return await desk.perform(provider, what, **arguments)

        try:
            return await scene(do, provider)
        finally:
            await provider.close()
            await sandbox.close()

    result = asyncio.run(run())
    assert not [name for name in ours() if "sandbox" in name]
    return result


def fetch(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20) as answer:
        return str(answer.read().decode())


SERVER = "python3 -m http.server --bind 127.0.0.1 8000"


def test_a_site_over_a_folder(sandbox: Sandbox, desk: Desk) -> None:
    (desk.workspace / "picture.txt").write_text("a picture")

    async def scene(do: Any, provider: SandboxProvider) -> None:
        done = await do("sandbox.expose", command=SERVER, port=8000)
        assert done.state == "done", done.text
        port = done.data["port"]
        assert provider.snapshot(desk.session) == [f"127.0.0.1:{port} is port 8000 of: {SERVER}"]
        answers = await asyncio.gather(*(asyncio.to_thread(fetch, port, "picture.txt") for _ in range(8)))
        assert set(answers) == {"a picture"}
        withdrawn = await do("sandbox.withdraw", port=port)
        assert withdrawn.text == f"The program on port {port} is ended."
        assert (await do("sandbox.withdraw", port=port)).text == f"Nothing is published on port {port}."
        with pytest.raises(urllib.error.URLError):
            await asyncio.to_thread(fetch, port, "picture.txt")

    play(sandbox, desk, scene)


def test_a_program_that_ends_at_once_says_why(sandbox: Sandbox, desk: Desk) -> None:
    async def scene(do: Any, provider: SandboxProvider) -> Outcome:
        return await do("sandbox.expose", command="echo no such site; exit 3", port=8000)

    failed = play(sandbox, desk, scene)
    assert (failed.state, failed.text) == ("failed", "The program has ended (exit status 3): no such site")


def test_a_port_of_this_machine_that_is_taken(sandbox: Sandbox, desk: Desk) -> None:
    async def scene(do: Any, provider: SandboxProvider) -> Outcome:
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        async with server:
            taken = server.sockets[0].getsockname()[1]
            return await do("sandbox.expose", command=SERVER, port=8000, outside=taken)

    assert "cannot be used" in play(sandbox, desk, scene).text


def test_it_passes_the_gate(desk: Desk) -> None:
    found = find_sandbox()
    assert found is not None
    offered = {c.name: c for c in asyncio.run(SandboxProvider(found).capabilities())}
    assert set(offered["sandbox.expose"].effects) == {"execute", "network"}
