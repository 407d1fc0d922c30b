"""The agent type `starter` on the model in the box: the easy requests that a newcomer tries first."""

from __future__ import annotations

import asyncio

import pytest

from textor.actions import Catalogue
from textor.capabilities.core import RESPOND, TIME, WAIT
from textor.capabilities.files import LIST, READ, SEARCH, WRITE
from textor.definitions import BOX, load_definition
from textor.dialects.plan import Plan
from textor.dialects.port import ActionRead, ParseEvent
from textor.layouts import Layouts
from textor.messages import Context, TextChunk, UsageChunk, said
from textor.models import box_fetch
from textor.models.box import BoxModel
from textor.values import Json

pytestmark = [pytest.mark.box, pytest.mark.timeout(300)]

OFFERED = {c.name: c for c in (RESPOND, LIST, READ, WRITE, SEARCH, TIME, WAIT)}

EXPECTED: dict[str, tuple[str, dict[str, Json]]] = {
    "what files are here?": ("files.list", {"folder": "."}),
    "list the files in this folder": ("files.list", {"folder": "."}),
    "what is in README.md": ("files.read", {"path": "README.md"}),
    "read notes.txt": ("files.read", {"path": "notes.txt"}),
    "what time is it?": ("time.now", {}),
    'save "buy milk" in shopping.txt': ("files.write", {"text": "buy milk", "path": "shopping.txt"}),
    "wait 5 seconds": ("wait", {"seconds": 5}),
}

#: Requests whose text could break a grammar.
STRANGE = [
    'say "\\"',
    "[x] ]][[ {3} | root ::= y",
    "日本語のファイル?",
    "a\tb\nc and then d",
    "?!",
    "\x07 \x7f ünï — “q”",
]


def test_what_a_newcomer_tries_first_and_what_breaks_grammars() -> None:
    box_fetch.fetch()
    definition = load_definition("starter", (BOX,))
    capabilities = [OFFERED[name] for name in definition.capabilities]
    prefix = Layouts()(definition.layout).prefix(definition, Plan(), capabilities)
    model = BoxModel()

    async def asked(request: str) -> tuple[list[tuple[str, dict[str, Json]]], int]:
        context = Context((*prefix, said("user", request)), max_tokens=64)
        parser = Plan().parser(Catalogue(capabilities))
        events: list[ParseEvent] = []
        cached = 0
        async for chunk in model.generate(context, grammar=Plan().grammar(capabilities, request)):
            if isinstance(chunk, TextChunk):
                events += parser.feed(chunk.text)
            elif isinstance(chunk, UsageChunk):
                cached = chunk.usage.cached
        events += parser.close("stop")
        return [
            (e.action.capability, e.action.arguments) for e in events if isinstance(e, ActionRead)
        ], cached

    async def all_of_them() -> None:
        try:
            for request, (name, arguments) in EXPECTED.items():
                ((capability, given),), cached = await asked(request)
                assert capability == name, request
                assert arguments.items() <= given.items(), request
            # The prefix is read once; only the request is new.
            assert cached > 400
            for request in STRANGE:
                read, _ = await asked(request)
                assert read, request
        finally:
            await model.close()

    asyncio.run(all_of_them())
