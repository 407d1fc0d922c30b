"""Images and other media on their way to a model: their content, or a note where it takes none.

A prompt names media by their hash, since a journal holds no content twice; what is sent is put
together here, at the last moment. A server that refuses media in its own words is believed, and
gets notes from then on (see `habits`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import suppress

from msgspec.structs import replace

from textor.messages import NO_STOP, Chunk, Context, Grammar, Media, Message, Part, Stop, Text
from textor.models.port import Model
from textor.values import Blobs, Value


def media_of(context: Context) -> list[Value]:
    """The media of a prompt, in order."""
    return [part.value for m in context.messages for part in m.parts if isinstance(part, Media)]


class Supplied:
    """A model that gets the content of the media in its prompts out of `blobs`; else as `model`."""

    def __init__(self, model: Model, blobs: Blobs) -> None:
        self._model = model
        self._blobs = blobs

    @property
    def id(self) -> str:
        return self._model.id

    @property
    def window(self) -> int:
        return self._model.window

    @property
    def native_tools(self) -> bool:
        return self._model.native_tools

    @property
    def grammars(self) -> bool:
        return self._model.grammars

    def count(self, text: str) -> int:
        return self._model.count(text)

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        return self._model.price(input, output, cached)

    def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk, None]:
        brought = dict(context.media)
        for value in media_of(context):
            if value.blob and value.blob not in brought:
                with suppress(KeyError):  # the model says of it that it was not given along
                    brought[value.blob] = self._blobs.get(value.blob)
        if brought:
            context = replace(context, media=brought)
        return self._model.generate(context, stop=stop, grammar=grammar)


def supplied(models: Callable[[str], Model], blobs: Blobs) -> Callable[[str], Model]:
    """`models`, each with the content of media."""
    return lambda id: Supplied(models(id), blobs)


def as_taken(context: Context, kinds: Collection[str], refused: Collection[str]) -> Context:
    """The context with a note in the place of each medium that is not of these `kinds`, or whose
    kind or handle was `refused`."""

    def shown(part: Part) -> Part:
        if not isinstance(part, Media) or part.value.kind in ("text", "json"):
            return part
        value = part.value
        if value.kind in kinds and not {value.kind, value.handle} & {*refused}:
            return part
        name = f"{part.caption or value.name or value.handle}: " if part.caption or value.name else ""
        why = "this model does not take it" if value.kind in kinds else f"this model takes no {value.kind}"
        return Text(f"\n[{name}{value.kind}, {value.media_type}, {value.size} bytes; {why}]")

    if not media_of(context):
        return context
    messages = [Message(m.role, tuple(map(shown, m.parts))) for m in context.messages]
    return replace(context, messages=tuple(messages))
