"""The engine is stopped and started in the middle of a session: each action has one outcome."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from textor import events as e
from textor.containers.engine import Engine
from textor.containers.labels import SESSION
from textor.events import Event
from textor.session import Session
from textor.testing import Call, Gate, Reply, ScriptedModel

from . import scene
from .own_engine import OwnEngine

#: Answers line by line and ends at "end"; says so when it is asked to end.
TALK = (
    "trap 'echo bye; exit 3' TERM; echo hello; "
    'while :; do read x && echo "got $x"; [ "$x" = end ] && exit 7; done'
)
#: Runs until a file says that it may end.
SHORT = "trap 'exit 4' TERM; echo begun; > /data/begun; while [ ! -e /data/over ]; do usleep 50000; done"
WISH = {"image": scene.BUSYBOX, "command": "sh", "volumes": ["data:/data"]}
LONG = 100_000


def models(away: Gate, timeout: int) -> list[ScriptedModel]:
    """`main` waits for its containers in three ways at once; `kid` acts while the engine is away, and
    once more when it is back."""

    def read(patience: int) -> Call:
        return Call("read_stdout", {"name": "talk", "timeout": patience})

    def run(name: str, script: str, timeout: int = 0) -> Call:
        wish = {**WISH, "name": name, "parameters": ["-c", script], "timeout": timeout}
        return Call("start_container", wish)

    wait = Call("wait_container", {"name": "talk", "timeout": LONG})
    kid = Call("call", {"type": "kid", "name": "kid", "message": "try", "background": True})
    main = [
        Reply(calls=(run("talk", TALK), kid)),
        Reply(calls=(read(LONG),)),
        Reply(calls=(wait, read(LONG), run("short", SHORT, timeout))),
        Reply(calls=(run("fresh", "echo fresh", 20_000),)),
        Reply(calls=(read(0),)),
        Reply(calls=(wait,)),
        "Done.",
    ]

    def write(text: str) -> Call:
        return Call("write_stdin", {"name": "talk", "text": text})

    tries = Reply("Now.", calls=(write("lost\n"), run("none", "true")), gates={4: away})
    script = [tries, "Tried.", Reply(calls=(write("x\n"),)), Reply(calls=(write("end\n"),)), "Written."]
    return [ScriptedModel(main, id="scripted:main"), ScriptedModel(script, id="scripted:kid")]


class Seen:
    """What has happened in a session, and waiting for more of it."""

    def __init__(self, session: Session) -> None:
        self.events: list[Event] = []
        self._follow = session.follow()

    async def until(self, kind: type[e.Body], agent: str, count: int) -> list[e.Body]:
        """The first so many events of a kind that concern an agent."""
        while len(found := self.of(kind, agent)) < count:
            self.events.append(await asyncio.wait_for(anext(self._follow), 60))
        return found

    def of(self, kind: type[e.Body], agent: str) -> list[e.Body]:
        bodies = [event.body for event in self.events]
        return [b for b in bodies if isinstance(b, kind) and b.agent == agent]  # type: ignore[attr-defined]

    def outcomes(self, agent: str) -> list[tuple[str, str]]:
        """The state and the text of each action's outcome, in the order of the actions; exactly one each."""
        asked = [a.id for b in self.of(e.GenerationFinished, agent) for a in b.actions]  # type: ignore[attr-defined]
        done = {b.action: b.outcome for b in self.of(e.ActionFinished, agent)}  # type: ignore[attr-defined]
        assert len(done) == len(self.of(e.ActionFinished, agent)) and asked == sorted(done)
        return [(done[id].state, done[id].text) for id in asked]


async def play(folder: Path, own: OwnEngine, source: Engine, timeout: int) -> Seen:
    work = scene.lay(folder)
    engine = await own.with_image(source)
    away = Gate()
    async with scene.opened(folder, models(away, timeout)) as machine:
        seen = Seen(session := await scene.begin(machine, work))
        await seen.until(e.ActionStarted, "main", 6)
        while not (work / "data" / "begun").exists():  # noqa: ASYNC110 - another program makes it
            await asyncio.sleep(0.05)
        await asyncio.to_thread(own.stop)
        away.open()
        await seen.until(e.TurnEnded, "main/kid", 1)
        if timeout == LONG:
            (work / "data" / "over").touch()
        await own.start()
        if own.live_restore:  # they have gone on, and the same program answers
            await session.post("go on", "main/kid")
            await seen.until(e.TurnEnded, "main/kid", 2)
        await seen.until(e.TurnEnded, "main", 1)
        assert [s.name for s in await engine.list({SESSION: session.id}) if "none" in s.name] == []
    assert await engine.list({SESSION: session.id}) == []
    return seen


@pytest.mark.parametrize(
    ("live", "timeout"), [(False, LONG), (True, LONG), (True, 2_000)], ids=["ended", "live", "live, bounded"]
)
def test_the_engine_goes_and_comes_in_the_middle_of_a_session(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, live: bool, timeout: int
) -> None:
    own = OwnEngine(live_restore=live)
    monkeypatch.setenv("DOCKER_HOST", own.address)
    try:
        seen = asyncio.run(play(tmp_path, own, engine, timeout))
    finally:
        own.remove()
    (write, begin), tried = seen.outcomes("main/kid")[:2], seen.outcomes("main/kid")[2:]
    for state, text in (write, begin):
        assert state == "failed" and "container engine" in text, text
    assert [state for state, _ in tried] == (["done"] * 2 if live else [])

    started, called, first, waited, read, short, fresh, rest, again = seen.outcomes("main")
    assert (started[0], called[0], fresh) == ("done", "done", ("done", "exit status 0\nfresh"))
    # nothing was lost, nothing came twice
    told = "".join(text.partition("\n")[2] for _, text in (first, read, rest))
    assert told == ("hello\ngot x\ngot end\n" if live else "hello\nbye\n")
    # the end was said once, and with its reason
    end = "finished: exit status 7" if live else "finished: exit status 3"
    assert sum(end in text for _, text in (waited, read, rest, again)) == 1
    assert again[1].startswith("talk is finished; 0 bytes")
    if not live:
        assert short == ("done", "exit status 4\nbegun")
    elif timeout == LONG:
        assert short == ("done", "exit status 0\nbegun")
    else:
        assert short == ("failed", "exit status 4; stopped after 2000 ms (timeout)\nbegun")
    assert seen.events[-1].body.text == "Done."  # type: ignore[attr-defined]
