"""Elements of an `<actions>` block, and the arguments that they stand for.

Attributes and child elements are equal and merge in document order. What an element holds is
decided by the schema of its parameter: a text holds everything up to its own closing tag, a list
holds elements, an object holds its properties. A table of texts (an environment) is written as a
person would write it: <environment>A=1</environment>, or <variable name="A">1</variable> in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from textor.actions import Capability
from textor.arguments import ArgumentError, Problem, parse_json, types_of
from textor.values import Json

Kind = Literal["action", "text", "list", "object", "open"]

_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));", re.ASCII)
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
#: Names that an element of a list may have besides the singular of the list.
_ITEMS = frozenset(["item", "value", "entry", "element", "arg", "argument", "string"])
#: One text of a table, with its name before it.
_PAIR = re.compile(r"\s*([^\s=\"'{}\[\],:<>]{1,200})=(.*)", re.DOTALL)
#: The attributes by which an element is one text of a table: its name, and the text if not inside.
_LABELS = ({"name"}, {"key"}, {"name", "value"}, {"key", "value"})
_END = re.compile(r"\n[ \t]*\Z")

Schema = Any


def decoded(text: str) -> str:
    """The entities of XML, once; what is no entity stays as it is written."""
    return _ENTITY.sub(_entity, text) if "&" in text else text


def _entity(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED[found[3]]
    code = int(found[1]) if found[1] else int(found[2], 16)
    valid = 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if valid else found[0]


def trimmed(text: str) -> str:
    """A text of one line as it is; of a block one line break at its start and one at its end, with
    the indent of the closing tag, belong to the form and not to the text."""
    if "\n" not in text:
        return text
    text = text[1:] if text[0] == "\n" else text[2:] if text.startswith("\r\n") else text
    return _END.sub("", text)


@dataclass
class Element:
    """One element. `schema` is that of its value, None where nothing is known."""

    name: str
    offset: int
    kind: Kind
    schema: Schema = None
    pairs: list[tuple[str, str | Element]] = field(default_factory=list)
    text: str = ""
    fault: str = ""
    entry: bool = False  #: whether it may be one text of a table, named by an attribute


class Shapes:
    """What elements may hold, by the schema of one capability (None: unknown, anything)."""

    def __init__(self, capability: Capability | None) -> None:
        self._root = capability.parameters if capability else {}

    def types(self, schema: Schema) -> frozenset[str]:
        return types_of(schema, self._root)

    def properties(self, element: Element) -> dict[str, Schema]:
        schema = element.schema if element.kind != "action" else self._root
        found = schema.get("properties") if isinstance(schema, dict) else None
        return found if isinstance(found, dict) else {}

    def child(self, parent: Element, name: str, offset: int) -> Element:
        """An element that begins inside another one."""
        if parent.kind == "list":
            schema = parent.schema.get("items", {}) if isinstance(parent.schema, dict) else {}
        elif self.is_table(parent.schema):
            return Element(name, offset, "text", parent.schema["additionalProperties"], entry=True)
        else:
            key, several = self.key(parent, name)
            schema = self.properties(parent).get(key, {})
            if several:
                schema = schema.get("items", {}) if isinstance(schema, dict) else {}
        types = self.types(schema)
        structured = not types or types & {"array", "object"}
        return Element(name, offset, "open" if structured else "text", schema)

    def key(self, parent: Element, name: str) -> tuple[str, bool]:
        """The property that an attribute or child means, and whether it is one of its items:
        `<volume>` stands for one of `volumes`."""
        properties = self.properties(parent)
        if name in properties:
            return name, False
        for plural in (f"{name}s", f"{name}es", f"{name[:-1]}ies"):
            if plural in properties and "array" in self.types(properties[plural]):
                return plural, True
        return name, False

    def is_table(self, schema: Schema) -> bool:
        """Whether a schema is that of texts under any names."""
        if not isinstance(schema, dict) or schema.get("properties") or self.types(schema) != {"object"}:
            return False
        texts = schema.get("additionalProperties")
        return isinstance(texts, dict) and self.types(texts) == {"string"}

    def is_entry(self, element: Element) -> bool:
        """Whether an element with text is one of a table: `<environment name="A">1</environment>`."""
        return self.is_table(element.schema) and {name for name, _ in element.pairs} in _LABELS[:2]

    def empty(self, element: Element) -> Kind:
        """What an open element without content is."""
        types = self.types(element.schema)
        if "object" in types or element.pairs:
            return "object"
        return "list" if "array" in types else "text"

    def with_attributes(self, element: Element) -> None:
        """A parameter has attributes: it is an object, or they mean nothing."""
        types = self.types(element.schema)
        if not types or "object" in types:
            element.kind = "object"
            return
        if element.entry and {name for name, _ in element.pairs} in _LABELS:
            return
        names = ", ".join(name for name, _ in element.pairs)
        element.fault = f"<{element.name}> takes no attributes, and has {names}"
        element.pairs = []

    def opened(self, element: Element, name: str) -> None:
        """An open element begins with the child `name`: decide what it is."""
        types = self.types(element.schema)
        if "object" in types and (name in self.properties(element) or types == {"object"}):
            element.kind = "object"
        elif "array" in types:
            items = element.schema.get("items", {}) if isinstance(element.schema, dict) else {}
            plain = self.types(items)
            if _is_item(name, element.name) or (plain and "string" not in plain):
                element.kind = "list"
            else:
                element.kind = "text"
                if "string" not in types:
                    what = f"<{element.name}> is a list and begins with <{name}>"
                    element.fault = f"{what}. Write each item as <item>…</item>, a text with tags as CDATA."
        else:
            element.kind = "text" if types else "object"

    def text_parameter(self, element: Element) -> str:
        """The one required text of an action that its attributes leave out: what a text directly
        inside the action is. "" when that is not certain."""
        given = {self.key(element, name)[0] for name, _ in element.pairs}
        required = self._root.get("required") or ()
        properties = self.properties(element)
        left = [n for n in required if n not in given and "string" in self.types(properties.get(n, {}))]
        if not required and len(properties) == 1 and not given:
            left = [n for n in properties if "string" in self.types(properties[n])]
        return left[0] if len(left) == 1 else ""

    # -- values ----------------------------------------------------------------------------

    def arguments(self, element: Element) -> dict[str, Json]:
        """The pairs of an action or object, merged. Raises `ArgumentError`."""
        collected: dict[str, list[tuple[bool, Json]]] = {}
        for name, value in element.pairs:
            key, _ = self.key(element, name)
            is_list = isinstance(value, Element) and value.kind == "list"
            if (one := _entry(value)) is not None and self.is_table(element.schema):
                for label, text in one.items():
                    collected.setdefault(label, []).append((False, text))
                continue
            collected.setdefault(key, []).append((is_list, self.value(value)))
        properties = self.properties(element)
        return {key: self._merged(key, found, properties.get(key)) for key, found in collected.items()}

    def value(self, value: str | Element) -> Json:
        if isinstance(value, str):
            return value
        if value.fault:
            raise ArgumentError([Problem("", value.fault)])
        if value.kind == "list":
            return [self.value(child) for _, child in value.pairs]
        if (one := _entry(value)) is not None:
            return one
        return self.arguments(value) if value.kind == "object" else value.text

    def _merged(self, key: str, found: list[tuple[bool, Json]], schema: Schema) -> Json:
        types = self.types(schema)
        several, first = len(found) > 1 or found[0][0], found[0][1]
        if self.is_table(schema) and (several or isinstance(first, str)):
            return _table(key, [value for _, value in found])
        if "array" in types and (several or ("string" not in types and not _is_json_list(first))):
            return [item for is_list, value in found for item in (value if is_list else [value])]
        if not several or found[0][0]:
            return first
        if schema is None or not types:
            return [value for _, value in found]
        raise ArgumentError([Problem(key, "was given twice", "Give it once.")])


def _entry(value: str | Element) -> dict[str, Json] | None:
    """The one text of a table that an element is by its attributes; None when it is none."""
    if not isinstance(value, Element) or value.fault:
        return None
    given = {name: text for name, text in value.pairs if isinstance(text, str)}
    if len(given) != len(value.pairs) or set(given) not in _LABELS or not value.entry:
        return None
    return {given.get("name", given.get("key", "")): value.text or given.get("value", "")}


def _table(key: str, values: list[Json]) -> Json:
    """Texts under names, from objects and from texts such as `A=1`. What is neither is left to whoever
    reads the schema, when it stands alone."""
    table: dict[str, Json] = {}
    for value in values:
        pair = _PAIR.fullmatch(value) if isinstance(value, str) else None
        found = {pair[1]: pair[2]} if pair else value if isinstance(value, dict) else None
        if found is None and len(values) == 1:
            return value
        if found is None:
            raise ArgumentError([Problem(key, f"{value!r:.80} is no text with a name", "Write A=1.")])
        if twice := [name for name in found if name in table]:
            raise ArgumentError([Problem(f"{key}.{twice[0]}", "was given twice", "Give it once.")])
        table |= found
    return table


def _is_item(name: str, parent: str) -> bool:
    return name in _ITEMS or parent in (f"{name}s", f"{name}es", f"{name[:-1]}ies")


def _is_json_list(value: Json) -> bool:
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return False
    try:
        found, end = parse_json(value)
    except ArgumentError:
        return False
    return isinstance(found, list) and not value[end:].strip()
