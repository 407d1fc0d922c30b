"""What a module asks a person in the middle of a call (elicitation in MCP), and the answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from textor.capabilities.port import Scope
from textor.values import Json

_SECRET = re.compile(r"(?i)pass(word|phrase|code)|secret|(^|[^a-z])(pin|token|otp)([^a-z]|$)|api.?key")


class Field(msgspec.Struct, frozen=True):
    """One thing to fill in. `choices` are the allowed texts, empty: any; several of them may be
    taken where `kind` is `texts`. `secret`: not to be shown, journalled or given to a model."""

    name: str
    kind: Literal["text", "integer", "number", "yes or no", "texts"] = "text"
    title: str = ""
    description: str = ""
    choices: tuple[str, ...] = ()
    default: Json = None
    required: bool = False
    secret: bool = False


class Question(msgspec.Struct, frozen=True):
    """`url` is a page that the person is asked to open, with nothing to fill in here."""

    module: str
    message: str
    fields: tuple[Field, ...] = ()
    url: str = ""

    @property
    def secret(self) -> bool:
        return any(field.secret for field in self.fields)


class Answer(msgspec.Struct, frozen=True):
    """`decline` is a no, `cancel` is that nobody answered."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Json] = {}


#: Brings a question to a person. `scope` is that of the call it belongs to. An answer to a secret
#: question must reach neither journal nor model.
Ask = Callable[[Question, Scope | None], Awaitable[Answer]]

_KINDS: dict[Any, Literal["text", "integer", "number", "yes or no", "texts"]] = {
    "integer": "integer",
    "number": "number",
    "boolean": "yes or no",
    "array": "texts",
}


def fields_of(schema: dict[str, Any]) -> tuple[Field, ...]:
    """The properties of a requested schema, in order."""
    required = schema.get("required") or ()
    return tuple(
        _field(name, part, name in required) for name, part in (schema.get("properties") or {}).items()
    )


def _field(name: str, part: dict[str, Any], required: bool) -> Field:
    choices = part.get("enum") or _consts(part.get("oneOf"))
    if part.get("type") == "array":
        items = part.get("items") or {}
        choices = items.get("enum") or _consts(items.get("anyOf"))
    title = str(part.get("title") or "")
    return Field(
        name,
        _KINDS.get(part.get("type"), "text"),
        title,
        str(part.get("description") or ""),
        tuple(str(choice) for choice in choices or ()),
        part.get("default"),
        required,
        part.get("format") == "password" or bool(_SECRET.search(f"{name} {title}")),
    )


def _consts(forms: Any) -> list[Any]:
    return [form["const"] for form in forms or () if isinstance(form, dict) and "const" in form]


def completed(answer: Answer, fields: tuple[Field, ...]) -> dict[str, Json]:
    """The content of an accepted answer, with defaults for what was left out."""
    content = dict(answer.content)
    for field in fields:
        if field.default is not None:
            content.setdefault(field.name, field.default)
    return content
