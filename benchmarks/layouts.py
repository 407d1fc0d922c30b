"""What the layouts cost in prompt: how much of each prompt a server must evaluate again.

    python benchmarks/layouts.py [ITERATIONS]
    python benchmarks/layouts.py [ITERATIONS] --box

The same agent does the same work in `stable` and in `regenerated`; a prefix that equals that of the
prompt before counts as cached, the rest as evaluated. Tokens are characters / 4. With `--box` the
prompts go, one after the other, to the model in the box, and the tokens are those that its server
reports to have read from its cache and to have evaluated; its window holds some 14 iterations.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from os.path import commonprefix
from pathlib import Path

from msgspec.structs import replace

from textor import events as e
from textor.assembly import Machine, core_providers, make_services
from textor.config import Config
from textor.events import Definition, Limits
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.layouts.monitor import Monitor
from textor.messages import Context, Usage, UsageChunk, said
from textor.models.box import BoxModel
from textor.processors import Models
from textor.testing import ScriptedModel


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--box"]
    iterations = int(words[0]) if words else 12 if "--box" in sys.argv else 20
    print(f"{iterations} iterations, one monitored file of 1,000 characters, results of 400 characters")
    if "--box" in sys.argv:
        asyncio.run(in_the_box(iterations))
        return
    print(f"{'layout':<14}{'prompt tokens':>16}{'evaluated':>12}{'last prompt':>14}")
    for layout in ("stable", "regenerated"):
        texts = [text_of(context) for context in asyncio.run(work(layout, iterations))]
        fresh = [
            len(t) - len(commonprefix([t, before]))  # noqa: RUF071 - by character is what is wanted
            for t, before in zip(texts, ["", *texts], strict=False)
        ]
        total, evaluated = sum(map(len, texts)) // 4, sum(fresh) // 4
        print(f"{layout:<14}{total:>16,}{evaluated:>12,}{len(texts[-1]) // 4:>14,}")


async def in_the_box(iterations: int) -> None:
    """The same prompts, read by the model in the box."""
    model = BoxModel()
    print(f"{'layout':<14}{'prompt tokens':>16}{'evaluated':>12}{'last prompt':>14}{'seconds':>10}")
    try:
        for layout in ("stable", "regenerated"):
            contexts = await work(layout, iterations)
            await read_by(model, [Context((said("user", "Something else."),))])  # nothing in common
            begun = time.perf_counter()
            used = await read_by(model, contexts)
            seconds = time.perf_counter() - begun
            evaluated = sum(usage.input - usage.cached for usage in used)
            total, last = sum(usage.input for usage in used), used[-1].input
            print(f"{layout:<14}{total:>16,}{evaluated:>12,}{last:>14,}{seconds:>10.1f}")
    finally:
        await model.close()


async def read_by(model: BoxModel, contexts: Sequence[Context]) -> list[Usage]:
    """What a model reports of each prompt, read in this order; it answers with one token."""
    found: list[Usage] = []
    for context in contexts:
        async for chunk in model.generate(replace(context, max_tokens=1)):
            if isinstance(chunk, UsageChunk):
                found.append(chunk.usage)
    return found


def text_of(context: Context) -> str:
    return "\n".join(f"{message.role}: {message.text}" for message in context.messages)


async def work(layout: str, iterations: int) -> list[Context]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "memory.txt").write_text("remember " * 111)
        replies = ['I keep it in view.\n<actions><monitor_file path="memory.txt"/></actions>']
        replies += [
            f'I print line {n}.\n<actions><print text="{n} {"x" * 400}"/></actions>'
            for n in range(iterations - 2)
        ]
        model = ScriptedModel([*replies, "Done."], native_tools=False)
        config = Config(path=place / "config.toml", data=place)
        models = Models(config)
        models.add(model)
        providers = [*await core_providers(), Monitor()]
        services = await make_services(config, MemoryJournal(), models, providers)
        made = Machine(config, services, models, providers)
        made.host = LocalHost(services)
        await made.host.start()
        names = ("monitor_file", "unmonitor_file", "print", "wait_event", "read_stdin", "write_stdout")
        definition = Definition(
            "worker", dialects=("xml",), layout=layout, prompt="You work in a loop.", capabilities=names
        )
        limits = Limits(iterations=iterations + 1)
        session = await made.create(
            "work", workspace=place, definition=definition, model=model.id, limits=limits, policy="yes"
        )
        async for event in session.follow():
            if isinstance(event.body, e.TurnEnded):
                assert event.body.reason == "replied", event.body
                break
        await made.close()
        return model.contexts


if __name__ == "__main__":
    main()
