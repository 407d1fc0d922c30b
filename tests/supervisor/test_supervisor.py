"""Versions of Textor itself: real builds from tags of a small repository, real processes."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import textor
from textor import events as e
from textor.cli import main
from textor.errors import UseError
from textor.journal.sqlite import SqliteJournal
from textor.supervisor.rooms import Candidate
from textor.supervisor.supervisor import Supervisor, answers
from textor.supervisor.trial import Verdict
from textor.testing import Call, Gate, Reply, ScriptedServer
from textor.versions import Version, Versions

SOURCE = Path(textor.__file__).parent
ROOT = SOURCE.parent.parent
EXIT = "import threading, os\nthreading.Timer(1.5, lambda: os._exit(3)).start()\n"
SLEEP = "import time\ntime.sleep(1000)\n"

#: tag -> (file of the package, what is put before its first import)
CHANGES = {
    "good": ("guard.py", "GOOD = True\n"),
    "crashes": ("__main__.py", "raise SystemExit('broken')\n"),
    "hangs": ("__main__.py", SLEEP),
    "late": ("server/serve.py", EXIT),
    "mute": ("server/serve.py", SLEEP),
}


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with our own source, and a tag for each way in which a version can be."""
    place = tmp_path_factory.mktemp("repository")
    shutil.copytree(SOURCE, place / "src" / "textor", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *who, "-C", str(place), *arguments], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    for tag, (name, text) in CHANGES.items():
        git("checkout", "main")
        path = place / "src" / "textor" / name
        mark = "from __future__ import annotations\n"
        old = path.read_text()
        path.write_text(old.replace(mark, mark + text, 1) if mark in old else text + old)
        git("commit", "-am", tag)
        git("tag", tag)
        git("reset", "--hard", "HEAD~1")
    # it shows its models nothing of the dialogue
    layouts = place / "src" / "textor" / "layouts" / "__init__.py"
    layouts.write_text(layouts.read_text().replace("agent.prefix + agent.dialogue", "agent.prefix"))
    git("commit", "-am", "wrong")
    git("tag", "wrong")
    git("reset", "--hard", "HEAD~1")
    return place


def versions(tmp: Path, repository: Path) -> Versions:
    data = tmp / "data"
    data.mkdir(exist_ok=True)
    return Versions(data, repository)


# -- building and trying ---------------------------------------------------------------------


def test_a_good_tag_is_built(tmp_path: Path, repository: Path) -> None:
    known = versions(tmp_path, repository)
    assert set(known.tags()) == {*CHANGES, "wrong"}
    version = known.build("good")
    assert known.build("good") == version  # once
    where = "import textor.guard as g; print(g.GOOD, g.__file__)"
    told = subprocess.run(
        [known.python("good"), "-c", where], capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("True ") and str(known.folder) in told


def test_what_is_no_tag_is_told(tmp_path: Path, repository: Path) -> None:
    known = versions(tmp_path, repository)
    for tag in ("none", "--upload-pack=x", "a..b", "main"):
        with pytest.raises(UseError, match="There is no tag"):
            known.build(tag)


# -- taking over -----------------------------------------------------------------------------


class Time:
    """Looks pass quickly; once the version answers, three seconds at a look."""

    def __init__(self) -> None:
        self.now = 0.0
        self.quick = False

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += 3 if self.quick else seconds
        await asyncio.sleep(0.25)


class Scene:
    """A supervised server with an open session whose model waits at a gate."""

    def __init__(self, tmp: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = Gate()
        replies = [Reply("Looking.", calls=(Call("time_now", {}),), gates={4: self.gate}), "Done."]
        self.server = ScriptedServer(replies)
        self.versions = versions(tmp, repository)
        self.time = Time()
        self.doing: list[str] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._tmp = tmp
        for name, path in (("CONFIG", "config.toml"), ("DATA", "data")):
            monkeypatch.setenv(f"TEXTOR_{name}", str(tmp / path))
        monkeypatch.chdir(tmp)

    async def play(self, tag: str, faults: list[str] | None = None) -> tuple[bool, list[e.Event]]:
        with self.server:
            (self._tmp / "config.toml").write_text(
                f'[models]\ndefault = "mine:scripted"\n[providers.mine]\nbase_url = "{self.server.url}"\n'
                "context_window = 32000\n"
            )
            (self._tmp / "config.toml").chmod(0o600)

            async def judge(candidate: Candidate, place: Path) -> Verdict:
                assert (place / "state" / "journal.db").exists()
                self.doing.append(self.versions.read().doing)
                return Verdict(faults or [], "in no way")

            asking = answers(self.url)

            async def health() -> bool:
                self.time.quick = await asking()
                return self.time.quick

            argv = ["serve", "--no-browser", "--port", str(self.port)]
            work = Supervisor(
                self.versions, argv, health, clock=self.time.clock, sleep=self.time.sleep, judge=judge
            )
            try:
                await work.start("")
                while not await asking():  # noqa: ASYNC110 - it is another process that we wait for
                    await asyncio.sleep(0.1)
                session = await asyncio.to_thread(self._begin)
                await self.gate.reached.wait()
                changing = asyncio.create_task(work.change(tag))
                await self._paused(session, changing)
                self.gate.open()
                changed = await changing
                return changed, await self._ended(session)
            finally:
                await work.stop(signal.SIGTERM)

    def _begin(self) -> str:
        token = (self.versions.data / "token").read_text().strip()
        body = json.dumps({"id": "session-under-test", "text": "look"}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/sessions", body, headers)
        with urllib.request.urlopen(request, timeout=20) as reply:
            return str(json.loads(reply.read())["session"])

    async def _paused(self, session: str, changing: asyncio.Task[bool]) -> None:
        """The session is asked to rest, or there will be no change."""
        journal = SqliteJournal(self.versions.data / "journal.db")
        follow = journal.follow(session)

        async def pause() -> None:
            async for event in follow:
                if isinstance(event.body, e.Controlled):
                    return

        waiting = asyncio.create_task(pause())
        await asyncio.wait([waiting, changing], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await journal.close()

    async def _ended(self, session: str) -> list[e.Event]:
        journal = SqliteJournal(self.versions.data / "journal.db")
        seen: list[e.Event] = []
        async with asyncio.timeout(60):
            async for event in journal.follow(session):
                seen.append(event)
                if isinstance(event.body, e.TurnEnded):
                    break
        await journal.close()
        return seen


@pytest.fixture
def scene(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, repository, monkeypatch)


def told(events: list[e.Event]) -> tuple[list[str], str, list[str]]:
    """Versions of the iterations, the reply, and what came of the actions."""
    ran = [ev.body.version for ev in events if isinstance(ev.body, e.GenerationStarted)]
    outcomes = [ev.body.outcome.state for ev in events if isinstance(ev.body, e.ActionFinished)]
    return ran, events[-1].body.text, outcomes  # type: ignore[attr-defined]


def test_what_two_note_at_the_same_time_is_kept(tmp_path: Path) -> None:
    """An agent has a version built while the supervisor writes its log."""
    known = Versions(tmp_path, tmp_path)

    def note(number: int) -> None:
        for turn in range(10):
            known.note(Version(f"v{number}-{turn}", "0" * 40))
            known.say(f"{number}-{turn}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(note, range(4)))
    ledger = known.read()
    assert len(ledger.versions) == len(set(ledger.log)) == 40


def test_a_state_that_cannot_be_copied_ends_nothing(scene: Scene) -> None:
    """What runs goes on when a version cannot even be tried, or the ledger not be written."""
    blobs = scene.versions.data / "journal.db-blobs"
    blobs.mkdir()
    (blobs / "gone").symlink_to("nowhere")

    async def healthy() -> bool:
        return True

    async def run() -> tuple[list[str], bool]:
        argv = ["serve", "--no-browser", "--port", str(scene.port)]
        work = Supervisor(scene.versions, argv, healthy, sleep=scene.time.sleep)
        running = asyncio.create_task(work.run())
        with scene.versions.change() as fields:
            fields["wanted"] = "good"
        while not scene.versions.read().log and not running.done():  # noqa: ASYNC110 - it is looked for in turns
            await asyncio.sleep(0.05)
        first = work._process
        ledger = scene.versions.folder / "ledger.json"
        whole = ledger.read_text()
        ledger.write_text("{")
        for _ in range(3):
            await scene.time.sleep(1)
        ledger.write_text(whole)
        well = not running.done() and work.alive and work._process is first
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return list(scene.versions.read().log), well

    log, well = asyncio.run(run())
    assert well
    assert log[0].startswith("good cannot be tried: The state cannot be copied to ")


def test_a_version_whose_build_is_gone_gives_way_to_the_installed_one(tmp_path: Path) -> None:
    known = Versions(tmp_path, tmp_path)
    known.note(Version("old", "0" * 40))

    async def healthy() -> bool:
        return True

    async def run() -> tuple[str, int]:
        work = Supervisor(known, ["--version"], healthy)
        await work.start("old")
        assert work._process is not None
        return work.running, await work._process.wait()

    assert asyncio.run(run()) == ("", 0)


def test_an_open_session_goes_on_under_the_new_version(scene: Scene) -> None:
    changed, events = asyncio.run(scene.play("good"))
    assert (changed, told(events)) == (True, ([textor.__version__, "good"], "Done.", ["done"]))
    ledger = scene.versions.read()
    assert (ledger.current, ledger.previous, ledger.versions["good"].state) == ("good", "", "passed")
    assert (scene.doing, ledger.doing) == (["good is being tried on a copy of the state."], "")


def test_what_is_under_way_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    with scene.versions.change() as fields:
        fields["doing"] = "good is being tried."
    assert main(["self", "status"]) == 0
    assert capsys.readouterr().out.endswith("now: good is being tried.\n")

    async def run() -> None:  # a supervisor that finds this was not it who does it
        work = Supervisor(scene.versions, ["--version"], answers(scene.url), sleep=scene.time.sleep)
        running = asyncio.create_task(work.run())
        while scene.versions.read().doing:  # noqa: ASYNC110 - it is looked for in turns
            await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize(("tag", "why"), [("late", "ended with 3"), ("mute", "did not come up within")])
def test_a_version_that_does_not_hold_is_taken_back(scene: Scene, tag: str, why: str) -> None:
    changed, events = asyncio.run(scene.play(tag))
    ran, reply, outcomes = told(events)
    assert (changed, reply, outcomes) == (False, "Done.", ["done"])
    assert ran[0] == textor.__version__ and len(scene.server.requests) == 2
    ledger = scene.versions.read()
    assert (ledger.current, ledger.versions[tag].state) == ("", "failed")
    assert why in ledger.log[-1]


def test_a_version_that_fails_its_trial_never_takes_over(scene: Scene) -> None:
    changed, events = asyncio.run(scene.play("good", ["it does a task: wrong"]))
    assert (changed, told(events)) == (False, ([textor.__version__] * 2, "Done.", ["done"]))
    assert not any(isinstance(ev.body, e.Controlled) for ev in events)
    assert scene.versions.read().versions["good"].why == "it does a task: wrong"


def test_the_command_line_tells_and_asks(tmp_path: Path, repository: Path) -> None:
    env = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TEXTOR_DATA": str(tmp_path / "data"),
        "TEXTOR_CONFIG": str(tmp_path / "c.toml"), "TEXTOR_REPOSITORY": str(repository),
    }  # fmt: skip

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "textor", "self", *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    assert "good" in run("list").stdout
    assert run("use", "nothing").returncode == 2
    assert run("use", "good").returncode == 0
    assert "asked for: good" in run("status").stdout
    assert run("rollback").returncode == 2
    failed = run("try", "crashes")
    assert failed.returncode == 1 and "crashes: failed: it starts" in failed.stdout
    assert "tried in bubblewrap" in failed.stdout
