"""The prompts that are rebuilt from a journal are, byte for byte, the requests that a server received."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sia_parts import ended, machine, until

from textor import events as e
from textor.assembly import Machine
from textor.events import Definition
from textor.journal.sqlite import SqliteJournal
from textor.kernel.summary import REQUEST
from textor.models.media import Supplied
from textor.models.registry import resolve
from textor.models.remote import RemoteModel
from textor.record.forks import fork
from textor.record.iterations import Iteration, iterations
from textor.record.replay import replay
from textor.record.review import Draft
from textor.session import Session
from textor.settings import ProviderSettings
from textor.testing import Call, Reply, ScriptedServer
from textor.testing.server import Request

PICTURE = b"\x89PNG\r\n\x1a\n" + b"pixels"
LONG = "ü<&>" * 700


def reading(dialect: str) -> str | Reply:
    if dialect == "tools":
        return Reply("I look.", calls=(Call("files_read", {"path": "a.png"}),))
    return 'I look.\n<actions><files.read path="a.png"/></actions>'


def printing(dialect: str, text: str) -> str | Reply:
    if dialect == "tools":
        return Reply("I print.", calls=(Call("print", {"text": text}),))
    return f"I print.\n<actions><print><text><![CDATA[{text}]]></text></print></actions>"


def script(dialect: str) -> Callable[[Request], str | Reply]:
    """First an image, then long texts, then answers; asked for a summary, it gives one."""
    acts = [reading(dialect), *(printing(dialect, f"{n}{LONG}") for n in range(5)), "Bad.", "Better."]
    acts += [printing(dialect, "more"), "Done.", printing(dialect, "other"), "End."]
    left = iter(acts)
    return lambda request: "It was about cats." if is_summary(request.body) else next(left)


def is_summary(body: bytes) -> bool:
    return bool(json.loads(body)["messages"][-1]["content"] == REQUEST)


def remote(server: ScriptedServer) -> RemoteModel:
    settings = ProviderSettings(base_url=server.url, context_window=9_000)
    return RemoteModel(resolve("mine:scripted", {"mine": settings}))


async def reviewed(session: Session, after: int, *verdicts: str | Draft) -> int:
    """Review the next replies; gives the number of the last event that was seen."""
    for verdict in verdicts:
        seen = await until(session, lambda ev: isinstance(ev.body, e.GenerationFinished), after)
        after = seen[-1].seq
        if isinstance(verdict, Draft):
            await session.edit_reply("main", verdict)
        else:
            await session.review("main", verdict, remark="say it <better>")  # type: ignore[arg-type]
    return after


async def live(made: Machine, work: Path, definition: Definition) -> list[Iteration]:
    """Two turns with everything in them, and two forks of them; all their iterations."""
    session = await made.create(
        "What is <this>? 🐈", workspace=work, definition=definition, model="mine:scripted"
    )
    after = await reviewed(session, 0, *["accept"] * 3, Draft("Rather not."))
    after = (await until(session, ended, after))[-1].seq
    await session.post("Go on.")
    after = await reviewed(session, after, *["accept"] * 2, "again", "accept")
    after = (await until(session, ended, after))[-1].seq
    first = [i async for i in iterations(made.journal, session.id, made.services.layout)]
    await session.post("And now?")
    after = await reviewed(session, after, "accept", "accept")
    await until(session, ended, after)
    found = [i async for i in iterations(made.journal, session.id, made.services.layout)]
    for at, draft in ((first[2], None), (first[-1], Draft("Mine."))):
        id = await fork(made.services, session.id, at.seq, f"fork-{at.seq}", draft=draft)
        assert made.host is not None
        made.host.wake(id)
        other = await made.session(id)
        if draft is None:
            await reviewed(other, at.seq - 1, "accept", "accept")
        await until(other, ended, at.seq - 1)
        own = [i async for i in iterations(made.journal, id, made.services.layout)]
        found += [i for i in own if i.began >= found[-1].over]
        assert (await replay(made.services, id)).differences == ()
    assert (await replay(made.services, session.id)).differences == ()
    return found


@pytest.mark.parametrize(
    ("dialects", "layout"), [(("xml",), "stable"), (("xml",), "regenerated"), (("tools",), "stable")]
)
def test_with_media_summaries_reviews_and_forks(tmp_path: Path, dialects: Sequence[str], layout: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.png").write_bytes(PICTURE)
    capabilities = ("print", "files.read")
    definition = Definition(
        "t", dialects=tuple(dialects), layout=layout, capabilities=capabilities, prompt="P", review=True
    )

    async def run(server: ScriptedServer, second: ScriptedServer) -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        async with machine(remote(server), tmp=tmp_path, journal=journal) as made:  # type: ignore[arg-type]
            found = await live(made, work, definition)
            again = Supplied(remote(second), made.journal.blobs)
            for iteration in found:
                async for _ in again.generate(iteration.context):
                    pass
        await journal.close()

    with ScriptedServer(script(dialects[0])) as server, ScriptedServer(lambda _: "x") as second:
        asyncio.run(run(server, second))
        sent = [r.body for r in server.requests if not is_summary(r.body)]
        assert [r.body for r in second.requests] == sent
        assert len(sent) == 12
        assert any(b"image_url" in body for body in sent)
        summaries = len(server.requests) - len(sent)
        assert summaries > 0 if layout == "stable" else summaries == 0
