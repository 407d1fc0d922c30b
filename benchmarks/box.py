"""What the model in the box gets right: `python benchmarks/box.py [dev|heldout]…`

Asks the requests of `data/starter_requests_*.jsonl` (30 each) of the agent type `starter`, held to
the grammar and free, with and without its examples, and prints a table in Markdown. A request is
right when the reply is exactly one action, of the right capability, with the right arguments; of
a reply to the person only that it is one is judged. Greedy, so the figures repeat on one machine.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from textor.actions import Capability, Catalogue
from textor.capabilities.core import RESPOND, TIME, WAIT
from textor.capabilities.files import LIST, READ, SEARCH, WRITE
from textor.definitions import BOX, load_definition
from textor.dialects.plan import Plan
from textor.dialects.port import ActionRead
from textor.layouts import Layouts
from textor.messages import Context, Message, TextChunk, Usage, UsageChunk, said
from textor.models.box import BoxModel

DATA = Path(__file__).parent / "data"
CAPABILITIES = {c.name: c for c in (RESPOND, LIST, READ, WRITE, SEARCH, TIME, WAIT)}


async def replied(
    model: BoxModel, messages: tuple[Message, ...], request: str, held: bool
) -> tuple[str, Usage]:
    """The reply to one request, with what it used."""
    grammar = Plan().grammar(offered(), request) if held else None
    context = Context((*messages, said("user", request)), max_tokens=48)
    text, usage = "", Usage()
    async for chunk in model.generate(context, grammar=grammar):
        if isinstance(chunk, TextChunk):
            text += chunk.text
        elif isinstance(chunk, UsageChunk):
            usage = chunk.usage
    return text, usage


def offered() -> list[Capability]:
    definition = load_definition("starter", (BOX,))
    return [CAPABILITIES[name] for name in definition.capabilities]


def right(text: str, wanted: dict[str, Any]) -> bool:
    """Whether a reply is the wanted action and nothing else."""
    parser = Plan().parser(Catalogue(offered()))
    events = [*parser.feed(text), *parser.close("stop")]
    actions = [event.action for event in events if isinstance(event, ActionRead)]
    if len(actions) != 1 or len(events) != 1 or actions[0].fault:
        return False
    given = actions[0].arguments
    return actions[0].capability == wanted["capability"] and all(
        given.get(name) == value for name, value in wanted["arguments"].items()
    )


async def measure(model: BoxModel, part: str, held: bool, taught: bool, verbose: bool) -> str:
    """One row: right requests, in all and by capability, tokens read and seconds for a request."""
    definition = load_definition("starter", (BOX,))
    prefix = Layouts()(definition.layout).prefix(definition, Plan(), offered())
    prefix = prefix if taught else prefix[:1]
    rows = [json.loads(line) for line in (DATA / f"starter_requests_{part}.jsonl").read_text().splitlines()]
    await replied(model, prefix, "hello", held)  # reads the prefix into the cache
    score: dict[str, list[bool]] = {}
    evaluated, began = 0, time.perf_counter()
    for row in rows:
        text, usage = await replied(model, prefix, row["request"], held)
        ok = right(text, row)
        score.setdefault(row["capability"], []).append(ok)
        evaluated += usage.input - usage.cached
        if verbose and not ok:
            print(f"    {row['request']} -> {text!r}", file=sys.stderr)
    seconds = (time.perf_counter() - began) / len(rows)
    cells = [f"{sum(score[name])}/{len(score[name])}" for name in definition.capabilities]
    total = sum(sum(found) for found in score.values())
    how = ("grammar" if held else "free text") + (", examples" if taught else "")
    start = [part, how, f"**{total}/{len(rows)}**"]
    return f"| {' | '.join([*start, *cells, f'{evaluated / len(rows):.0f}', f'{seconds:.2f}'])} |"


async def main(parts: list[str], verbose: bool) -> None:
    model = BoxModel()
    names = load_definition("starter", (BOX,)).capabilities
    print(f"| set | how | right | {' | '.join(names)} | tokens read | seconds |")
    print("|---" * (len(names) + 5) + "|")
    try:
        for part in parts:
            for taught in (True, False):
                for held in (True, False):
                    print(await measure(model, part, held, taught, verbose), flush=True)
    finally:
        await model.close()


if __name__ == "__main__":
    chosen = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    asyncio.run(main(chosen or ["dev", "heldout"], "--verbose" in sys.argv))
