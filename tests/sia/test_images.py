"""Images in results and in messages, as a model on a server is shown them in both layouts."""

from __future__ import annotations

import asyncio
import base64
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sia_parts import ended, machine, until

from textor.assembly import Machine
from textor.events import Definition
from textor.journal.sqlite import SqliteJournal
from textor.layouts import Layouts
from textor.models.registry import resolve
from textor.models.remote import RemoteModel
from textor.record.iterations import iterations, write_files
from textor.session import Session
from textor.settings import ProviderSettings
from textor.testing import ScriptedServer
from textor.values import blob_value

XML = Definition("t", dialects=("xml",), layout="regenerated", capabilities=("files.read",), prompt="P")
PICTURE = b"\x89PNG\r\n\x1a\n" + b"pixels"
CODED = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
READ = 'I look.\n<actions><files.read path="a.png"/></actions>'


def model_on(server: ScriptedServer, **more: Any) -> RemoteModel:
    settings = ProviderSettings(base_url=server.url, context_window=32_000, **more)
    return RemoteModel(resolve("mine:scripted", {"mine": settings}))


def play(tmp: Path, definition: Definition, replies: list[str], *, send: bool = False, **more: Any) -> Any:
    """The requests of a session that reads an image, or gets one (`send`) with its message."""
    work = tmp / "work"
    work.mkdir()
    (work / "a.png").write_bytes(PICTURE)

    async def run(server: ScriptedServer) -> None:
        model = model_on(server, **more)
        async with machine(model, tmp=tmp, journal=SqliteJournal(tmp / "j.db")) as made:  # type: ignore[arg-type]
            session = await made.create(workspace=work, definition=definition, model=model.id)
            values = [blob_value(PICTURE, "image", "image/png", made.journal.blobs)] if send else []
            await session.post("What is <that>?", values=values)
            await until(session, ended)
            await _exported(made, session, tmp / "out")
            await made.journal.close()

    with ScriptedServer(replies) as server:
        asyncio.run(run(server))
        return [request.messages for request in server.requests]


async def _exported(made: Machine, session: Session, out: Path) -> None:
    async for iteration in iterations(made.journal, session.id, made.services.layout):
        write_files(iteration, out, made.journal.blobs)


def kinds(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    return [] if isinstance(content, str) else [piece["type"] for piece in content]


def xml_of(message: dict[str, Any]) -> ET.Element:
    content = message["content"]
    text = content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
    return ET.fromstring(text[text.index("<context>") :])


def test_a_past_whose_files_are_gone_is_exported_without_them(tmp_path: Path) -> None:
    """A journal that was copied without its blobs."""
    play(tmp_path, XML, [READ, "A cat."])
    out = tmp_path / "again"

    async def export(journal: SqliteJournal) -> None:
        (session,) = await journal.sessions()
        async for iteration in iterations(journal, session.id, Layouts()):
            write_files(iteration, out, journal.blobs)
        await journal.close()

    shutil.rmtree(tmp_path / "j.db-blobs")
    asyncio.run(export(SqliteJournal(tmp_path / "j.db")))
    assert len(list(out.iterdir())) == 2 and not (out / "values").exists()


def test_an_image_of_a_result_stands_beside_the_context_for_one_iteration(tmp_path: Path) -> None:
    first, second, third = play(tmp_path, XML, [READ, READ.replace("a.png", "none"), "A cat."])
    assert kinds(first[-1]) == [] and kinds(third[-1]) == []
    assert kinds(second[-1]) == ["text", "text", "image_url", "text"]
    lead, name, image, _ = second[-1]["content"]
    assert lead["text"] == "The context as it is now:" and image["image_url"]["url"] == CODED
    (named,) = xml_of(second[-1]).findall("previous/media")
    assert named.attrib == {
        "name": name["text"], "kind": "image", "type": "image/png", "bytes": str(len(PICTURE))
    }  # fmt: skip
    assert [v.attrib["name"] for v in xml_of(third[-1]).iter("variable")] == [name["text"]]  # it can be named


def test_an_image_of_a_message_stands_there_for_the_whole_turn(tmp_path: Path) -> None:
    requests = play(tmp_path, XML, [READ.replace("a.png", "none"), "A cat."], send=True)
    for messages in requests:
        assert kinds(messages[-1]) == ["text", "text", "image_url", "text"]
        (named,) = xml_of(messages[-1]).findall("messages/media")
        assert named.attrib["name"] == messages[-1]["content"][1]["text"] == "image_1"


def test_a_model_without_eyes_gets_a_note(tmp_path: Path) -> None:
    _, second, _ = play(tmp_path, XML, [READ, READ, "A cat."], media=())
    note = second[-1]["content"].split("<context>")[0]
    assert "image, image/png, 14 bytes; this model takes no image]" in note
    assert len([*xml_of(second[-1]).iter("media")]) == 1


def test_in_the_stable_layout_the_image_stays_in_the_dialogue(tmp_path: Path) -> None:
    stable = replace(XML, layout="stable")
    _, second, third = play(tmp_path, stable, [READ, READ.replace("a.png", "none"), "A cat."])
    shown = [m for m in second if "image_url" in kinds(m)]
    assert len(shown) == 1 and [m for m in third if "image_url" in kinds(m)] == shown


def test_an_exported_iteration_holds_what_was_shown(tmp_path: Path) -> None:
    play(tmp_path, XML, [READ, "A cat."])
    first, second, values = sorted((tmp_path / "out").iterdir())
    (picture,) = values.iterdir()
    assert picture.suffix == ".png" and picture.read_bytes() == PICTURE
    assert picture.name in (second / "context.txt").read_text()
    assert picture.name not in (first / "context.txt").read_text()
