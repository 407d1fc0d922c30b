"""What the layouts cost in prompt cache, as the server of the model in the box reports it."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from msgspec.structs import replace
from sia_parts import ended, machine, until

from textor.events import Definition
from textor.messages import Context, Usage, UsageChunk, said
from textor.models import box_fetch
from textor.models.box import BoxModel
from textor.testing import ScriptedModel

XML = Definition("t", dialects=("xml",), capabilities=("print",), prompt="You work in a loop. " * 20)
TEXT = "a line of results " * 30


async def contexts(tmp: Path, layout: str) -> list[Context]:
    """The prompts of five iterations of the same work."""
    acts = [f'I print {n}.\n<actions><print text="{n} {TEXT}"/></actions>' for n in range(4)]
    model = ScriptedModel([*acts, "Done."], native_tools=False)
    minutes = itertools.count(1_729_252_800, 60)  # else two contexts could show the same second
    async with machine(model, tmp=tmp, clock=lambda: next(minutes)) as made:
        session = await made.create(
            "go", workspace=tmp, definition=replace(XML, layout=layout), model=model.id
        )
        await until(session, ended)
    return model.contexts


async def read(model: BoxModel, prompts: list[Context]) -> list[Usage]:
    found: list[Usage] = []
    for prompt in prompts:
        async for chunk in model.generate(replace(prompt, max_tokens=1)):
            if isinstance(chunk, UsageChunk):
                found.append(chunk.usage)
    return found


@pytest.mark.box
@pytest.mark.timeout(600)
def test_what_each_layout_has_evaluated_again(tmp_path: Path) -> None:
    box_fetch.fetch()

    async def run() -> tuple[list[Usage], list[Usage], int]:
        model = BoxModel()
        try:
            stable = await read(model, await contexts(tmp_path, "stable"))
            anew = await contexts(tmp_path, "regenerated")
            (prefix,) = await read(model, [Context((*anew[0].messages[:-1], said("user", "x")))])
            return stable, await read(model, anew), prefix.input
        finally:
            await model.close()

    stable, anew, prefix = asyncio.run(run())
    assert not any(usage.estimated for usage in (*stable, *anew))
    for before, now in itertools.pairwise(stable):  # what is new, the status, and no more
        assert now.input - now.cached < now.input - before.input + 150
    for now in anew:  # the prefix is read from the cache, and nothing behind it
        assert prefix - 40 <= now.cached <= prefix + 60
    grown = [usage.input for usage in stable]
    assert grown == sorted(grown) and grown[-1] > 2 * anew[-1].input  # one grows, the other does not
    assert max(u.input for u in anew[1:]) < 1.1 * min(u.input for u in anew[1:])
