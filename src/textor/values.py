"""Values: text, JSON, files and media, kept by content.

A value is immutable. Small text and JSON stand in the value itself; everything else is in the
blob store under the SHA-256 of its bytes, so the same content is kept once. `labels` say where
the data came from; they follow the value wherever it goes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, Protocol

import msgspec

Json = Any  #: anything `json` can write: None, bool, int, float, str, list, dict[str, Json]
Labels = tuple[str, ...]  #: sorted, without doubles; e.g. ("web:example.org",)
Kind = Literal["text", "json", "image", "audio", "video", "file"]

#: Kinds that become variables of the agent they reach; a big text is found by its handle.
MEDIA: tuple[Kind, ...] = ("image", "audio", "video", "file")

#: Kinds that a model can be shown beside the text.
SHOWN: tuple[Kind, ...] = ("image", "audio", "video")

#: Above this many UTF-8 bytes a text is shown to a model as head, tail and handle.
BIG = 8_000


class Blobs(Protocol):
    """Content-addressed bytes. `put` is idempotent; `get` raises `KeyError` for an unknown hash."""

    def put(self, content: bytes) -> str: ...
    def get(self, sha256: str) -> bytes: ...


class Value(msgspec.Struct, frozen=True):
    """One piece of data. Exactly one of `text` and `blob` is set.

    `size` is the length of the content in bytes (UTF-8 for text).
    """

    kind: Kind
    media_type: str
    text: str | None = None
    blob: str | None = None
    size: int = 0
    labels: Labels = ()
    name: str = ""

    @property
    def handle(self) -> str:
        """The name by which `values.read` finds a stored value."""
        return (self.blob or sha256_of((self.text or "").encode()))[:12]


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def merge_labels(*parts: Labels) -> Labels:
    """The union of several label sets, sorted."""
    merged: set[str] = set()
    for part in parts:
        merged.update(part)
    return tuple(sorted(merged))


def clean_text(text: str) -> str:
    """`text` as it can be stored and sent: surrogate pairs are joined, lone surrogates and NUL
    become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def text_value(text: str, blobs: Blobs, *, name: str = "", labels: Labels = ()) -> Value:
    """A text as a value: in itself when it is small, in the blob store when it is big."""
    content = clean_text(text).encode()
    if len(content) <= BIG:
        return Value("text", "text/plain", text=content.decode(), size=len(content), labels=labels, name=name)
    blob = blobs.put(content)
    return Value("text", "text/plain", blob=blob, size=len(content), labels=labels, name=name)


def blob_value(
    content: bytes, kind: Kind, media_type: str, blobs: Blobs, *, name: str = "", labels: Labels = ()
) -> Value:
    """Bytes as a value, kept in the blob store."""
    blob = blobs.put(content)
    return Value(kind, media_type, blob=blob, size=len(content), labels=labels, name=name)


def content_of(value: Value, blobs: Blobs) -> bytes:
    """The bytes of a value."""
    if value.text is not None:
        return value.text.encode()
    assert value.blob is not None
    return blobs.get(value.blob)


def shown(text: str, handle: str, limit: int = BIG) -> str:
    """`text` as a model is shown it: whole up to `limit` bytes, else head, tail and handle.

    Cut by code point, so that what is shown is always valid text.
    """
    content = text.encode()
    if len(content) <= limit:
        return text
    half = limit // 2
    head = content[:half].decode("utf-8", "ignore")
    tail = content[-half:].decode("utf-8", "ignore")
    left_out = len(content) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[… {left_out} bytes left out; the whole text is value {handle} …]\n{tail}"


_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)|!\[[^\]\n]*\]\(([A-Za-z_][A-Za-z0-9_]*)\)")


def references(text: str, variables: Mapping[str, Value]) -> tuple[Value, ...]:
    """The variables that a text refers to as `$name` or `![caption](name)`, each once, named.

    A name that merely occurs in a sentence is none.
    """
    names = [m[1] or m[2] for m in _REFERENCE.finditer(text)]
    return tuple(
        msgspec.structs.replace(variables[name], name=name)
        for name in dict.fromkeys(names)
        if name in variables
    )


def free_name(name: str, taken: Collection[str]) -> str:
    """`name`, or with the first number that makes it free."""
    if name not in taken:
        return name
    return next(f"{name}_{n}" for n in range(2, len(taken) + 3) if f"{name}_{n}" not in taken)


def named(values: Iterable[Value], variables: Mapping[str, Value]) -> list[Value]:
    """The values under names that are free among `variables`; known content keeps its name."""
    taken = dict(variables)
    found: list[Value] = []
    for value in values:
        known = next((n for n, v in taken.items() if v.handle == value.handle), "")
        name = known or free_name(value.name or f"{value.kind}_1", taken)
        taken[name] = value
        found.append(msgspec.structs.replace(value, name=name))
    return found


def head(value: Value, length: int = 50) -> str:
    """One line that says what a value is, with the first characters of a text."""
    if value.text is None:
        return f"{value.kind}, {value.media_type}, {value.size} bytes, {value.handle}"
    start = value.text[:length].replace("\n", " ")
    return f"{value.kind}, {value.size} bytes: {start}{'…' if len(value.text) > length else ''}"
