"""A session with containers and children, scripted: three agents, three containers, pipes both ways.

`main` has a container of its own, calls `kid` and waits for it, and has `back` in the background,
who waits for that container's end. `kid` has a container that stays, with which it speaks, and a
short one. What the programs take in they write down in the workspace as well, line by line, so that
what really arrived can be compared with what the journal says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textor import events as e
from textor.assembly import Machine, open_machine, opening
from textor.config import Config
from textor.events import Definition, Event, Limits
from textor.kernel.state import State, fold_all
from textor.messages import Context, Text, ToolCall, ToolResult
from textor.processors import Models
from textor.session import Session
from textor.settings import ContainerSettings, SandboxSettings
from textor.testing import Call, Reply, ScriptedModel

BUSYBOX = "textor/busybox:test"
CAPABILITIES = ("*container*", "*_stdin", "read_stdout", "call", "wait_event")
PROGRAM = (
    "trap 'exit 0' TERM; printf 'one\\ntwo\\nthree\\n'; "
    'while read x; do echo "$x" >> /data/$0.log; echo "got $x"; [ "$x" = end ] && exit 7; done'
)
GREETING = "one\ntwo\nthree\n"
TYPE = "---\nname: {name}\npurpose: works\ndialects: [tools]\ncapabilities: {capabilities}\n---\nWork.\n"
PATIENCE = 60_000

Results = dict[str, str]
#: The call that is due, given the results so far; None where it is left out.
Step = Callable[[Results], tuple[str, dict[str, Any]] | None]


def start(name: str, **more: Any) -> Step:
    wish = {"image": BUSYBOX, "name": name, "command": "sh", "volumes": ["data:/data"], **more}
    wish.setdefault("parameters", ["-c", PROGRAM, name])
    return lambda _: ("start_container", wish)


def write(name: str, text: str) -> Step:
    return lambda _: ("write_stdin", {"name": name, "text": text})


def read(name: str, n: int = 4096, after: str = "") -> Step:
    return lambda r: ("read_stdout", {"name": name, "n": n, "timeout": patience(r, after)})


def call(name: str, background: bool = False) -> Step:
    wish = {"type": name, "name": name, "message": "work", "background": background}
    return lambda _: ("call", wish)


def wait(name: str, after: str) -> Step:
    return lambda r: ("wait_container", {"name": name, "timeout": patience(r, after)})


def patience(results: Results, after: str) -> int:
    """Milliseconds: not many when it is not known whether the word for it has arrived."""
    return PATIENCE if "written" in results.get(after, "written") else 500


def stop(name: str, unless: str = "") -> Step:
    """Stop it, unless the result of the step `unless` says that it has ended."""
    return lambda r: None if "finished" in r.get(unless, "") else ("stop_container", {"name": name})


KID = {
    "k1": start("long"),
    "k2": read("long", 4),
    "k3": write("long", "a\n"),
    "k4": read("long"),
    "k5": start("short", parameters=["-c", "echo ran >> /data/short.log; echo done"], timeout=PATIENCE),
    "k6": write("long", "end\n"),
    "k7": wait("long", "k6"),
    "k8": stop("long", "k7"),
    "k9": read("long"),
}
BACK = {"b1": wait("mine", "")}
MAIN = {
    "m1": start("mine"),
    "m2": call("back", background=True),
    "m3": call("kid"),
    "m4": read("mine", len(GREETING)),
    "m5": write("mine", "x\n"),
    "m6": read("mine", after="m5"),
    "m7": stop("mine"),
    "m8": read("mine"),
}
SAID = {"kid": "The kid is done.", "back": "It is over.", "main": "All done."}
#: The actions that may not be repeated, and the lines that they write.
LINES = {"long": ["a", "end"], "short": ["ran"], "mine": ["x"]}


def script(name: str, steps: dict[str, Step]) -> Callable[[Context], Reply | str]:
    """One call an iteration; `main` makes its two calls in one, and waits for the one in the back."""

    def following(context: Context) -> Reply | str:
        parts = [p for m in context.messages for p in m.parts]
        results = {p.call_id: p.text for p in parts if isinstance(p, ToolResult)}
        due = [
            Call(wish[0], wish[1], id=id)
            for id, step in steps.items()
            if id not in results and (wish := step(results)) is not None
        ]
        if due:
            return Reply(calls=tuple(due[:2]) if due[0].id == "m2" else (due[0],))
        heard = any(SAID["back"] in p.text for p in parts if isinstance(p, Text))
        if name == "main" and not heard:
            return Reply(calls=(Call("wait_event", {"timeout": PATIENCE}, id=f"w{len(results)}"),))
        return SAID[name]

    return following


def models() -> dict[str, ScriptedModel]:
    scripts = {"main": MAIN, "kid": KID, "back": BACK}
    return {
        name: ScriptedModel(script(name, steps), id=f"scripted:{name}") for name, steps in scripts.items()
    }


def lay(folder: Path) -> Path:
    """The workspace of the scene in `folder`."""
    work = folder / "work"
    (work / "data").mkdir(parents=True)
    agents = work / ".textor" / "agents"
    agents.mkdir(parents=True)
    for name in ("kid", "back"):
        (agents / f"{name}.md").write_text(TYPE.format(name=name, capabilities=json.dumps(CAPABILITIES)))
    return work


def configured(folder: Path) -> Config:
    return Config(
        path=folder / "config.toml",
        data=folder / "data",
        models={"kid": "scripted:kid", "back": "scripted:back", "default": "scripted:main"},
        sandbox=SandboxSettings(kind="none"),
        containers=ContainerSettings(images=(BUSYBOX,)),
    )


@asynccontextmanager
async def opened(folder: Path, scripted: Iterable[ScriptedModel]) -> AsyncIterator[Machine]:
    """A machine over `folder/data` whose models are these, from its first step on."""

    class Scripted(Models):
        def __init__(self, config: Config) -> None:
            super().__init__(config)
            for model in scripted:
                self.add(model)

    usual, opening.Models = opening.Models, Scripted  # type: ignore[misc]
    try:
        async with open_machine(configured(folder)) as machine:
            yield machine
    finally:
        opening.Models = usual  # type: ignore[misc]


async def begin(machine: Machine, work: Path, id: str | None = None) -> Session:
    definition = Definition("main", capabilities=CAPABILITIES, prompt="You are main.")
    return await machine.create(
        "begin",
        workspace=work,
        definition=definition,
        model="scripted:main",
        attended=False,
        limits=Limits(iterations=60),
        id=id,
    )


async def ended(session: Session) -> list[Event]:
    """All events up to the end of the turn of `main`."""
    seen: list[Event] = []
    async for event in session.follow():
        seen.append(event)
        if isinstance(event.body, e.TurnEnded) and event.body.agent == "main":
            return seen
    raise AssertionError("a session is followed for ever")


def log(work: Path, name: str) -> list[str]:
    """The lines that a program took in."""
    path = work / "data" / f"{name}.log"
    return path.read_text().split() if path.exists() else []


def faults(events: Sequence[Event], work: Path, *, cut: bool = False) -> list[str]:
    """What is wrong with a session that was played to its end, in sentences. `cut`: the short container
    may have been stopped before its end."""
    found: list[str] = []
    state = fold_all(State(), events)
    bodies = [event.body for event in events]
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        found.append("there are gaps in the journal")
    done = [b for b in bodies if isinstance(b, e.ActionFinished)]
    outcomes = {b.action: b.outcome for b in done}
    if len(done) != len(outcomes):
        found.append("an action has two outcomes")
    asked = {a.id: a for b in bodies if isinstance(b, e.GenerationFinished) for a in b.actions}
    if outcomes.keys() != asked.keys():
        found.append(f"without an outcome: {sorted(asked.keys() - outcomes.keys())}")
    for id, outcome in outcomes.items():
        may = ["done", "unknown"] if asked[id].capability == "write_stdin" else ["done"]
        may += ["failed"] if cut and asked[id].arguments.get("name") == "short" else []
        if outcome.state not in may:
            found.append(f"{asked[id].capability} {outcome.state}: {outcome.text}")
    written = [
        (asked[id].arguments["text"], o) for id, o in outcomes.items() if "text" in asked[id].arguments
    ]
    for text, outcome in written:
        times = sum(log(work, name).count(text.strip()) for name in ("long", "mine"))
        if times > 1 or (times == 0 and outcome.state == "done"):
            found.append(f"{text!r} arrived {times} times and is {outcome.state}")
    if log(work, "short") != ["ran"] and not (cut and not log(work, "short")):
        found.append(f"the short one ran {len(log(work, 'short'))} times")
    for name in ("long", "mine"):
        told = "".join(
            outcomes[id].text.partition("\n")[2]
            for id, action in asked.items()
            if action.capability == "read_stdout" and action.arguments["name"] == name and id in outcomes
        )
        wrote = GREETING + "".join(f"got {line}\n" for line in log(work, name))
        if told != wrote:
            found.append(f"{name} wrote {wrote!r}, and read was {told!r}")
    return found + _told(state, bodies) + _history(state)


def _told(state: State, bodies: Sequence[e.Body]) -> list[str]:
    """Each reply came to its caller, once."""
    found = []
    for name, text in SAID.items():
        ends = [b for b in bodies if isinstance(b, e.TurnEnded) and b.agent.rpartition("/")[2] == name]
        if [(b.reason, b.text) for b in ends] != [("replied", text)]:
            found.append(f"{name} ended with {[(b.reason, b.text, b.detail) for b in ends]}")
        parts = [p for m in state.agents["main"].dialogue for p in m.parts]
        times = sum(text in p.text for p in parts if isinstance(p, Text | ToolResult))
        if times != 1:
            found.append(f"main has read {text!r} {times} times")
    return found


def _history(state: State) -> list[str]:
    """Every native call is followed by its one result, as model servers want it."""
    found = []
    for agent in state.agents.values():
        messages = [m for m in agent.dialogue if m.role in ("assistant", "tool")]
        for at, message in enumerate(messages):
            calls = [p.call_id for p in message.parts if isinstance(p, ToolCall)]
            after = messages[at + 1] if at + 1 < len(messages) else None
            results = [p.call_id for p in after.parts if isinstance(p, ToolResult)] if after else []
            if calls and calls != results:
                found.append(f"{agent.id} called {calls}, and the results are of {results}")
    return found
