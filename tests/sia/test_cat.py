"""The example of the SIA document, end to end: feed the cat tomorrow at nine, which was this morning."""

from __future__ import annotations

import asyncio
import os
import xml.etree.ElementTree as ET
from collections.abc import Generator
from datetime import datetime
from pathlib import Path

import pytest
from sia_parts import Time, context_of, ended, machine, until

from textor import events as e
from textor.containers.engine import Engine, find_engine
from textor.containers.labels import this_process
from textor.containers.provider import ContainersProvider, Rules
from textor.layouts.monitor import Monitor
from textor.messages import Context
from textor.record.iterations import iterations, write_files
from textor.testing import ScriptedModel

BUSYBOX = "textor/busybox:test"
REQUEST = "Remind me to feed the cat tomorrow morning"

READ = 'There is data available on the standard input channel.\n<actions><read_stdin n="42"/></actions>'
# the reply of the document, byte for byte but for the image and the place of the folder
WRITE = """John did not specify an exact time. I'll suggest 9am. He also did not specify how to be reminded. I'll ask but if he doesn't respond I'll assume a text message on standard output is fine. I'll write down this task in a file so I can keep it in context. I can write simple files with busybox:latest and echo but I will need to use sh -c to do the redirect.
<actions>
  <write_stdout message="I'll remind you to feed the cat tomorrow morning at 9am. Is a message on the standard output ok?"/>
  <start_container image="IMAGE" timeout="30000" volumes="FOLDER:/tasks">
      <command>sh</command>
      <parameter>-c</parameter>
      <parameter><![CDATA[echo 'Remind John to feed the cat on 2024-10-18T09:00:00+02:00. Use standard output.' > /tasks/reminder.txt]]></parameter>
  </start_container>
  <monitor_file path="FOLDER/reminder.txt"/>
</actions>"""  # noqa: E501


@pytest.fixture
def engine() -> Generator[Engine]:
    async def find() -> Engine | None:
        found = await find_engine()
        return found if found is not None and await found.has_image(BUSYBOX) else None

    found = asyncio.run(find())
    if found is None:
        assert os.environ.get("CI") != "true", "CI must have an engine"
        pytest.skip("no container engine with the test images answers; scripts/engine.sh starts one")
    yield found


def thinking(tasks: Path) -> ScriptedModel:
    """A model that does what the document shows, and then compares the times that it sees."""
    replies = [READ, WRITE.replace("IMAGE", BUSYBOX).replace("FOLDER", str(tasks))]

    def answer(context: Context) -> str:
        if replies:
            return replies.pop(0)
        seen = context_of(context)
        now = datetime.fromisoformat(seen.find("system").attrib["time"].replace("Z", "+00:00"))  # type: ignore[union-attr]
        kept = next(f for f in seen.iter("file") if f.attrib["name"].endswith("reminder.txt"))
        due = datetime.fromisoformat((kept.text or "").split(" on ")[1].split(". ")[0])
        if due < now and not any("past" in (a.attrib.get("message", "")) for a in seen.iter("write_stdout")):
            said = f"{due.isoformat()} lies in the past; did you mean the 19th?"
            return f'Now is {now.isoformat()}.\n<actions><write_stdout message="{said}"/></actions>'
        return "Nothing is to be done now."

    return ScriptedModel(answer, native_tools=False)


def test_the_example_of_the_document(engine: Engine, tmp_path: Path) -> None:
    tasks = tmp_path / "work" / "tasks"
    tasks.mkdir(parents=True)
    heard: list[str] = []

    async def play() -> tuple[ScriptedModel, list[e.Event]]:
        model = thinking(tasks)
        containers = ContainersProvider(engine, this_process(), Rules(images=[BUSYBOX]))
        monitor = Monitor(containers)
        async with machine(
            model, tmp=tmp_path, monitor=monitor, providers=[containers], clock=Time()
        ) as made:
            session = await made.create(
                workspace=tasks.parent, agent="sia", model=model.id, policy="yes", attended=False
            )
            monitor.stdio.attach(session.id, heard.append)
            monitor.stdio.feed(REQUEST.encode())
            told = await monitor.change(lambda: state, "main") if (state := await session.state()) else []
            assert told == ["42 bytes wait on standard input"]
            await session.post(f"{told[0]}.")
            return model, await until(session, ended)

    model, events = asyncio.run(play())
    first, second, third, *_ = map(context_of, model.contexts)

    assert [part.tag for part in first] == ["system", "containers", "messages", "previous", "budget", "files"]
    system = first.find("system")
    assert system is not None
    assert system.attrib["time"] == "2024-10-18T12:00:00Z"
    assert system.attrib["stdin"] == str(len(REQUEST))
    assert {"cpu", "gpu", "memory_used", "memory_total", "disk_used", "disk_total", "context"} <= set(
        system.attrib
    )

    read = second.find("previous/actions/read_stdin")
    assert read is not None
    assert (read.attrib["n"], (read.text or "").strip()) == ("42", REQUEST)
    assert text(second, "previous/reasoning") == "There is data available on the standard input channel."

    (container,) = third.iter("container")
    assert container.attrib["status"] == "finished"
    assert third.find("previous/actions/read_stdin") is None  # only the previous iteration is there
    reminder = tasks / "reminder.txt"
    folder, file = third.iter("file")
    assert (folder.attrib["type"], "index" in folder.attrib) == ("dir", False)
    assert (folder.text or "").strip().endswith(" reminder.txt")
    assert (file.attrib["index"], (file.text or "").strip()) == ("0", reminder.read_text().strip())

    assert heard[0].startswith("I'll remind you")
    assert heard[1] == "2024-10-18T09:00:00+02:00 lies in the past; did you mean the 19th?\n"
    assert events[-1].body.reason == "replied"  # type: ignore[attr-defined]


def test_the_end_of_a_container_wakes_an_agent_that_waits(engine: Engine, tmp_path: Path) -> None:
    start = '<start_container image="IMAGE" name="slow"><command>sleep</command><parameter>2</parameter>'
    replies = [
        f"<actions>{start.replace('IMAGE', BUSYBOX)}</start_container><wait_event/></actions>",
        '<actions><wait_event timeout="60000"/></actions>',
        "It has ended.",
    ]

    async def play() -> tuple[ScriptedModel, list[str]]:
        model = ScriptedModel(replies, native_tools=False)
        containers = ContainersProvider(engine, this_process(), Rules(images=[BUSYBOX]))
        work = tmp_path / "work"
        work.mkdir()
        async with machine(model, tmp=tmp_path, monitor=Monitor(containers), providers=[containers]) as made:
            session = await made.create(
                "wait", workspace=work, agent="sia", model=model.id, policy="yes", attended=False
            )
            events = await until(session, ended)
            return model, [ev.body.outcome.text for ev in events if isinstance(ev.body, e.ActionFinished)]

    model, outcomes = asyncio.run(play())
    assert outcomes[1].startswith("the container slow is ")  # it was not there when the agent was last shown
    assert outcomes[2].startswith("the container slow is finished (exit status 0), 0 bytes unread. It is 20")
    (running,) = context_of(model.contexts[1]).iter("container")
    (finished,) = context_of(model.contexts[2]).iter("container")
    assert running.attrib["status"] != "finished" and finished.attrib["status"] == "finished"


def test_an_agent_reads_its_past_in_a_container_and_by_itself(engine: Engine, tmp_path: Path) -> None:
    """What `textor iterations export` writes, mounted; and the capabilities for the same."""
    start = '<start_container image="IMAGE" timeout="30000" volumes="past:/past:ro"><command>sh</command>'
    look = "<parameter>-c</parameter><parameter>cat /past/*/reply.txt; touch /past/x</parameter>"
    acts = start.replace("IMAGE", BUSYBOX) + look + "</start_container>"
    acts += '<iterations.list/><iterations.search text="called tom"/><iterations.read number="1"/>'
    replies = [
        "<actions><wait_event timeout='1'/></actions>The cat is called Tom.",
        f"<actions>{acts}</actions>",
        "So.",
    ]

    async def play() -> list[str]:
        work = tmp_path / "work"
        work.mkdir()
        model = ScriptedModel(replies, native_tools=False)
        containers = ContainersProvider(engine, this_process(), Rules(images=[BUSYBOX]))

        async with machine(model, tmp=tmp_path, monitor=Monitor(containers), providers=[containers]) as made:
            session = await made.create(
                "look", workspace=work, agent="sia", model=model.id, policy="yes", attended=False
            )
            first = await until(session, lambda ev: isinstance(ev.body, e.Observed))
            async for iteration in iterations(made.journal, session.id, made.services.layout):
                if iteration.number == 1:
                    write_files(iteration, work / "past", made.journal.blobs)
            events = first + await until(session, ended, first[-1].seq)
            return [ev.body.outcome.text for ev in events if isinstance(ev.body, e.ActionFinished)]

    _, past, listed, found, read = asyncio.run(play())
    assert "The cat is called Tom." in past and "Read-only file system" in past
    assert listed.startswith("1: scripted:model: wait_event done")
    assert "called Tom" in found and "--- reply ---" in read and "<system time=" in read


def text(context: ET.Element, path: str) -> str:
    found = context.find(path)
    assert found is not None
    return (found.text or "").strip()
