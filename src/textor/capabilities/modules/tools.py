"""The tools that a module lists, as capabilities; each that cannot be one is set aside with the reason.

Works on the raw JSON of `tools/list`, so that one impossible tool does not take the others along.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from textor.actions import EFFECTS, Capability, Effect, Repeat
from textor.capabilities.modules.spec import ModuleSpec
from textor.values import Json, clean_text

LONGEST_NAME = 48  #: characters of the part behind the dot
BIGGEST_SCHEMA = 200_000  #: characters of JSON
LONGEST_PURPOSE = 4_000

#: Where a tool may say its effects in the words of Textor.
OWN_WORDS = "textor/effects"

_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


class Tool(msgspec.Struct, frozen=True):
    """One usable tool: `wire` is its name as the module wrote it."""

    wire: str
    capability: Capability
    output: dict[str, Json] | None = None  #: the JSON Schema of its structured result


class Tools(msgspec.Struct, frozen=True):
    """All that a module listed. `aside` gives, by its name, why a tool cannot be used."""

    usable: dict[str, Tool] = {}  #: by the name of the capability
    aside: dict[str, str] = {}


def read_tools(raw: Iterable[Any], spec: ModuleSpec) -> Tools:
    """The list as it came, in its order. Of two tools of one name the first counts."""
    usable: dict[str, Tool] = {}
    aside: dict[str, str] = {}
    wires: set[str] = set()
    for index, tool in enumerate(raw):
        wire = str(tool.get("name") or "") if isinstance(tool, dict) else ""
        shown = wire or f"number {index + 1}"
        if reason := impossible(tool):
            aside[shown] = reason
        elif wire in wires:
            aside[f"{shown} (again)"] = "the module lists two tools of this name"
        else:
            wires.add(wire)
            read = _tool(tool, spec, usable)
            usable[read.capability.name] = read
    return Tools(usable, aside)


def impossible(tool: Any) -> str:
    """Why this cannot be a tool at all; empty when it can."""
    if not isinstance(tool, dict):
        return "it is no object"
    name = tool.get("name")
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return f"its inputSchema is no JSON Schema object but {json.dumps(schema)[:80]}"
    try:
        length = len(json.dumps(schema))
    except (ValueError, RecursionError):
        return "its inputSchema cannot be written as JSON"
    if length > BIGGEST_SCHEMA:
        return f"its inputSchema has {length} characters; {BIGGEST_SCHEMA} are allowed"
    kind = _root(schema).get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return f"its inputSchema is of type {json.dumps(kind)}; the arguments of a tool are an object"
    return ""


def _root(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with a reference at its root followed (pydantic writes such ones)."""
    seen: set[str] = set()
    root = schema
    while isinstance(reference := root.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        target: Any = schema
        for step in reference.removeprefix("#").strip("/").split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            break
        root = target
    return root


def _parameters(schema: dict[str, Any]) -> dict[str, Json]:
    """The input schema as capabilities have it: of type object, with properties."""
    root = _root(schema)
    if root is not schema:
        definitions: dict[str, Json] = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        root = {**definitions, **root}
    properties = root.get("properties")
    full: dict[str, Json] = {**root, "type": "object"}
    full["properties"] = properties if isinstance(properties, dict) else {}
    return full


def _tool(tool: dict[str, Any], spec: ModuleSpec, taken: dict[str, Tool]) -> Tool:
    wire: str = tool["name"]
    hints = tool.get("annotations")
    hints = hints if isinstance(hints, dict) else {}
    description = tool.get("description") or tool.get("title") or hints.get("title") or wire
    output = tool.get("outputSchema")
    capability = Capability(
        name=capability_name(spec.name, wire, taken),
        purpose=clean_text(str(description))[:LONGEST_PURPOSE].strip(),
        parameters=_parameters(tool["inputSchema"]),
        effects=effects_of(wire, hints, tool.get("_meta"), spec),
        repeat=repeat_of(wire, hints, spec),
        provider="modules",
        cancellable=False,  # MCP asks a server to stop; it does not tell that it has
    )
    return Tool(wire, capability, output if isinstance(output, dict) else None)


def capability_name(module: str, wire: str, taken: Iterable[str]) -> str:
    """`module.tool` in characters that every dialect can write; unique among `taken`.

    What had to be changed much is marked by a hash of the true name, so that the same tool has the
    same name each time, whatever stands beside it.
    """
    safe = _UNSAFE.sub("_", wire).strip("_")
    if not safe or not safe[0].isalpha():
        safe = f"tool_{safe}".rstrip("_")
    digest = hashlib.sha256(wire.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    name = f"{module}.{safe}"
    if len(safe) > LONGEST_NAME or safe == "tool":
        name = f"{module}.{safe[: LONGEST_NAME - 7]}_{digest}"
    return name if name not in taken else f"{module}.{safe[: LONGEST_NAME - 7]}_{digest}"


def effects_of(wire: str, hints: dict[str, Any], meta: Any, spec: ModuleSpec) -> tuple[Effect, ...]:
    """What the tool may do. What a person said comes first, then what the tool says itself: in the
    hints of the protocol, or exactly in `_meta["textor/effects"]`.

    The protocol's defaults hold for what a module leaves unsaid: it changes things, out in the
    world. Of a module that is not marked as trusted only that is believed which makes a tool
    worse, and that it only reads; but then it may still send what it was given anywhere.
    """
    for pattern, told in spec.effects.items():
        if fnmatch.fnmatchcase(wire, pattern):
            return told
    listed = meta.get(OWN_WORDS) if isinstance(meta, dict) else None
    exact = {effect for effect in EFFECTS if isinstance(listed, list) and effect in listed}
    if exact and spec.trusted:
        return tuple(effect for effect in EFFECTS if effect in exact)
    reads = hints.get("readOnlyHint") is True
    hint = hints.get("openWorldHint")
    # a trusted tool that only reads is taken to read here, unless it says that it reaches out
    open_world = True if not spec.trusted else hint is True if reads else hint is not False
    effects: set[Effect] = {*exact, "read" if reads else "write"}
    if open_world:
        effects.add("network")
        if hints.get("destructiveHint") is True and not reads:
            effects.add("outward")
    return tuple(effect for effect in EFFECTS if effect in effects)


def repeat_of(wire: str, hints: dict[str, Any], spec: ModuleSpec) -> Repeat:
    """`idempotent` where the tool or a person says so, else `once`."""
    if any(fnmatch.fnmatchcase(wire, pattern) for pattern in spec.idempotent):
        return "idempotent"
    said = hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
    return "idempotent" if said else "once"
