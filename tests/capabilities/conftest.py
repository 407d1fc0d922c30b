"""A desk for one action: what the kernel hands a provider, over a real folder and a real blob store."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from textor.actions import Action, Outcome
from textor.capabilities.places import Judged
from textor.capabilities.port import Provider
from textor.capabilities.sandbox import Sandbox, find_sandbox, why_no_sandbox
from textor.journal.blobs import MemoryBlobs
from textor.values import Value


class Desk:
    """The scope of one action, and a short way to perform one."""

    session = "s1"
    agent = "main"
    key = "a1"

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.blobs = MemoryBlobs()
        self.judged: dict[str, Judged] = {}
        self.values: dict[str, Value] = {}
        self.shown: list[str] = []

    def value(self, handle: str) -> Value:
        return self.values[handle]

    def progress(self, text: str) -> None:
        self.shown.append(text)

    async def perform(self, provider: Provider, name: str, **arguments: Any) -> Outcome:
        outcome = await provider.invoke(Action("a1", name, arguments), self)
        self.values.update((value.handle, value) for value in outcome.values)
        return outcome

    def do(self, provider: Provider, name: str, **arguments: Any) -> Outcome:
        return asyncio.run(self.perform(provider, name, **arguments))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    workspace = tmp_path / "work"
    workspace.mkdir()
    return Desk(workspace)


@pytest.fixture
def sandbox() -> Sandbox:
    found = find_sandbox()
    if found is None:
        assert not os.environ.get("CI"), f"CI must have the sandbox: {why_no_sandbox()}"
        pytest.skip(why_no_sandbox())
    return found
