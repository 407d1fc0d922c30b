"""What a tool of a module gave back, as an outcome: texts as text, media as values, links as links."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import msgspec
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from textor.actions import Outcome
from textor.capabilities.modules.tools import Tool
from textor.capabilities.port import Scope
from textor.capabilities.table import text_outcome
from textor.values import BIG, Kind, Labels, Value, blob_value, clean_text, text_value


def outcome_of(result: CallToolResult, tool: Tool, scope: Scope, labels: Labels) -> Outcome:
    """One outcome for the whole result. Nothing that a result points to is fetched (T4)."""
    reader = _Reader(scope, labels)
    for block in result.content:
        reader.take(block)
    data = result.structured_content
    if data is not None:
        shown = clean_text(json.dumps(data, ensure_ascii=False, default=str))
        if not reader.texts:  # else the texts say the same, as the protocol wants it
            reader.texts.append(shown)
        if fault := _misfit(data, tool):
            reader.texts.append(f"[the structured result does not fit the tool's own schema: {fault}]")
        if len(shown.encode()) > BIG:
            data = None
    made = text_outcome("\n".join(reader.texts), scope)
    values = (*(msgspec.structs.replace(value, labels=labels) for value in made.values), *reader.values)
    status = data.get("exit_status") if isinstance(data, dict) else None
    status = status if type(status) is int else None
    if not result.is_error:
        return Outcome("done", made.text, values, data, status, labels=labels)
    text = made.text or "The tool failed and did not say why."
    return Outcome("failed", text, values, data, status, labels=labels)


class _Reader:
    def __init__(self, scope: Scope, labels: Labels) -> None:
        self.scope = scope
        self.labels = labels
        self.texts: list[str] = []
        self.values: list[Value] = []

    def take(self, block: Any) -> None:
        if isinstance(block, TextContent):
            self.texts.append(clean_text(block.text))
        elif isinstance(block, ImageContent):
            self._media(block.data, "image", block.mime_type, "image")
        elif isinstance(block, AudioContent):
            self._media(block.data, "audio", block.mime_type, "audio")
        elif isinstance(block, ResourceLink):
            about = clean_text(block.description or block.title or block.name)
            self.texts.append(f"[link: {clean_text(str(block.uri))} ({about})]")
        elif isinstance(block, EmbeddedResource):
            self._resource(block)
        else:
            self.texts.append(f"[content of the unknown type {type(block).__name__}]")

    def _resource(self, block: EmbeddedResource) -> None:
        resource = block.resource
        address = clean_text(str(resource.uri))
        name = address.rstrip("/").rpartition("/")[2] or "resource"
        if isinstance(resource, BlobResourceContents):
            media = resource.mime_type or "application/octet-stream"
            self._media(resource.blob, _kind(media), media, name)
            return
        text = clean_text(resource.text)
        value = text_value(text, self.scope.blobs, name=name, labels=self.labels)
        if value.size > BIG:
            self.values.append(value)
            self.texts.append(f"[{address}: {value.size} bytes of text; it is value {value.handle}]")
        else:
            self.texts.append(f"[{address}]\n{text}")

    def _media(self, encoded: str, kind: Kind, media: str, name: str) -> None:
        try:
            content = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            self.texts.append(f"[{name}: {media} that is not valid base64]")
            return
        value = blob_value(content, kind, media, self.scope.blobs, name=name, labels=self.labels)
        self.values.append(value)
        self.texts.append(f"[{name}: {media}, {value.size} bytes; it is value {value.handle}]")


def _kind(media: str) -> Kind:
    major = media.partition("/")[0]
    return major if major in ("image", "audio", "video") else "file"  # type: ignore[return-value]


def _misfit(data: Any, tool: Tool) -> str:
    """How the data breaks the tool's own output schema; empty when it fits or there is none."""
    if tool.output is None:
        return ""
    from jsonschema import exceptions
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        # an empty registry: a reference to an address must not be fetched
        checker = validator_for(tool.output)(tool.output, registry=Registry())
        fault = exceptions.best_match(checker.iter_errors(data))
    except Exception as error:  # a schema that is none itself: whatever the checker stumbles over
        return f"the schema cannot be used ({type(error).__name__})"
    return "" if fault is None else f"{fault.json_path}: {fault.message[:300]}"
