"""From what a model wrote to the arguments that a capability's schema asks for.

One table of conversions (`conversions`), nothing guessed: a value that the schema does not take
and the table does not mend is a problem, told with its path, what is wrong and how to mend it.

    integer   3.0, "3", "3.0"              number    3 (kept), "3", "1e3"
    boolean   "true", "False"              null      "null"
    array     "[1, 5]" (JSON text)         object    '{"a": 1}' (JSON text)
    enum      another case, if only one member differs so
    string    nothing: it keeps its string, also "[1]"; a number is a problem

Further: null for an optional parameter that takes no null means that it is left out; defaults are
filled in; an unknown parameter is a problem unless the schema says `additionalProperties`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from textor.arguments.constraints import unmet
from textor.arguments.conversions import CONVERSIONS, FAILED, WORDS, is_type, json_type, kind_of, mend, same
from textor.arguments.json_text import ArgumentError, Problem, check_depth, clean, parse_json
from textor.near import excerpt, nearest
from textor.regexes import found as occurs
from textor.values import Json

__all__ = [
    "ArgumentError",
    "Parsed",
    "Problem",
    "convert",
    "describe",
    "parse_arguments",
    "parse_json",
    "positional",
    "types_of",
]

Schema = Any  #: a JSON Schema: a dict, or True or False

#: A chain of `$ref` or of unions longer than this is not followed.
MAX_DEPTH = 64


class Parsed(msgspec.Struct, frozen=True):
    """Arguments read from text, and the text that followed them."""

    arguments: dict[str, Json]
    rest: str = ""


# -- the public functions ------------------------------------------------------------------


def convert(arguments: dict[str, Json], schema: dict[str, Json]) -> dict[str, Json]:
    """The arguments as `schema` (of type object, `$defs` allowed) asks for them.

    Raises `ArgumentError` with every problem found.
    """
    check_depth(arguments)
    reader = _Reader(schema)
    converted = reader.object(clean(arguments), reader.resolve(schema), "")
    problems = reader.problems or unmet(converted, schema)
    if problems:
        raise ArgumentError(problems)
    return converted


def parse_arguments(text: str, schema: dict[str, Json]) -> Parsed:
    """The arguments in a JSON text, converted.

    Raw newlines in strings are read, a text after the complete object is the `rest`. An empty text
    or `null` stands for no arguments. Raises `ArgumentError` for a text that was cut short, is no
    JSON or no object, or does not fit; nothing is ever made of half a text.
    """
    if not text.strip():
        return Parsed(convert({}, schema))
    value, end = parse_json(text)
    if isinstance(value, str):  # the object was written as a JSON string
        value = parse_json(value)[0] if value.strip() else None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        what = f"the arguments are {kind_of(value)}, {excerpt(value)}, not a JSON object"
        raise ArgumentError([Problem("", what, 'Write {"name": value, …}.')], text=text, line=1, column=1)
    try:
        return Parsed(convert(value, schema), text[end:])
    except ArgumentError as error:
        raise ArgumentError(error.problems, text=text) from None


def positional(values: Sequence[Json], schema: dict[str, Json]) -> dict[str, Json]:
    """Values by place as arguments by name: the order is that of the schema's properties.

    Nothing is converted. Raises `ArgumentError` when there are too many.
    """
    names = list(_properties(schema))
    if len(values) > len(names):
        takes = f"takes {len(names)} ({', '.join(names)})" if names else "takes none"
        raise ArgumentError([Problem("", f"{len(values)} arguments were given, but it {takes}")])
    return dict(zip(names, values, strict=False))


def describe(schema: Schema, root: Schema = None, *, article: bool = True) -> str:
    """What a schema takes, in words: "an integer", "a list of strings", '"a" or "b"'."""
    return _Reader(root if root is not None else schema).describe(schema, article)


def types_of(schema: Schema, root: Schema = None) -> frozenset[str]:
    """The JSON types that a schema takes ("string", "array" …); empty when it takes any."""
    return _Reader(root if root is not None else schema).types(schema)


# -- walking a schema ----------------------------------------------------------------------


class _Reader:
    """Converts values by one root schema and collects what does not fit."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.problems: list[Problem] = []

    def resolve(self, schema: Schema) -> dict[str, Any]:
        """`schema` with `$ref` followed and `allOf` merged; True becomes the empty schema."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return {"not": {}} if schema is False else {}
            if "$ref" in schema:
                beside = {key: inner for key, inner in schema.items() if key != "$ref"}
                target = self._target(schema["$ref"])
                schema = {**target, **beside} if isinstance(target, dict) else beside
            elif "allOf" in schema:
                beside = {key: inner for key, inner in schema.items() if key != "allOf"}
                schema = _merged([*map(self.resolve, _list_in(schema, "allOf")), beside])
            else:
                return schema
        return {}

    def _target(self, ref: Json) -> Schema:
        """What a local `$ref` points to; anything else says nothing about the value."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            return {}
        found: Any = self._root
        for step in filter(None, ref[1:].split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                found = found.get(key, {}) if isinstance(found, dict) else {}
        return found

    def types(self, schema: Schema) -> frozenset[str]:
        schema = self.resolve(schema)
        if "type" in schema:
            named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            return frozenset(type_ for type_ in named if isinstance(type_, str))
        branches = _branches(schema)
        if branches:
            each = [self.types(branch) for branch in branches]
            return frozenset().union(*each) if all(each) else frozenset()
        if "enum" in schema or "const" in schema:
            return frozenset(json_type(member) for member in _members(schema))
        return frozenset(["object"]) if "properties" in schema else frozenset()

    def value(self, value: Json, schema: Schema, path: str) -> Json:
        """The value converted; on a problem it is noted and the value given back as it is."""
        schema = self.resolve(schema)
        branches = _branches(schema)
        if branches:
            return self._union(value, schema, branches, path)
        types = self.types(schema)
        converted = _as_type(value, types, schema)
        if converted is FAILED:
            what = f"should be {self.describe(schema)} and is {kind_of(value)}, {excerpt(value)}"
            why = self._why(value, types)
            self._problem(path, what + why, "" if why else mend(value, types))
            return value
        if isinstance(converted, dict):
            return self.object(converted, schema, path)
        if isinstance(converted, list):
            return self._list(converted, schema, path)
        if "enum" in schema or "const" in schema:
            return self._member(converted, schema, path)
        return converted

    def object(self, value: dict[str, Json], schema: dict[str, Any], path: str) -> dict[str, Json]:
        """An object by its properties; one whose schema names none takes anything."""
        properties, more = _properties(schema), schema.get("additionalProperties")
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        free = more is True or ("properties" not in schema and more is None)
        found: dict[str, Json] = {}
        missing = [key for key in properties if key not in value]
        for key, inner in value.items():
            where = f"{path}.{key}" if path else key
            if key in properties:
                if inner is not None or "null" in self.types(properties[key]) or key in _required(schema):
                    found[key] = self.value(inner, properties[key], where)
                elif not self.types(properties[key]):
                    found[key] = inner
            elif pattern := next((p for p in patterns if occurs(p, key)), None):
                found[key] = self.value(inner, patterns[pattern], where)
            elif isinstance(more, dict):
                found[key] = self.value(inner, more, where)
            elif free:
                found[key] = inner
            else:
                self._unknown(key, where, properties, missing)
        for key, inner in properties.items():
            default = self.resolve(inner)
            if key not in found and "default" in default:
                found[key] = default["default"]
            elif key not in found and key in _required(schema) and key not in value:
                self._problem(f"{path}.{key}" if path else key, f"is missing; it is {self.describe(inner)}")
        return found

    def _unknown(self, key: str, where: str, properties: dict[str, Any], missing: list[str]) -> None:
        near = nearest(key, missing) or nearest(key, properties)
        names = ", ".join(properties)
        known = "" if near else (f"The parameters are: {names}." if names else "It takes no parameters.")
        self.problems.append(Problem(where, "there is no such parameter", known, near))

    def _list(self, value: list[Json], schema: dict[str, Any], path: str) -> Json:
        first, items = _list_in(schema, "prefixItems"), schema.get("items", True)
        if isinstance(items, list):  # the older form of prefixItems
            first, items = items, schema.get("additionalItems", True)
        return [
            self.value(inner, first[at] if at < len(first) else items, f"{path}[{at}]")
            for at, inner in enumerate(value)
        ]

    def _member(self, value: Json, schema: dict[str, Any], path: str) -> Json:
        members = _members(schema)
        for member in members:
            if member == value and isinstance(member, bool) == isinstance(value, bool):
                return member
        if isinstance(value, str):
            alike = [m for m in members if isinstance(m, str) and m.casefold() == value.strip().casefold()]
            spelt = [m for m in members if not isinstance(m, str) and excerpt(m) == value.strip()]
            if len(alike) == 1 or (not alike and len(spelt) == 1):
                return (alike or spelt)[0]
        near = nearest(value, [m for m in members if isinstance(m, str)]) if isinstance(value, str) else ()
        self.problems.append(
            Problem(path, f"should be {self.describe(schema)} and is {excerpt(value)}", "", near)
        )
        return value

    def _union(self, value: Json, schema: dict[str, Any], branches: list[Schema], path: str) -> Json:
        """The first branch that takes the value as it is, else the first that can convert it."""
        shared = {key: inner for key, inner in schema.items() if key not in ("anyOf", "oneOf", "default")}
        resolved = [_merged([shared, self.resolve(branch)]) for branch in branches]
        fits: list[tuple[bool, Json]] = []
        closest: list[Problem] = []
        for branch in resolved:
            trial = _Reader(self._root)
            types = self.types(branch)
            converted = trial.value(value, branch, path)
            if not trial.problems:
                fits.append((same(converted, value), converted))
            elif any(is_type(value, type_) for type_ in types) and not closest:
                closest = trial.problems
        if fits:
            return next((converted for exact, converted in fits if exact), fits[0][1])
        what = f"should be {self.describe(schema)} and is {kind_of(value)}, {excerpt(value)}"
        self.problems.extend(closest or [Problem(path, what)])
        return value

    def _why(self, value: Json, types: frozenset[str]) -> str:
        """For a text that should hold JSON: where the JSON goes wrong."""
        if (
            not isinstance(value, str)
            or not types & {"array", "object"}
            or value.strip()[:1] not in ("[", "{")
        ):
            return ""
        try:
            parse_json(value)
        except ArgumentError as error:
            return f" ({error.problems[0].what})"
        return ""

    def _problem(self, path: str, what: str, mend: str = "") -> None:
        self.problems.append(Problem(path, what, mend))

    def describe(self, schema: Schema, article: bool = True, depth: int = 0) -> str:
        schema = self.resolve(schema)
        if "enum" in schema or "const" in schema:
            return " or ".join(excerpt(member, 40) for member in _members(schema))
        branches = _branches(schema)
        if branches:
            each = dict.fromkeys(self.describe(b, article, depth + 1) for b in branches if depth < 4)
            return " or ".join(each) or "a value"
        types = self.types(schema)
        if types == {"array"} and "items" in schema and depth < 4:
            inner = self.describe(schema["items"], False, depth + 1)
            plural = inner if " " in inner or inner == "any" else f"{inner}s"
            return f"{'a list' if article else 'list'} of {plural}"
        words = [WORDS.get(type_, ("a", type_)) for type_ in WORDS if type_ in types]
        return " or ".join(f"{a} {word}".strip() if article else word for a, word in words) or (
            "any value" if article else "any"
        )


def _as_type(value: Json, types: frozenset[str], schema: dict[str, Any]) -> Json:
    """The value if it is of one of the types, else by the table."""
    if schema.get("not") == {}:
        return FAILED
    if not types or any(is_type(value, type_) for type_ in types):
        return value
    members = _members(schema)
    if isinstance(value, str) and any(excerpt(m) == value.strip() for m in members):
        return value  # `_member` finds it
    for type_, conversion in CONVERSIONS.items():
        if type_ in types and (converted := conversion(value)) is not FAILED:
            return converted
    return FAILED


def _merged(schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several schemas that all hold, as one: properties and required together, the last rest."""
    merged: dict[str, Any] = {}
    for schema in schemas:
        for key, inner in schema.items():
            if key == "properties" and isinstance(inner, dict):
                merged[key] = {**merged.get(key, {}), **inner}
            elif key == "required" and isinstance(inner, (list, tuple)):
                merged[key] = [*merged.get(key, ()), *inner]
            else:
                merged[key] = inner
    return merged


def _properties(schema: Schema) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _required(schema: dict[str, Any]) -> Sequence[str]:
    found = schema.get("required")
    return found if isinstance(found, (list, tuple)) else ()


def _members(schema: dict[str, Any]) -> list[Json]:
    if "const" in schema:
        return [schema["const"]]
    return _list_in(schema, "enum")


def _branches(schema: dict[str, Any]) -> list[Schema]:
    return _list_in(schema, "anyOf") or _list_in(schema, "oneOf")


def _list_in(schema: dict[str, Any], key: str) -> list[Any]:
    """A list of the schema; schemas come from strangers, and what is none says nothing."""
    found = schema.get(key)
    return list(found) if isinstance(found, (list, tuple)) else []
