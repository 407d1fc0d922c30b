"""Case T8: a container is gone in the middle of 300 commands. Its end is said once, to each agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textor import events as e
from textor.containers.engine import Engine
from textor.containers.labels import SESSION
from textor.events import Event
from textor.testing import Call, Gate, Reply, ScriptedModel

from . import scene

#: Writes more than all that is read before it is gone.
TALK = "seq 100000; while read x; do echo got $x; done"
REPLIES, AT_ONCE, BYTES = 30, 10, 7
WISH = {"image": scene.BUSYBOX, "command": "sh", "name": "talk"}


def models(middle: Gate) -> list[ScriptedModel]:
    """`main` gives 300 commands, ten at a time, and stops at `middle`; `kid` waits for the end."""
    kid = Call("call", {"type": "kid", "name": "kid", "message": "wait for it", "background": True})
    begin = Reply(calls=(Call("start_container", {**WISH, "parameters": ["-c", TALK]}),))
    script: list[Reply | str] = [begin, Reply(calls=(kid,))]
    for number in range(REPLIES):
        reads = [
            Call("read_stdout", {"name": "talk", "n": BYTES, "timeout": number * 100 + i}) for i in range(8)
        ]
        others = (Call("write_stdin", {"name": "talk", "text": f"{number}\n"}), Call("list_containers", {}))
        gates = {2: middle} if number == REPLIES // 2 else {}
        script.append(Reply("More.", calls=(*reads, *others), gates=gates))
    again = Call("start_container", {**WISH, "parameters": ["-c", "echo again"], "timeout": 60_000})
    wait = Reply(calls=(Call("wait_container", {"name": "talk", "timeout": 600_000}),))
    return [
        ScriptedModel([*script, Reply(calls=(again,)), "Done."], id="scripted:main"),
        ScriptedModel([wait, "It is gone."], id="scripted:kid"),
    ]


async def play(engine: Engine, folder: Path) -> list[Event]:
    work = scene.lay(folder)
    middle = Gate()
    async with scene.opened(folder, models(middle)) as machine:
        session = await scene.begin(machine, work, f"gone-{folder.parent.name}-{folder.name}")
        await middle.reached.wait()
        (state,) = await engine.list({SESSION: session.id})
        await engine.remove(state.id)  # by somebody else
        middle.open()
        async with asyncio.timeout(60):
            return await scene.ended(session)


def test_a_container_is_gone_in_the_middle_of_300_commands(engine: Engine, tmp_path: Path) -> None:
    events = asyncio.run(play(engine, tmp_path))
    asked = {a.id: a for ev in events if isinstance(ev.body, e.GenerationFinished) for a in ev.body.actions}
    done = [ev.body for ev in events if isinstance(ev.body, e.ActionFinished)]
    outcomes = {body.action: body.outcome for body in done}
    assert len(done) == len(outcomes) == len(asked) >= REPLIES * AT_ONCE

    for name in ("main", "main/kid"):
        mine = [o for id, o in outcomes.items() if id.rpartition(".")[0].rpartition(".")[0] == name]
        # a list shows what there is each time
        told = [o.text for o in mine if "finished: " in o.text and not o.text.startswith("talk: ")]
        assert len(told) == 1, (name, told, [o.text for o in mine][-12:])
        assert "exit status 137" in told[0] or "the container is gone" in told[0]

    by_kind: dict[str, list[str]] = {}
    for id, outcome in outcomes.items():
        by_kind.setdefault(asked[id].capability, []).append(f"{outcome.state}: {outcome.text}")
    # not one reading failed, and what came of them is what it wrote, in order
    assert all(text.startswith("done: ") for text in by_kind["read_stdout"])
    read = "".join(text.partition("\n")[2] for text in by_kind["read_stdout"])
    assert "".join(f"{n}\n" for n in range(1, 100_001)).startswith(read) and len(read) == 8 * REPLIES * BYTES
    refused = [text for text in by_kind["write_stdin"] if not text.startswith("done: ")]
    assert 0 < len(refused) <= REPLIES - REPLIES // 2
    assert refused[-1] == "failed: talk takes no input: it is finished."
    assert not any("engine refused" in text for texts in by_kind.values() for text in texts)
    assert by_kind["start_container"][-1] == "done: exit status 0\nagain"
    assert events[-1].body.text == "Done."  # type: ignore[attr-defined]
