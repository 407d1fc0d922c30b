"""A session with running containers is handed over from one version to another, and back."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import textor
from textor import events as e
from textor.actions import Action
from textor.containers.engine import find_engine
from textor.containers.labels import SESSION
from textor.errors import JournalError
from textor.events import Definition, Event
from textor.journal.sqlite import SqliteJournal
from textor.kernel.state import State, fold
from textor.messages import Usage, said
from textor.supervisor.handover import Handover
from textor.supervisor.rooms import Candidate
from textor.supervisor.supervisor import Supervisor, answers
from textor.supervisor.trial import Verdict
from textor.testing import Call, Reply, ScriptedServer
from textor.testing.server import Item, Request
from textor.versions import Versions

SOURCE = Path(textor.__file__).parent
BUSYBOX = "textor/busybox:test"
#: Counts on and on, through it all, until a file says that it is over.
COUNT = "i=0; while [ ! -e /data/over ]; do i=$((i+1)); echo $i; usleep 20000; done; exit 7"
#: Ways in which a version does not hold: it ends without a word, or fails as programs fail.
EXIT = "import threading, os\nthreading.Timer(1.5, lambda: os._exit(3)).start()\n"
OPENED = "        async with open_machine(config) as machine:\n"
FAIL = "            raise RuntimeError('broken')\n"
FUTURE = "from __future__ import annotations\n"
CHANGES = {"good": (FUTURE, "\n"), "late": (FUTURE, EXIT), "raises": (OPENED, FAIL)}
TYPE = """---
name: {0}
purpose: works
dialects: [tools]
capabilities: ["*container*", read_stdout, call]
---
You are the {0}.
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("repository")
    shutil.copytree(SOURCE, place / "src" / "textor", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SOURCE.parent.parent / "pyproject.toml", place)

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *who, "-C", str(place), *arguments], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    path = place / "src" / "textor" / "server" / "serve.py"
    for tag, (old, new) in CHANGES.items():
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, old + new))
        git("commit", "-am", tag)
        git("tag", tag)
        git("reset", "--hard", "HEAD~1")
    return place


def script(request: Request) -> Item:
    """`keeper` starts a container and calls `waiter`, who reads a little and waits for its end."""
    keeps = "You are the keeper." in str(request.messages[0])
    results = sum(message["role"] == "tool" for message in request.messages)
    wish = {
        "image": BUSYBOX,
        "name": "it",
        "command": "sh",
        "parameters": ["-c", COUNT],
        "volumes": ["data:/data"],
    }
    call = {"type": "waiter", "name": "waiter", "message": "wait for it"}
    replies: list[Item] = [
        Reply(calls=(Call("start_container", wish),)),
        Reply(calls=(Call("call", call),)),
        "Kept.",
    ]
    if not keeps:
        read = Reply(calls=(Call("read_stdout", {"name": "it", "n": 1 << 20, "timeout": 60_000}),))
        wait = Reply(calls=(Call("wait_container", {"name": "it", "timeout": 600_000}),))
        replies = [read, wait, read, "It has ended."]
    return replies[results]


class Scene:
    """A supervised server whose session has a running container, and agents that wait for it."""

    def __init__(self, tmp: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tmp = tmp
        self.session = f"handed-over-{os.getpid()}-{abs(hash(tmp)) % 10**6}"
        (tmp / "data").mkdir()  # of Textor and, below the workspace, of the container
        self.work = tmp / "work"
        (self.work / "data").mkdir(parents=True)
        agents = self.work / ".textor" / "agents"
        agents.mkdir(parents=True)
        for name in ("keeper", "waiter"):
            (agents / f"{name}.md").write_text(TYPE.format(name))
        self.versions = Versions(tmp / "data", repository)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._now, self._quick = 0.0, False
        monkeypatch.setenv("TEXTOR_CONFIG", str(tmp / "config.toml"))
        monkeypatch.setenv("TEXTOR_DATA", str(tmp / "data"))
        monkeypatch.chdir(self.work)

    @asynccontextmanager
    async def supervised(self) -> AsyncIterator[Supervisor]:
        with ScriptedServer(script) as server:
            (self.tmp / "config.toml").write_text(
                f'[models]\ndefault = "mine:scripted"\n[providers.mine]\nbase_url = "{server.url}"\n'
                f'context_window = 32000\n[containers]\nimages = ["{BUSYBOX}"]\n[sandbox]\nkind = "none"\n'
            )
            (self.tmp / "config.toml").chmod(0o600)
            asking = answers(self.url)

            async def health() -> bool:
                self._quick = await asking()
                return self._quick

            async def sleep(seconds: float) -> None:
                self._now += 3 if self._quick else seconds  # once it answers, looks pass quickly
                await asyncio.sleep(0.25)

            async def judge(candidate: Candidate, place: Path) -> Verdict:
                return Verdict([], "in no way")

            argv = ["serve", "--no-browser", "--port", str(self.port)]
            work = Supervisor(self.versions, argv, health, clock=lambda: self._now, sleep=sleep, judge=judge)
            try:
                await work.start("")
                while not await asking():  # noqa: ASYNC110 - it is another process that we wait for
                    await asyncio.sleep(0.1)
                yield work
            finally:
                await work.stop(signal.SIGTERM)

    def begin(self) -> None:
        token = (self.versions.data / "token").read_text().strip()
        body = json.dumps({"id": self.session, "text": "keep it", "agent": "keeper"}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/sessions", body, headers)
        with urllib.request.urlopen(request, timeout=20) as reply:
            assert reply.status < 300

    async def until(self, wanted: Callable[[Event], bool]) -> list[Event]:
        journal = SqliteJournal(self.versions.data / "journal.db")
        seen: list[Event] = []
        try:
            async with asyncio.timeout(60):
                async for event in journal.follow(self.session):
                    seen.append(event)
                    if wanted(event):
                        return seen
        finally:
            await journal.close()
        raise AssertionError

    async def program(self) -> tuple[str, int, str]:
        """The container of the session: its id, its process, and when it was started."""
        engine = await find_engine()
        assert engine is not None
        (state,) = await engine.list({SESSION: self.session})
        told = await engine.client.call("GET", f"/containers/{state.id}/json")
        return state.id, told["State"]["Pid"], told["State"]["StartedAt"]

    async def play(self, tag: str) -> tuple[bool, list[Event]]:
        """Hand over in the middle, and let the container end afterwards."""
        async with self.supervised() as supervisor:
            await asyncio.to_thread(self.begin)
            await self.until(
                lambda ev: isinstance(ev.body, e.ActionStarted) and ev.body.action.endswith("waiter.2.1")
            )
            before = await self.program()
            changed = await supervisor.change(tag)
            assert await self.program() == before
            (self.work / "data" / "over").touch()
            events = await self.until(lambda ev: isinstance(ev.body, e.TurnEnded) and ev.body.agent == "main")
        return changed, events


def waits(event: Event) -> bool:
    """`waiter` waits for the end of the container."""
    return isinstance(event.body, e.ActionStarted) and event.body.action == "main/waiter.2.1"


def told(events: list[Event]) -> list[tuple[str, str]]:
    """What came of each action, in the order of the outcomes."""
    done = [event.body for event in events if isinstance(event.body, e.ActionFinished)]
    assert len({body.action for body in done}) == len(done)
    return [(body.outcome.state, body.outcome.text) for body in done]


@pytest.mark.usefixtures("engine_here")
@pytest.mark.parametrize("tag", ["good", "late", "raises"])
def test_a_running_container_is_handed_over(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    scene = Scene(tmp_path, repository, monkeypatch)
    changed, events = asyncio.run(scene.play(tag))
    started, read, waited, rest, called = told(events)
    assert started == ("done", "The container it is running.")
    assert waited[1].startswith("it is finished: exit status 7; ")
    counted = [int(n) for _, text in (read, rest) for n in text.split("\n", 1)[1].split()]
    assert counted == list(range(1, len(counted) + 1)) and len(counted) > 50
    assert called == ("done", "It has ended.")
    assert (events[-1].body.text, events[-1].body.reason) == ("Kept.", "replied")  # type: ignore[attr-defined]
    ran = [event.body.version for event in events if isinstance(event.body, e.GenerationStarted)]
    ledger = scene.versions.read()
    if tag == "good":
        assert (changed, ledger.current, ran[-1]) == (True, "good", "good")
    else:
        why = "it ended with 3" if tag == "late" else "it ended with 1"
        assert (changed, ledger.current, set(ran)) == (False, "", {textor.__version__})
        assert why in ledger.log[-1]
    # what was supervised has ended, and nothing of it is left
    engine = asyncio.run(find_engine())
    assert engine is not None and asyncio.run(engine.list({SESSION: scene.session})) == []


# -- who rests ---------------------------------------------------------------------------------


def agent(name: str, caller: str = "") -> e.AgentCreated:
    return e.AgentCreated(name, Definition("t"), "m:m", caller)


def at_work(name: str) -> list[e.Body]:
    """A turn in which a generation is under way."""
    posted = e.MessagePosted(name, "go")
    return [
        posted,
        e.MessagesDelivered(name, (), said("user", "go")),
        e.GenerationStarted(name, 1, "m:m", "", Usage()),
    ]


def cut(name: str) -> e.Body:
    return e.GenerationFinished(name, said("assistant", "so"), finish="cut")


@pytest.mark.parametrize("capability", ["wait_container", "start_container", "shell.run"])
def test_who_waits_for_a_container_rests(tmp_path: Path, capability: str) -> None:
    """An action that a container carries on is no reason to wait; one that dies with us is."""

    async def run() -> bool:
        action = Action("main.1.1", capability, {})
        finished = e.GenerationFinished("main", said("assistant", "so"), (action,))
        judged = [e.ActionJudged("main", action.id, "allow"), e.ActionStarted("main", action.id)]
        async with a_journal(tmp_path, [agent("main"), *at_work("main"), finished, *judged]) as journal:
            work = Handover(tmp_path, lambda seconds: asyncio.sleep(0))
            rests = await work.pause(1)
            await work.resume()
            assert (await state(journal)).agents["main"].level == "run"
        return rests

    assert asyncio.run(run()) == (capability != "shell.run")


def test_what_a_person_paused_stays_so_and_who_begins_late_is_paused_as_well(tmp_path: Path) -> None:
    async def run() -> None:
        made = [agent("main"), agent("main/a", "main"), agent("main/b", "main")]
        bodies = [*made, *at_work("main/a"), *at_work("main/b"), e.Controlled("main/b", "pause")]
        ends: list[e.Body] = [cut(f"main/{name}") for name in "ab"]
        async with a_journal(tmp_path, bodies) as journal:
            ticks = 0

            async def sleep(seconds: float) -> None:
                """Meanwhile the generations end, and a message has `main` begin."""
                nonlocal ticks
                ticks += 1
                if ticks == 1:
                    await append(journal, [*ends, *at_work("main")])
                elif ticks == 3:
                    await append(journal, [cut("main")])

            work = Handover(tmp_path, sleep)
            assert await work.pause(10)
            levels = {name: a.level for name, a in (await state(journal)).agents.items()}
            assert levels == {"main": "pause", "main/a": "pause", "main/b": "pause"}
            # by another one: this one was killed meanwhile
            await Handover(tmp_path).resume()
            levels = {name: a.level for name, a in (await state(journal)).agents.items()}
            assert levels == {"main": "run", "main/a": "run", "main/b": "pause"}
            assert not list((tmp_path / "versions").iterdir())  # and it is not done once more

    asyncio.run(run())


def test_what_cannot_be_run_again_now_stays_noted(tmp_path: Path) -> None:
    """The disk is full when sessions are to go on: they are not forgotten."""
    no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def run() -> tuple[str, str]:
        async with a_journal(tmp_path, [agent("main"), *at_work("main"), cut("main")]) as journal:
            work = Handover(tmp_path)
            assert await work.pause(1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, no_limit[1]))
            try:
                with pytest.raises(JournalError):
                    await work.resume()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
            before = (await state(journal)).agents["main"].level
            await work.resume()
            return before, (await state(journal)).agents["main"].level

    assert asyncio.run(run()) == ("pause", "run")


@asynccontextmanager
async def a_journal(tmp: Path, bodies: list[e.Body]) -> AsyncIterator[SqliteJournal]:
    journal = SqliteJournal(tmp / "journal.db")
    created = e.SessionCreated(str(tmp), "ask", e.Limits(), "", True, "s")
    try:
        await journal.create("s", [e.Event(body, e.new_id(), 1.0) for body in [created, *bodies]])
        yield journal
    finally:
        await journal.close()


async def append(journal: SqliteJournal, bodies: list[e.Body]) -> None:
    await journal.append("s", [e.Event(body, e.new_id(), 1.0) for body in bodies], epoch=None)


async def state(journal: SqliteJournal) -> State:
    found = State()
    async for event in journal.read("s"):
        found = fold(found, event)
    return found
