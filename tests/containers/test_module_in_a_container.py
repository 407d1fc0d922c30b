"""A module with the placement `container:IMAGE` runs in there and ends with Textor's side."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import ModuleSpec
from textor.containers.engine import Engine

from .conftest import BASE, Desk

#: A server of the protocol with nothing but Python: the image has no MCP library.
SERVER = r"""
import json, os, sys

def answer(call):
    method, params = call["method"], call.get("params") or {}
    if method == "initialize":
        told = {"serverInfo": {"name": "inside", "version": "1"}, "capabilities": {"tools": {}}}
        return {"protocolVersion": params["protocolVersion"], **told}
    if method == "tools/list":
        schema = {"type": "object", "properties": {}}
        return {"tools": [{"name": "where", "description": "Where it runs.", "inputSchema": schema}]}
    if method == "tools/call":
        inside = os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
        return {"content": [{"type": "text", "text": "inside" if inside else "outside"}]}
    return None

for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call:
        continue
    result = answer(call)
    told = {"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], **told}), flush=True)
"""


def running() -> list[str]:
    """The containers of modules that this machine's engine runs now."""
    program = shutil.which("docker") or shutil.which("podman") or "docker"
    argv = [program, "ps", "--quiet", "--filter", "label=textor.module=inside"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def test_a_module_runs_in_a_container(engine: Engine, desk: Desk) -> None:
    async def run() -> None:
        spec = ModuleSpec("inside", ("python3", "-c", SERVER), placement=f"container:{BASE}", start=60)
        provider = ModulesProvider([spec])
        try:
            await provider.module("inside").ready()
            assert len(running()) == 1
            outcome = await desk.perform(provider, "inside.where")
            assert (outcome.state, outcome.text) == ("done", "inside")
        finally:
            await provider.close()
        while running():  # noqa: ASYNC110 - the engine tells nobody
            await asyncio.sleep(0.1)

    asyncio.run(asyncio.wait_for(run(), 100))


def test_the_engine_that_is_named_is_asked(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")

    async def run() -> None:
        spec = ModuleSpec("inside", ("python3", "-c", SERVER), placement=f"container:{BASE}", start=60)
        provider = ModulesProvider([spec])
        try:
            outcome = await desk.perform(provider, "inside.where")
            assert outcome.state == "failed" and "none.sock" in outcome.text
        finally:
            await provider.close()

    asyncio.run(run())
