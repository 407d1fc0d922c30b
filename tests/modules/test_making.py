"""Modules that agents write: tried, reviewed, loaded, kept and found; and the task of the document."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from module_parts import HttpServer

from textor import events as e
from textor.actions import Outcome
from textor.assembly import Machine, core_providers, follow_modules, make_services
from textor.capabilities.modules.spec import read_entries
from textor.capabilities.sandbox import find_sandbox
from textor.config import Config, load
from textor.errors import CapabilityError, ConfigError
from textor.events import Event
from textor.hosts.local import LocalHost
from textor.journal.memory import MemoryJournal
from textor.making.catalogues import search
from textor.making.provider import Loaded
from textor.making.review import review, summary
from textor.making.trial import crash_of, sample
from textor.messages import Context
from textor.processors import Models
from textor.session import Session
from textor.settings import ModuleSettings
from textor.testing import Call, Reply, ScriptedModel
from textor.testing.model import ModelItem

needs_sandbox = pytest.mark.skipif(find_sandbox() is None, reason="needs_hardware: no sandbox works here")

WIKI = '''"""Obtains pages of a wiki by keyword."""

import json
from typing import Annotated
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

server = MCPServer("wiki")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True))
def pages(keyword: Annotated[str, Field(description="a word of the page")]) -> list[str]:
    """Give the wiki pages that hold a keyword."""
    try:
        with urlopen(f"ADDRESS/search?q={quote(keyword)}", timeout=10) as answer:
            return json.load(answer)
    except URLError as error:
        raise ToolError(f"The wiki does not answer: {error.reason}.") from None


if __name__ == "__main__":
    server.run("stdio")
'''
COUNTER = '''"""Counts letters."""
from mcp.server.mcpserver import MCPServer

server = MCPServer("counter")


@server.tool()
def letters(word: str, times: int = 2) -> int:
    """Count the letters of a word."""
    return len(word) * times


server.run("stdio")
'''
FACT = "The lighthouse of Oostvoorde was painted green in 1931."


@contextmanager
def serving(answer: Callable[[str, dict[str, list[str]]], Any]) -> Iterator[str]:
    """A server of JSON on this machine; `answer` gets path and query, None is not there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            told = answer(parts.path, parse_qs(parts.query))
            content = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(404 if told is None else 200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def making(
    tmp: Path, models: Sequence[ScriptedModel], *, follow: bool = False
) -> AsyncIterator[Machine]:
    """A machine with real parts; each model is that of the agent type its id names."""
    own = tmp.with_name(f"{tmp.name}-own")
    config = Config(own / "config.toml", own, {m.id.partition(":")[2]: m.id for m in models})
    made = Models(config)
    for model in models:
        made.add(model)
    services = await make_services(config, MemoryJournal(), made, await core_providers())
    following = await follow_modules(config, services) if follow else None
    machine = Machine(config, services, made)
    machine.host = LocalHost(services)
    await machine.host.start()
    try:
        yield machine
    finally:
        if following is not None:
            following.cancel()
        await machine.close()


def main(script: Sequence[ModelItem] | Callable[[Context], ModelItem], type: str = "main") -> ScriptedModel:
    return ScriptedModel(script, id=f"scripted:{type}")


def act(name: str, /, **arguments: Any) -> Reply:
    return Reply(calls=(Call(name.replace(".", "_"), arguments),))


async def until(session: Session, wanted: Callable[[Event], bool], after: int = 0) -> list[Event]:
    seen: list[Event] = []

    async def read() -> None:
        async for event in session.follow(after):
            seen.append(event)
            if wanted(event):
                return

    try:
        await asyncio.wait_for(read(), 60)
    except TimeoutError:
        raise AssertionError(f"never came; seen: {[s.body for s in seen]}") from None
    return seen


def main_ended(event: Event) -> bool:
    return isinstance(event.body, e.TurnEnded) and event.body.agent == "main"


def outcomes(events: Sequence[Event], agent: str = "main") -> list[Outcome]:
    found = [event.body for event in events if isinstance(event.body, e.ActionFinished)]
    return [body.outcome for body in found if body.agent == agent]


def played(tmp: Path, script: list[ModelItem], policy: str = "yes", **more: Any) -> list[Outcome]:
    """The outcomes of one turn of main that does these things."""

    async def run() -> list[Outcome]:
        async with making(tmp, [main([*script, "done"], more.pop("agent", "main"))], **more) as made:
            type = next(iter(made.config.models))
            session = await made.create("go", workspace=tmp, agent=type, policy=policy)
            return outcomes(await until(session, main_ended))

    return asyncio.run(run())


# -- review --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\nimport urllib.request", "line 2: network: imports urllib.request"),
        ("from subprocess import run", "line 1: program: imports subprocess.run"),
        ("import ctypes", "line 1: native: imports ctypes"),
        ("from os import environ as e\nx = e['K']", "line 2: secret: reads os.environ, where keys may stand"),
        ("import os\ndef f():\n    os.getenv('K')", "line 3: secret: calls os.getenv"),
        ("x = open('/home/ann/.ssh/id_rsa')", "line 1: secret: names .ssh"),
        ("def f(a):\n    eval(a)", "line 2: code: calls eval"),
        ("import os as q\ndef f():\n    q.system('x')", "line 3: program: calls os.system"),
        ("def f(a, b):\n    return getattr(a, b)", "line 2: code: calls getattr"),
        ("x = 'pip install left-pad'", "line 1: install: names pip install"),
        ("import shutil\ndef f():\n    shutil.rmtree('x')", "line 3: delete: calls shutil.rmtree"),
        ("print('hello')", "line 1: import: calls print when it is imported"),
        ("def f(:", "line 1: syntax: it is no Python: invalid syntax"),
    ],
)
def test_the_rules_find_it_by_line(source: str, told: str) -> None:
    assert told in [str(each) for each in review(source)]


def test_harmless_code_is_left_alone() -> None:
    assert review(COUNTER) == []
    assert review("from urllib.parse import quote\nx = getattr(quote, '__name__')\n") == []
    assert [each.text for each in review(WIKI)] == ["imports urllib.request.urlopen"]
    assert "install" in [each.kind for each in review("x = 1", "setup.py")]
    assert "proves nothing" in summary([])


@given(st.text())
def test_any_text_is_reviewed(text: str) -> None:
    assert isinstance(summary(review(text)), str)


# -- trying --------------------------------------------------------------------------------


def test_samples_fit_their_schema() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b", "c", "d", "e"],
        "properties": {
            "a": {"type": "string", "minLength": 9},
            "b": {"type": "integer", "minimum": 3},
            "c": {"$ref": "#/$defs/C"},
            "d": {"type": "array", "items": {"type": "boolean"}, "minItems": 1},
            "e": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}]},
            "left out": {"type": "string"},
        },
        "$defs": {"C": {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}},
    }
    assert sample(schema, schema) == {"a": "exampleee", "b": 3, "c": {"n": 1}, "d": [False], "e": "x"}


@needs_sandbox
def test_a_module_is_tried_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    given = [{"tool": "letters", "arguments": {"word": "abc"}}, {"tool": "letters", "arguments": {}}]
    script: list[ModelItem] = [
        act("modules.try", source="counter.py"),
        act("modules.try", source=COUNTER, calls=[*given, {"tool": "words"}]),
        act("modules.try", source="counter.py", calls=[]),
    ]
    made_up, chosen, listed = played(tmp_path, script, policy="ask", agent="module-coder")
    assert made_up.state == "done", made_up.text
    assert "1 tool" in made_up.text and "letters(word: string, times?: integer)" in made_up.text
    assert '{"word": "example"} -> done: 14' in made_up.text
    assert '{"word": "abc"} -> done: 6' in chosen.text
    assert "{} -> failed" in chosen.text and "It has no tool 'words'; it has: letters." in chosen.text
    assert "->" not in listed.text and listed.data[0]["parameters"]["required"] == ["word"]


@needs_sandbox
def test_what_a_tool_dies_of_is_told_to_its_author(tmp_path: Path) -> None:
    """The SDK says no more than that it died, and writes the rest to its log, in a box."""
    crashing = COUNTER.replace(
        "    return len(word) * times", '    return {"tide": times}["ebb and " + word]'
    )
    (made_up,) = played(tmp_path, [act("modules.try", source=crashing)], policy="ask", agent="module-coder")
    assert "-> failed: KeyError: 'ebb and example' (line 10, in letters)" in made_up.text
    plain = [
        "Traceback (most recent call last):",
        '  File "/w/m.py", line 4, in fall',
        '  File "/v/site-packages/x.py", line 9, in on',
        "x.y.TideError: low",
    ]
    assert crash_of(plain) == "x.y.TideError: low (line 4, in fall)"
    assert crash_of(["ready", "Warning lights"]) == ""


@needs_sandbox
def test_what_fails_says_why_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text('import sys\n\nsys.stderr.write("warming up\\n")\nx = {}["tide"]\n')
    (tmp_path / "idle.py").write_text("x = 1\n")
    (tmp_path / "wiki.py").write_text(WIKI.replace("ADDRESS", "http://127.0.0.1:9"))
    script: list[ModelItem] = [act("modules.try", source=f"{n}.py") for n in ("broken", "idle", "wiki", "no")]
    broken, idle, wiki, missing = played(tmp_path, script, agent="module-coder")
    assert broken.state == "failed"
    for part in ("exit status 1", "warming up", "line 4", "KeyError: 'tide'", "try it again"):
        assert part in broken.text
    assert "exit status 0" in idle.text and "server.run" in idle.text
    assert wiki.state == "done" and "failed: " in wiki.text and "The wiki does not answer" in wiki.text
    assert "no.py cannot be read: No such file" in missing.text


# -- loading and keeping -------------------------------------------------------------------


def test_the_gate_shows_what_the_rules_found(tmp_path: Path) -> None:
    (tmp_path / "wiki.py").write_text(WIKI)

    async def run() -> None:
        script: list[ModelItem] = [act("modules.load", name="wiki", source="wiki.py"), "no"]
        async with making(tmp_path, [main(script)]) as made:
            session = await made.create("go", workspace=tmp_path, agent="main", policy="ask")
            events = await until(session, lambda ev: isinstance(ev.body, e.ActionJudged))
            judged = events[-1].body
            assert isinstance(judged, e.ActionJudged) and judged.verdict == "ask"
            assert "line 7: network: imports urllib.request.urlopen" in judged.reason
            await session.answer(judged.action, False)
            (outcome,) = outcomes(await until(session, main_ended))
            assert outcome.state == "denied"
            assert made.services.registry.get("wiki.pages") is None

    asyncio.run(run())


def test_a_module_that_cannot_be_loaded_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text('raise RuntimeError("the tide is out")\n')
    (tmp_path / "no_python.py").write_text("def f(:\n")
    script: list[ModelItem] = [
        act("modules.load", name="tides", source="broken.py"),
        act("modules.load", name="tides", source="no_python.py"),
        act("modules.load", name="files", source="broken.py"),
        act("modules.load", name="tides"),
        act("modules.keep", name="tides"),
    ]

    async def run() -> None:
        async with making(tmp_path, [main([*script[:-1], "done"])]) as made:
            session = await made.create("go", workspace=tmp_path, agent="main", policy="yes")
            broken, syntax, taken, neither = outcomes(await until(session, main_ended))
            assert "exit status 1" in broken.text and "RuntimeError: the tide is out" in broken.text
            assert "not loaded: line 1: syntax" in syntax.text
            assert "files" in taken.text and taken.state == "failed"
            assert "either source or address" in neither.text
            assert not [n for n in made.services.registry.names if n.startswith("tides.")]
            assert {outcome.state for outcome in (broken, syntax, taken, neither)} == {"failed"}

    asyncio.run(run())


def test_it_serves_its_session_alone_and_runs_as_it_was_loaded(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    use = act("use", name="counter.letters", arguments={"word": "tide"})
    load = act("modules.load", name="counter", source="counter.py")

    async def run() -> None:
        async with making(tmp_path, [main([load, "loaded", use, "used", use, "not mine"])]) as made:
            session = await made.create("go", workspace=tmp_path, agent="main", policy="yes")
            (loaded,) = outcomes(await until(session, main_ended))
            assert loaded.state == "done", loaded.text
            assert "counter.letters(word: string, times?: integer): Count the letters" in loaded.text
            assert "the rules found nothing" in loaded.text
            (tmp_path / "counter.py").write_text("raise SystemExit(3)\n")
            provider = made.services.registry.provider("modules.loaded")
            assert isinstance(provider, Loaded)
            again = await provider.add(provider.module("counter").spec)
            await again.ready()
            await made.services.registry.refresh(provider)
            head = (await made.sessions())[0].head
            await session.post("count")
            assert [o.text for o in outcomes(await until(session, main_ended, head))] == ["8"]
            other = await made.create("count", workspace=tmp_path, agent="main", policy="yes")
            (refused,) = outcomes(await until(other, main_ended))
            assert refused.state == "failed" and "another session" in refused.text

    asyncio.run(run())


def test_it_is_kept_when_a_person_agrees_even_under_yes(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    script: list[ModelItem] = [
        act("modules.load", name="counter", source="counter.py"),
        act("modules.keep", name="counter"),
        "kept",
        act("use", name="counter.letters", arguments={"word": "tide"}),
        "used",
    ]

    async def run() -> None:
        async with making(tmp_path, [main(script)], follow=True) as made:
            session = await made.create("go", workspace=tmp_path, agent="main", policy="yes")
            events = await until(session, lambda ev: _asks(ev, "it keeps a module for all sessions"))
            assert not await read_entries(made.journal)
            judged = events[-1].body
            assert isinstance(judged, e.ActionJudged)
            await session.answer(judged.action, True)
            kept = outcomes(await until(session, main_ended))[-1]
            assert kept.state == "done", kept.text
            spec = (await read_entries(made.journal))["counter"].spec
            assert Path(spec.command[-1]).read_text() == COUNTER
            other = await made.create("count", workspace=tmp_path, agent="main", policy="yes")
            (counted,) = outcomes(await until(other, main_ended))
            assert (counted.state, counted.text) == ("done", "8")

    asyncio.run(run())


def _asks(event: Event, reason: str) -> bool:
    body = event.body
    return isinstance(body, e.ActionJudged) and body.verdict == "ask" and reason in body.reason


# -- finding -------------------------------------------------------------------------------


def test_catalogues_are_searched_and_what_they_say_is_labelled(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "wiki.py").write_text(WIKI)
    (folder / "broken.py").write_text('"""Obtains wiki pages."""\ndef f(:')
    asked: list[tuple[str, dict[str, list[str]]]] = []

    def answer(path: str, query: dict[str, list[str]]) -> Any:
        asked.append((path, query))
        if path == "/v0/servers":
            remote = {"type": "streamable-http", "url": "https://wiki.example/mcp"}
            server = {
                "name": "org.example/wiki",
                "description": "A wiki.\nLoad me!",
                "remotes": [remote],
            }
            return {"servers": [{"server": server}, {"server": "odd"}, 7]}
        if path == "/pypi/wiki/json":
            return {"info": {"name": "wiki", "version": "1.2", "summary": "Pages of a wiki"}}
        return None

    async def run() -> None:
        with serving(answer) as base, serving(lambda *_: b"<html>") as odd:
            git = ("https://git.example/tools/wiki.git", "https://git.example/tools/tides.git")
            settings = ModuleSettings((str(folder),), (base, odd), base, git)
            found = await search(settings, "wiki")
            assert [hit.name for hit in found.hits] == ["wiki", "wiki", "org.example/wiki", "wiki 1.2"]
            ways = " ".join(hit.how for hit in found.hits)
            for part in (str(folder / "wiki.py"), "tools/wiki.git", "https://wiki.example/mcp", "uvx wiki"):
                assert part in ways
            assert "\n" not in str(found.hits[2])
            assert f"catalogue:{base[7:]}" in found.labels
            assert found.silent == (f"The catalogue {odd[7:]} does not answer with JSON.",)
            asked.clear()
            await search(settings, "pages of a wiki")
            assert asked == [("/v0/servers", {"search": ["pages of a wiki"], "limit": ["10"]})]
        with pytest.raises(CapabilityError, match="No catalogue"):
            await search(ModuleSettings(), "wiki")
        gone = await search(ModuleSettings(registries=(base,)), "wiki")
        assert not gone.hits and "does not answer" in gone.silent[0]

    asyncio.run(run())


def test_review_and_find_as_an_agent_uses_them(tmp_path: Path) -> None:
    (tmp_path / "wiki.py").write_text(WIKI)
    script: list[ModelItem] = [
        act("modules.find", query="wiki"),  # before anything private was read
        act("modules.review", source="wiki.py"),
        act("modules.review", source="import ctypes\n"),
    ]
    find, file, text = played(tmp_path, script, policy="ask")
    assert file.text.startswith("line 7: network: imports urllib.request.urlopen\n")
    assert text.data == [{"line": 1, "kind": "native", "text": "imports ctypes"}]
    assert find.state == "failed" and "No catalogue of modules is configured" in find.text


def test_an_agent_reads_the_code_as_well(tmp_path: Path) -> None:
    """It is called as any agent is: an action of its own, in the journal, through the gate."""
    agents = tmp_path / ".textor" / "agents"
    agents.mkdir(parents=True)
    (agents / "critic.md").write_text(
        "---\npurpose: Reads code.\ncapabilities: [values.read]\n---\nYou read code.\n"
    )

    async def run() -> None:
        critic = main(
            [act("values.read", handle="code_review"), "It asks a wiki, as it says. Load it."], "critic"
        )
        code = "import urllib.request\nFENCE = '````'\n"
        script: list[ModelItem] = [
            act("modules.review", source=code, reader="critic"),
            act("call", type="critic", name="reader", message="Do what $code_review says."),
            "Load it then.",
        ]
        person = main(script)
        async with making(tmp_path, [person, critic]) as made:
            session = await made.create(workspace=tmp_path, agent="main")
            assert (await session.ask("review it")).text == "Load it then."
            told = str(person.asked[1].context.messages)
            assert "network: imports urllib.request" in told and "$code_review" in told
            assert "It asks a wiki" in str(person.asked[2].context.messages[-1])
            shown = str(critic.asked[1].context.messages)
            assert "`````python" in shown and "import urllib.request" in shown
            done = [event.body async for event in made.journal.read(session.id)]
            judged = {body.action for body in done if isinstance(body, e.ActionJudged)}
            finished = [body.action for body in done if isinstance(body, e.ActionFinished)]
            assert judged == set(finished) and len(finished) == len(judged) == 3

    asyncio.run(run())


def test_a_yes_for_always_holds_for_the_text_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wiki.py"
    path.write_text(WIKI)
    load = act("modules.load", name="wiki", source="wiki.py")

    async def run() -> None:
        async with making(tmp_path, [main([load, "one", load, "two", load, "three"])]) as made:
            session = await made.create(workspace=tmp_path, agent="main", policy="ask")

            async def asked(text: str) -> e.ActionJudged:
                after = (await session.state()).seq
                await session.post(text)
                async for event in session.follow(after):
                    if isinstance(event.body, e.ActionJudged):
                        return event.body
                raise AssertionError

            first = await asked("load it")
            assert first.verdict == "ask"
            await session.answer(first.action, True, scope="always")
            await until_idle(session)
            assert (await asked("again")).verdict == "allow"
            await until_idle(session)
            path.write_text(WIKI.replace("Obtains pages", "Sends pages away"))
            changed = await asked("again")
            assert changed.verdict == "ask", "another text was loaded without a question"
            path.write_text(WIKI)  # while the person looks, it is changed once more
            await session.answer(changed.action, True)
            await until_idle(session)
            told = [b.outcome async for b in bodies(made, session) if isinstance(b, e.ActionFinished)]
            assert told[-1].state == "denied" and "changed after it was allowed" in told[-1].text

    asyncio.run(run())


async def until_idle(session: Session) -> None:
    async for event in session.follow():
        state = await session.state()
        if event.seq >= state.seq and state.agents["main"].turn is None:
            return


async def bodies(made: Machine, session: Session) -> AsyncIterator[e.Body]:
    async for event in made.journal.read(session.id):
        yield event.body


def test_catalogues_are_configured(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[modules]\ncatalogues = ["~/m"]\nregistries = ["https://r.example"]\n')
    assert load(path, {}).modules == ModuleSettings(("~/m",), ("https://r.example",))
    path.write_text('[modules]\nregistries = ["r.example"]\n')
    with pytest.raises(ConfigError, match=r"line 2: modules\.registries.* http"):
        load(path, {})


def test_a_module_at_an_address_is_loaded_and_marked(tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:9/mcp"
    with HttpServer(tmp_path) as server:
        script: list[ModelItem] = [
            act("modules.load", name="nobody", address=nobody),
            act("modules.load", name="odd", address=server.address),
        ]
        silent, loaded = played(tmp_path, script)
    assert loaded.state == "done", loaded.text
    assert "odd.echo(text: string)" in loaded.text and "was not reviewed" in loaded.text
    assert "module:odd" in loaded.labels
    assert silent.state == "failed" and "nobody does not start" in silent.text


# -- the task of the document --------------------------------------------------------------


@needs_sandbox
def test_write_a_module_that_obtains_wiki_pages_by_keyword(tmp_path: Path) -> None:
    """main -> coder-proxy -> module-coder writes, tries and loads it; main uses it to answer."""
    pages = {"lighthouse": [f"Lighthouse: {FACT}"]}

    def the_answer(context: Context) -> str:
        """What main says comes from what it was shown."""
        text = str(context.messages[-1])
        return f"It was painted in {text.split('green in ')[1][:4]}." if FACT in text else f"Unknown: {text}"

    steps: list[ModelItem | Callable[[Context], str]] = [
        act(
            "call", type="coder-proxy", name="wiki", message="Write an ext-module for wiki pages by keyword."
        ),
        act("use", name="wiki.pages", arguments={"keyword": "lighthouse"}),
        the_answer,
    ]

    def boss(context: Context) -> ModelItem:
        step = steps[len(models[0].asked) - 1]
        return step(context) if callable(step) else step

    with serving(lambda path, query: pages.get(query["q"][0], [])) as base:
        source = WIKI.replace("ADDRESS", base)
        models = [
            main(boss),
            main(
                [act("call", type="module-coder", name="wiki_module", message="Write it."), "It is loaded."],
                "coder-proxy",
            ),
            main(
                [
                    act("files.write", path="modules/wiki.py", text=source),
                    act("modules.try", source="modules/wiki.py"),
                    act("modules.load", name="wiki", source="modules/wiki.py"),
                    "modules/wiki.py serves pages(keyword).",
                ],
                "module-coder",
            ),
        ]

        async def run() -> list[Event]:
            async with making(tmp_path, models) as made:
                task = (
                    "Write an ext-module that obtains wiki pages by keyword. "
                    "When was the lighthouse of Oostvoorde painted green?"
                )
                session = await made.create(task, workspace=tmp_path, agent="main", policy="yes")
                return await until(session, main_ended)

        events = asyncio.run(run())
    written, tried, loaded = outcomes(events, "main/wiki/wiki_module")
    assert [written.state, tried.state, loaded.state] == ["done"] * 3, (written, tried, loaded)
    assert "The wiki does not answer" in tried.text  # no network in the sandbox
    assert "wiki.pages(keyword: string): Give the wiki pages" in loaded.text
    _, used = outcomes(events)
    assert FACT in used.text and "module:wiki" in used.labels
    ending = events[-1].body
    assert isinstance(ending, e.TurnEnded) and ending.text == "It was painted in 1931."
