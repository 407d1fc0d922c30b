"""Capabilities written down in a JSON file: a list of objects, in one of two forms.

The form of Textor: `name`, `description` (or `purpose`), `parameters` (a JSON Schema of type
object), `phrases`, `examples`. The form of AIE: `id`, `action` (its phrase), `description`,
`examples`, whatever else; its parameters are the texts in the brackets of the phrase.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from textor.actions import Capability
from textor.errors import UseError
from textor.near import excerpt
from textor.values import Json

_FORM = 'Each is {"name": …, "description": …, "parameters": …, "phrases": […], "examples": […]}.'


def read_capabilities(path: Path) -> list[Capability]:
    """The capabilities of a file. Raises `UseError` that says what is wrong, and where."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UseError(f"{path} cannot be read: {why}.") from error
    try:
        found = json.loads(text)
    except ValueError as error:
        place = (
            f", line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        )
        raise UseError(f"{path}{place}: this is no valid JSON.") from error
    except RecursionError as error:
        raise UseError(f"{path}: this is nested too deeply.") from error
    if not isinstance(found, list):
        raise UseError(f"{path}: this is not a list of capabilities.", _FORM)
    capabilities: dict[str, Capability] = {}
    for number, entry in enumerate(found, 1):
        capability = _capability(entry, f"{path}, entry {number}")
        if capability.name in capabilities:
            raise UseError(f"{path}, entry {number}: there is a capability {capability.name!r} already.")
        capabilities[capability.name] = capability
    return list(capabilities.values())


def _capability(entry: Json, where: str) -> Capability:
    if not isinstance(entry, dict):
        raise UseError(f"{where}: {excerpt(entry)} is no object.", _FORM)
    key = "name" if "name" in entry or "id" not in entry else "id"
    name = _text(entry, key, where)
    if not name.strip():
        raise UseError(f"{where}: {key} is missing or empty.", _FORM)
    where = f"{where} ({name})"
    phrases = _texts(entry, "phrases", where)
    if "action" in entry:
        phrases = (_text(entry, "action", where), *phrases)
    purpose = _text(entry, "description" if "description" in entry else "purpose", where)
    parameters = entry.get("parameters")
    if parameters is None:
        parameters = _from_phrase(phrases[0] if phrases else "")
    elif not isinstance(parameters, dict) or not isinstance(parameters.get("properties", {}), dict):
        raise UseError(f"{where}: parameters must be a JSON Schema of type object.")
    return Capability(name, purpose, parameters, phrases=phrases, examples=_texts(entry, "examples", where))


def _from_phrase(phrase: str) -> dict[str, Json]:
    """A schema for the empty brackets of a phrase: texts, all required."""
    count = phrase.count("[]")
    names = ["text"] if count == 1 else [f"text{number + 1}" for number in range(count)]
    return {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": names}


def _text(entry: dict[str, Any], key: str, where: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise UseError(f"{where}: {key} must be a text, and is {excerpt(value)}.")
    return value


def _texts(entry: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = entry.get(key) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise UseError(f"{where}: {key} must be a list of texts, and is {excerpt(value)}.")
    return tuple(value)
