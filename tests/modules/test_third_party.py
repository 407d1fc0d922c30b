"""Servers that others wrote, of both package indexes, and the official conformance suite for clients.

The programs of npm are looked for below `.node/` (see docs/modules.md); in CI they must be there.
"""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from module_parts import HERE, Desk

from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import ModuleSpec

ROOT = HERE.parent.parent
PROGRAMS = ROOT / ".node" / "node_modules" / ".bin"


def program(name: str) -> list[str]:
    """A program of npm, run by the Node that was installed with it."""
    if not (PROGRAMS / name).exists():
        pytest.skip(f"{name} is not installed below .node/")
    return [str(PROGRAMS / "node"), str((PROGRAMS / name).resolve())]


def python_module(name: str) -> list[str]:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return [sys.executable, "-m", name]


def using(spec: ModuleSpec, folder: Path, work: Callable[[ModulesProvider, Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        provider = ModulesProvider([spec])
        try:
            await provider.module(spec.name).ready()
            await work(provider, Desk(folder))
        finally:
            await provider.close()

    asyncio.run(main())


def test_mcp_server_time(tmp_path: Path) -> None:
    async def work(provider: ModulesProvider, desk: Desk) -> None:
        outcome = await desk.perform(
            provider,
            "clock.convert_time",
            source_timezone="UTC",
            time="12:00",
            target_timezone="Asia/Tokyo",
        )
        assert outcome.state == "done"
        assert "21:00" in outcome.text
        wrong = await desk.perform(provider, "clock.get_current_time", timezone="Mars/Olympus")
        assert wrong.state == "failed"
        assert "Mars" in wrong.text

    command = python_module("mcp_server_time")
    using(ModuleSpec("clock", (*command, "--local-timezone", "UTC")), tmp_path, work)


def test_mcp_server_git(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main", str(tmp_path)], check=True)
    (tmp_path / "a.txt").write_text("one\n")

    async def work(provider: ModulesProvider, desk: Desk) -> None:
        status = await desk.perform(provider, "git.git_status", repo_path=str(tmp_path))
        assert "a.txt" in status.text
        added = await desk.perform(provider, "git.git_add", repo_path=str(tmp_path), files=["a.txt"])
        assert added.state == "done"
        status = await desk.perform(provider, "git.git_status", repo_path=str(tmp_path))
        assert "new file:   a.txt" in status.text

    command = python_module("mcp_server_git")
    using(ModuleSpec("git", (*command, "--repository", str(tmp_path)), trusted=True), tmp_path, work)


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
def test_server_everything(tmp_path: Path, protocol: str) -> None:
    async def work(provider: ModulesProvider, desk: Desk) -> None:
        names = [capability.name for capability in await provider.capabilities()]
        assert {"all.echo", "all.get_sum"} <= set(names)
        assert (await desk.perform(provider, "all.echo", message="hi")).text == "Echo: hi"
        assert "5" in (await desk.perform(provider, "all.get_sum", a=2, b=3)).text
        image = await desk.perform(provider, "all.get_tiny_image")
        assert [value.media_type for value in image.values] == ["image/png"]
        links = await desk.perform(provider, "all.get_resource_links", count=2)
        assert links.text.count("[link: ") == 2
        slow = await desk.perform(provider, "all.trigger_long_running_operation", duration=1, steps=2)
        assert slow.state == "done"
        assert desk.shown[-1] == "2 of 2"
        data = await desk.perform(provider, "all.get_structured_content", location="Chicago")
        assert data.data["conditions"]

    using(ModuleSpec("all", tuple(program("mcp-server-everything")), protocol=protocol), tmp_path, work)


def test_server_filesystem(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello there\n")

    async def work(provider: ModulesProvider, desk: Desk) -> None:
        read = await desk.perform(provider, "fs.read_text_file", path=str(tmp_path / "note.txt"))
        assert read.text.strip() == "hello there"
        outside = await desk.perform(provider, "fs.read_text_file", path="/etc/passwd")
        assert outside.state == "failed"
        by_name = {capability.name: capability for capability in await provider.capabilities()}
        assert by_name["fs.read_text_file"].effects == ("read", "network")
        assert "write" in by_name["fs.write_file"].effects

    command = (*program("mcp-server-filesystem"), str(tmp_path))
    using(ModuleSpec("fs", command), tmp_path, work)


#: What the suite has for clients, but for three scenarios: `auth/client-credentials-jwt` and
#: `auth/cross-app-access-complete-flow` (extensions: a private key, a company's identity provider) and
#: `auth/2025-03-26-oauth-metadata-backcompat`, where the SDK refuses an issuer that is not the server's.
SCENARIOS = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/client-credentials-basic",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_official_conformance_suite_for_clients(tmp_path: Path, scenario: str) -> None:
    ran = subprocess.run(
        [
            *program("conformance"),
            "client",
            *("--command", f"{sys.executable} {HERE / 'conformance_client.py'}"),
            *("--scenario", scenario, "--timeout", "90000", "--output-dir", str(tmp_path / "results")),
        ],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "OVERALL: PASSED" in ran.stdout
