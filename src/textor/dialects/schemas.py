"""Schemas of capabilities as servers and grammars want them."""

from __future__ import annotations

from typing import Any

from textor.values import Json

#: A schema that holds itself is unrolled this often; below, anything goes.
UNROLLED = 4
_NOISE = frozenset(["$schema", "$id", "$defs", "definitions", "$comment"])


def declared(parameters: dict[str, Json]) -> dict[str, Json]:
    """The parameters as a function declaration: an object whose unknown names are refused, as
    strict servers ask for it. References stay; they are local to it."""
    schema = {key: inner for key, inner in parameters.items() if key not in ("$schema", "$id")}
    schema["type"] = "object"
    schema.setdefault("properties", {})
    schema.setdefault("additionalProperties", False)
    return schema


def inlined(parameters: dict[str, Json]) -> dict[str, Json]:
    """`declared` with every local `$ref` replaced by what it points to, so that the schema can
    stand inside another one."""
    schema: dict[str, Json] = _inline(declared(parameters), parameters, {})
    return schema


def _inline(schema: Any, root: dict[str, Json], depth: dict[str, int]) -> Any:
    if isinstance(schema, list):
        return [_inline(inner, root, depth) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    ref = schema.get("$ref")
    beside = {
        key: _properties(inner, root, depth) if key == "properties" else _inline(inner, root, depth)
        for key, inner in schema.items()
        if key not in _NOISE and not (key == "$ref" and isinstance(inner, str))
    }
    if not isinstance(ref, str):
        return beside
    if depth.get(ref, 0) >= UNROLLED:
        return beside
    target = _inline(_target(ref, root), root, {**depth, ref: depth.get(ref, 0) + 1})
    return {**target, **beside} if isinstance(target, dict) else beside


def _properties(properties: Any, root: dict[str, Json], depth: dict[str, int]) -> Any:
    """Parameters may be called `$ref` or `definitions`: their names are no keywords."""
    if not isinstance(properties, dict):
        return {}
    return {name: _inline(schema, root, depth) for name, schema in properties.items()}


def _target(ref: str, root: dict[str, Json]) -> Any:
    found: Any = root
    for step in filter(None, ref.removeprefix("#").split("/")):
        found = found.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, dict) else {}
    return found
