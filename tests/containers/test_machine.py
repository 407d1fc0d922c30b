"""The whole road: a model asks, the gate lets it through, the engine does it, nothing is left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textor import events as e
from textor.actions import Outcome
from textor.assembly import open_machine
from textor.config import Config
from textor.containers.engine import Engine
from textor.events import Definition
from textor.settings import ContainerSettings, SandboxSettings
from textor.testing import Call, Reply, ScriptedModel

from .conftest import BUSYBOX, SANDBOX, Desk, ours


async def outcomes(config: Config, model: ScriptedModel, workspace: Path) -> list[Outcome]:
    found: list[Outcome] = []
    async with open_machine(config) as machine:
        machine._models.add(model)
        definition = Definition("tester", capabilities=("shell.*", "*container*"), prompt="You are tested.")
        # nobody is there to be asked: what the gate does not allow by itself is denied
        session = await machine.create(
            "begin", workspace=workspace, definition=definition, model=model.id, attended=False
        )
        async for event in session.follow():
            if isinstance(event.body, e.ActionFinished):
                found.append(event.body.outcome)
            if isinstance(event.body, e.TurnEnded):
                return found
    raise AssertionError("the turn never ended")


def test_a_model_uses_the_sandbox_and_a_container(engine: Engine, desk: Desk, tmp_path: Path) -> None:
    container: dict[str, Any] = {
        "image": BUSYBOX,
        "name": "it",
        "command": "echo",
        "parameters": ["hello"],
        "timeout": 20_000,
    }
    script = [
        Reply(calls=(Call("shell.run", {"command": "echo $TEXTOR; cat /proc/1/comm; exit 3"}),)),
        Reply(calls=(Call("start_container", container),)),
        Reply(calls=(Call("start_container", {**container, "image": "textor/other:test"}),)),
        "done",
    ]
    config = Config(
        path=tmp_path / "config.toml",
        data=tmp_path / "data",
        sandbox=SandboxSettings(image=SANDBOX),
        containers=ContainerSettings(images=(BUSYBOX,)),
    )
    shell, short, refused = asyncio.run(outcomes(config, ScriptedModel(script), desk.workspace))
    assert (shell.exit_status, shell.text) == (3, "exit status 3\n\nbash")  # the first process is ours
    assert short.text == "exit status 0\nhello"
    assert "is not allowed here" in refused.text
    assert not [name for name in ours() if "sandbox" in name or "it" in name.split("-")]
