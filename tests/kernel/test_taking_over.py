"""A process that waits to take over the hosting of a data folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from textor.assembly import Machine, open_machine, opening
from textor.config import Config
from textor.errors import JournalError
from textor.settings import SandboxSettings


def test_who_cannot_take_over_yet_tries_again_and_lets_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual: Callable[[Machine], Awaitable[None]] = opening._be_host
    failed: list[Machine] = []

    async def failing_once(machine: Machine) -> None:
        if not failed and machine.host is None and failing.is_set():
            failed.append(machine)
            raise JournalError("The disk is full.")
        await usual(machine)

    failing = asyncio.Event()
    monkeypatch.setattr(opening, "_be_host", failing_once)
    monkeypatch.setattr(opening, "TAKE_OVER", 0.0)
    config = Config(tmp_path / "config.toml", tmp_path / "data", sandbox=SandboxSettings(kind="none"))

    async def play() -> None:
        async with open_machine(config) as first:
            assert first.host is not None
            waiting = open_machine(config)
            machine = await waiting.__aenter__()
            assert machine.host is None
            failing.set()
        while machine.host is None:  # noqa: ASYNC110 - the lock tells nobody when it is free
            await asyncio.sleep(0)
        assert failed == [machine]
        await waiting.__aexit__(None, None, None)

    asyncio.run(asyncio.wait_for(play(), 60))
    assert "Hosting cannot be taken over now: The disk is full." in caplog.text
