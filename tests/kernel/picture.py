"""The picture of the AIlice document: a page of cat pictures, built by a tree of agents.

    python picture.py FOLDER URL AT SIDE

A person asks main; main calls a proxy, which calls two coders at once. The spider gets stuck and
asks; the proxy calls a researcher, and answers. As a program this is the host of that session,
with its models at URL; it dies by SIGKILL at append AT (0: never), on the SIDE "before" or
"after" it is durable. Run again, it goes on.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from crash_sweep import Dying
from kernel_parts import until

from textor import events as e
from textor.assembly import Machine, core_providers, make_services
from textor.config import Config
from textor.definitions import BOX, load_definition
from textor.events import Event, to_json
from textor.hosts.local import LocalHost
from textor.journal.port import Journal
from textor.processors import Models
from textor.session import Session
from textor.settings import ProviderSettings
from textor.testing import Call, Gate, Reply
from textor.testing.server import Request

SESSION = "picture"
PROXY, SPIDER = "main/proxy_cat_gallery", "main/proxy_cat_gallery/coder_spider"
WEBSITE = "main/proxy_cat_gallery/coder_website"
RESEARCHER = "main/proxy_cat_gallery/researcher_api"
WISH = "Build me a page that shows cat pictures."
PAGE = "<!doctype html>\n<title>Cats</title>\n<script src=cats.js></script>\n"
CATS = 'const cats = ["https://cats.example/1.jpg"];\n'
QUESTION = "https://cats.example/list answers 404. Which address gives a list of cat pictures?"
ADDRESS = "GET https://cats.example/v1/images gives a JSON list of objects with `url`."


# -- what the models say -------------------------------------------------------------------


class Voices:
    """Replies that depend on nothing but the request, so that one asked twice is one answered twice.

    `website_done` holds the spider back until the website is there, so that there is one order.
    """

    def __init__(self) -> None:
        self.website_done = Gate()
        self._starts = {
            load_definition(type, [BOX]).prompt[:60]: getattr(self, f"_{name}")
            for type, name in (
                ("main", "main"),
                ("coder-proxy", "proxy"),
                ("coder", "coder"),
                ("researcher", "researcher"),
            )
        }

    def __call__(self, request: Request) -> Reply | str:
        messages = request.messages
        said = [m for m in messages if m["role"] == "assistant"]
        reply: Reply | str = self._starts[messages[0]["content"][:60]](len(said), messages)
        return reply

    def _main(self, n: int, messages: list[dict[str, Any]]) -> Reply | str:
        task = "The person wants a page cats.html that shows cat pictures. Spider: cats.js. Page: cats.html."
        return [_call("coder-proxy", "proxy_cat_gallery", task), "Open cats.html: it shows cat pictures."][n]

    def _proxy(self, n: int, messages: list[dict[str, Any]]) -> Reply | str:
        if n == 0:
            spider = _call("coder", "coder_spider", "Write cats.js: a list `cats` of addresses of pictures.")
            website = _call("coder", "coder_website", "Write cats.html, which shows what cats.js lists.")
            return Reply(calls=(*spider.calls, *website.calls))
        if n == 1:
            return _call("researcher", "researcher_api", f"A coder is stuck: {QUESTION}")
        if n == 2:
            (key,) = re.findall(r"a question with the id ([\w./-]+):", json.dumps(messages))
            return _act("answer", n, id=key, text=ADDRESS)
        if n == 3:
            return _act("files_search", n, query="cats", pattern="*.html")
        return "cats.html and cats.js are written. Read, not run: there is no browser here."

    def _coder(self, n: int, messages: list[dict[str, Any]]) -> Reply | str:
        if "cats.html, which shows" in json.dumps(messages[1]):
            return [_act("files_write", n, path="cats.html", text=PAGE), "cats.html"][n]
        if n == 0:
            asked = Call("ask", {"question": QUESTION}, id="ask_0")
            return Reply("I am stuck.", calls=(asked,), gates={2: self.website_done})
        return ["", _act("files_write", n, path="cats.js", text=CATS), "cats.js"][n]

    def _researcher(self, n: int, messages: list[dict[str, Any]]) -> Reply | str:
        return [_act("notes_set", n, key="proof", text="an address that answers 200"), ADDRESS][n]


def _act(name: str, n: int, **arguments: Any) -> Reply:
    return Reply(calls=(Call(name, arguments, id=f"{name}_{n}"),))


def _call(type: str, name: str, message: str) -> Reply:
    return Reply(calls=(Call("call", {"type": type, "name": name, "message": message}, id=f"to_{name}"),))


# -- the host ------------------------------------------------------------------------------


def main_ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded) and event.body.agent == "main"


def website_ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded) and event.body.agent == WEBSITE


@asynccontextmanager
async def host(folder: Path, url: str, journal: Journal) -> AsyncIterator[Machine]:
    config = Config(
        path=folder / "own" / "config.toml",
        data=folder / "own",
        models={"default": "local:scripted"},
        providers={"local": ProviderSettings(base_url=url, api_key="none")},
    )
    models = Models(config)
    services = await make_services(config, journal, models, await core_providers())
    made = Machine(config, services, models)
    made.host = LocalHost(services)
    await made.host.start()
    try:
        yield made
    finally:
        await made.close()


async def play(folder: Path, url: str, journal: Journal) -> list[Event]:
    """The events of the session, from its beginning or from where it was left, to its end."""
    async with host(folder, url, journal) as made:
        if await journal.session(SESSION) is None:
            workspace = folder / "work"
            workspace.mkdir(exist_ok=True)
            await made.create(WISH, workspace=workspace, agent="main", policy="yes", id=SESSION)
        return await until(Session(SESSION, made.services), main_ended)


# -- the journal without what chance puts into it ------------------------------------------

#: Left out: what the prompts and the dialects say (they have tests of their own), counts, clocks.
_LEFT_OUT = {
    "prefix",
    "tools",
    "offered",
    "room",
    "usage",
    "reserved",
    "status",
    "digest",
    "workspace",
    "session",
    "version",
}
_RANDOM = re.compile(r"\b[0-9a-f]{23}\b")


def filled(data: Any) -> Any:
    """Data without its empty fields, which new versions may add to."""
    if isinstance(data, dict):
        return {k: filled(v) for k, v in data.items() if filled(v)}
    return [filled(item) for item in data] if isinstance(data, list) else data


def normalised(events: Iterable[Event]) -> str:
    """JSON lines: each agent's events in their order, agent by agent; no times, no random ids."""
    lines: dict[str, list[str]] = {}
    for event in events:
        told = to_json(event)
        data = {k: filled(v) for k, v in told["data"].items() if k not in _LEFT_OUT and filled(v)}
        if "definition" in data:
            data["definition"] = data["definition"]["type"]
        agent = data.get("agent") or data.get("sender") or "-"
        line = json.dumps({"kind": told["kind"], **data}, ensure_ascii=False)
        lines.setdefault(agent, []).append(_RANDOM.sub("ID", line))
    return "".join(f"{line}\n" for agent in sorted(lines) for line in lines[agent])


def main(folder: Path, url: str, at: int, after: bool) -> None:
    async def run() -> None:
        await play(folder, url, Dying(folder / "journal.db", at, after))

    asyncio.run(run())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "after")
