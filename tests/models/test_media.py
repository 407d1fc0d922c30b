"""Media on their way to a model: their content, or a note where it takes none."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from msgspec.structs import replace

from textor.errors import ModelError
from textor.journal.memory import MemoryJournal
from textor.messages import Context, Media, Message, ProgressChunk, Text, said
from textor.models.habits import Habits
from textor.models.media import Supplied, as_taken
from textor.models.registry import resolve
from textor.models.remote import RemoteModel
from textor.settings import ModelSettings, ProviderSettings
from textor.testing import Reply, ScriptedServer, Status
from textor.values import blob_value

BLOBS = MemoryJournal().blobs
PNG = blob_value(b"\x89PNG....", "image", "image/png", BLOBS, name="image_1")
SOUND = blob_value(b"RIFF", "audio", "audio/wav", BLOBS, name="sound")
SHOWN = Context((said("system", "P"), Message("user", (Text("Look:"), Media(PNG, "image_1")))))


def asked(server: ScriptedServer, settings: ProviderSettings, *contexts: Context) -> list[str]:
    """The notices while these contexts are answered."""
    model = Supplied(RemoteModel(resolve("mine:scripted", {"mine": settings})), BLOBS)

    async def run() -> list[str]:
        told: list[str] = []
        for context in contexts:
            chunks = [chunk async for chunk in model.generate(context)]
            told += [chunk.text for chunk in chunks if isinstance(chunk, ProgressChunk)]
        return told

    return asyncio.run(run())


def test_a_model_gets_the_content_of_an_image(tmp_path: Path) -> None:
    with ScriptedServer(["Seen."]) as server:
        asked(server, ProviderSettings(base_url=server.url), SHOWN)
        (request,) = server.requests
    coded = base64.b64encode(b"\x89PNG....").decode()
    assert request.messages[1]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "text", "text": "image_1"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded}"}},
    ]


def test_a_model_that_is_told_to_take_no_images_gets_a_note() -> None:
    with ScriptedServer(["One.", "Two."]) as server:
        asked(server, ProviderSettings(base_url=server.url, media=()), SHOWN)
        one = ModelSettings(media=("audio",))
        asked(server, ProviderSettings(base_url=server.url, models={"scripted": one}), SHOWN)
    note = "Look:\n[image_1: image, image/png, 8 bytes; this model takes no image]"
    assert [r.messages[1]["content"] for r in server.requests] == [note, note]


@pytest.mark.parametrize(
    "complaint",
    [
        "image input is not supported - hint: you may need to provide the mmproj",
        "Invalid content type. image_url is only supported by certain models.",
        "messages[1]: unknown variant `image_url`, expected `text`",
        "messages[1].content must be a string",
        "No endpoints found that support image input",
        "scripted is not a multimodal model",
    ],
)
def test_a_server_that_refuses_images_is_believed_once(complaint: str) -> None:
    with ScriptedServer([Status(400, complaint), Reply("Fine."), Reply("Again.")]) as server:
        told = asked(server, ProviderSettings(base_url=server.url), SHOWN, SHOWN)
    assert len(server.requests) == 3
    assert [type(r.messages[1]["content"]) for r in server.requests] == [list, str, str]
    assert len(told) == 1 and "it takes no image" in told[0]


def test_one_image_that_is_too_big_does_not_end_a_session() -> None:
    other = blob_value(b"\x89PNG small", "image", "image/png", BLOBS)
    with ScriptedServer([Status(400, "image exceeds 5 MB maximum"), "Fine.", "Fine."]) as server:
        second = Context((Message("user", (Text("x"), Media(PNG), Media(other))),))
        asked(server, ProviderSettings(base_url=server.url), SHOWN, second)
    kinds = [piece["type"] for piece in server.requests[2].messages[0]["content"]]
    assert kinds == ["text", "text", "image_url"]  # only the one that was refused is a note


def test_other_complaints_are_not_laid_on_the_images() -> None:
    with ScriptedServer([Status(400, "temperature is out of range")]) as server:
        with pytest.raises(ModelError, match="temperature"):
            asked(server, ProviderSettings(base_url=server.url), SHOWN)
        assert len(server.requests) == 1
    assert Habits("all").learn_from("image is bad", False, [PNG]) != ""
    assert Habits("all").learn_from("image is bad", False) == ""


def test_only_what_is_not_taken_becomes_a_note() -> None:
    context = Context((Message("user", (Media(PNG, "a"), Media(SOUND, "b"))),))
    assert as_taken(context, ("image", "audio"), ()) == context
    first, second = as_taken(context, ("image",), ()).messages[0].parts
    assert first == Media(PNG, "a")
    assert second == Text("\n[b: audio, audio/wav, 4 bytes; this model takes no audio]")


def test_content_that_is_gone_is_said() -> None:
    gone = replace(PNG, blob="0" * 64)
    with ScriptedServer(["x"]) as server, pytest.raises(ModelError, match="was not given along"):
        settings = ProviderSettings(base_url=server.url)
        asked(server, settings, Context((Message("user", (Media(gone, "image_1"),)),)))
