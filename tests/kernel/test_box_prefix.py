"""The prefix is stable on the model in the box: it reads again nothing but what is new."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from kernel_parts import bodies, machine

from textor import events as e
from textor.models import box_fetch
from textor.models.box import BoxModel


@pytest.mark.box
@pytest.mark.timeout(300)
def test_an_iteration_reads_only_the_new_dialogue_and_the_status(tmp_path: Path) -> None:
    box_fetch.fetch()
    (tmp_path / "a.txt").write_text("hello\n")

    async def run() -> None:
        model = BoxModel()
        try:
            async with machine(model, tmp=tmp_path) as made:  # type: ignore[arg-type]
                session = await made.create(workspace=tmp_path, agent="starter", model=model.id)
                for text in ("what files are here?", "what time is it?", "what files are here?"):
                    await session.ask(text)
                events = [ev async for ev in made.journal.read(session.id)]
        finally:
            await model.close()
        usages = [b.usage for b in bodies(events, e.GenerationFinished)]
        assert len(usages) == 3
        for before, now in itertools.pairwise(usages):
            assert not now.estimated
            fresh = now.input - now.cached
            new = now.input - before.input  # what the dialogue grew by, the reply among it
            assert fresh <= new + 16, (before, now)

    asyncio.run(run())
