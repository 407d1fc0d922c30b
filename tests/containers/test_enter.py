"""A command in a container of its own, started in the workspace: nothing there runs on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textor.capabilities.processes import run
from textor.containers.engine import Engine
from textor.containers.labels import this_process
from textor.containers.sandbox import ContainerSandbox

from .conftest import SANDBOX


def test_a_file_of_the_workspace_is_no_module_of_the_program_that_enters(
    engine: Engine, tmp_path: Path
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    mark = tmp_path / "escaped"
    for name in ("json", "asyncio", "textor"):
        (workspace / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")

    async def enter() -> bytes:
        sandbox = ContainerSandbox(engine, SANDBOX, this_process())
        argv = sandbox.command(["sh", "-c", "echo inside"], workspace)
        ended = await run(argv, cwd=workspace, env=sandbox.env, timeout=60, supervised=True)
        return ended.output

    assert asyncio.run(enter()) == b"inside\n"
    assert not mark.exists()
