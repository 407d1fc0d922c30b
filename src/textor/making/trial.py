"""A module tried in the sandbox, without network: what it serves, and what came of sample calls."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textor.actions import Capability, Outcome
from textor.capabilities.modules.module import Module
from textor.capabilities.modules.spec import ModuleSpec
from textor.capabilities.port import Scope
from textor.capabilities.processes import Limits
from textor.capabilities.sandbox import Sandbox, find_sandbox, limited_script
from textor.capabilities.table import Handler, parameters, text_outcome
from textor.errors import CapabilityError
from textor.making.review import source_of
from textor.tree.finding import shown
from textor.values import Json, clean_text

if TYPE_CHECKING:
    from textor.capabilities.modules.tools import Tool

PATIENCE = 30.0  #: seconds to start in the sandbox, and for each call there
LAST_LINES = 15  #: of what a module that failed wrote
CRASHED = "Error executing tool"  #: all that the SDK tells of a tool that raised what it did not mean to
LOOKS, LOOK = 20, 0.05  #: times and seconds in which its traceback is waited for
LONGEST_RESULT = 1_000  #: characters shown of a result of a trial
#: A text longer than this cannot be handed to Python on its command line.
LONGEST_WORD = 100_000

SOURCE: Json = {
    "type": "string",
    "format": "path",
    "description": "the path of its Python file, or the source text itself",
}
TRY = Capability(
    "modules.try",
    "Run a module in the sandbox, without network: list its tools and call each with a sample.",
    parameters(
        ["source"],
        source=SOURCE,
        calls={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool"],
            },
            "description": "the calls to make; left out: one of each tool with made-up arguments; []: none",
        },
    ),
    effects=("execute",),
    sandboxed=True,
)


def tried_in(sandbox: Sandbox | None) -> Handler:
    """Performs `modules.try` with this sandbox; None: it says that there is none."""

    async def perform(arguments: dict[str, Json], scope: Scope) -> Outcome:
        source = str(arguments["source"])
        text, path = await asyncio.to_thread(source_of, source, scope.workspace, scope.judged.get(source))
        spec = await asyncio.to_thread(_trial, sandbox, text, path, scope.workspace)
        calls = arguments["calls"]
        module = Module(spec)
        try:
            try:
                await module.ready()
            except CapabilityError:
                raise does_not_start(module, spec) from None
            lines = [f"It starts, and serves {_tools(module)}."]
            lines += await _tried(module, _samples(module) if calls is None else calls, scope)
            data = [
                {"tool": each.wire, "parameters": each.capability.parameters}
                for each in module.tools.usable.values()
            ]
            lines += [f"{name} cannot be used: {why}." for name, why in module.tools.aside.items()]
            return text_outcome("\n".join(lines), scope, data=data)
        finally:
            await module.close()

    return perform


def _trial(sandbox: Sandbox | None, text: str, path: Path | None, workspace: Path) -> ModuleSpec:
    """How a source is started in the sandbox; one that is not in the workspace goes in as text."""
    if sandbox is not None and not _ours(sandbox):
        sandbox = find_sandbox() or sandbox  # there our own Python is, and with it the package mcp
    if sandbox is None:
        raise CapabilityError("There is no sandbox here to try it in.", "`textor doctor` says why.")
    python = sys.executable if _ours(sandbox) else "python3"
    inside = path is not None and path.is_relative_to(workspace.resolve())
    if not inside and len(text) > LONGEST_WORD:
        raise CapabilityError(f"The source has {len(text)} characters.", "Write it to a file.")
    argv = [python, "-B", str(path)] if inside else [python, "-B", "-c", text]
    limited = [sandbox.shell, "-c", limited_script(Limits()), "sh", *argv]
    command = tuple(sandbox.command(limited, workspace))
    env = sandbox.env
    return ModuleSpec("trial", command, env=env, start=PATIENCE, deadline=PATIENCE, idle=None)


def _ours(sandbox: Sandbox) -> bool:
    """Whether our own Python can be run in it."""
    return sandbox.name in ("bubblewrap", "sandbox-exec")


def _tools(module: Module) -> str:
    count = len(module.tools.usable)
    return "no tool that can be used" if not count else f"{count} tool{'' if count == 1 else 's'}"


def does_not_start(module: Module, spec: ModuleSpec) -> CapabilityError:
    """Why, with the lines of the traceback: whoever reads it is to mend the module."""
    why = module.trouble.split("\nIts last lines:", 1)[0].partition(": ")[2] or module.trouble
    last = "\n".join(list(module.log.lines)[-LAST_LINES:])
    hint = (
        "Mend what these lines say, then try it again." if last else 'Does it end with server.run("stdio")?'
    )
    said = f" Its last lines:\n{last}\n" if last else ""
    return CapabilityError(f"The module {spec.name} does not start: {why}{said}", hint)


async def _tried(module: Module, calls: Sequence[Any], scope: Scope) -> list[str]:
    """What each tool is, with what came of the calls of it, and calls of tools that are not there."""
    tools: dict[str, Tool] = {tool.wire: tool for tool in module.tools.usable.values()}
    told: dict[str, list[str]] = {wire: [shown(tool.capability)] for wire, tool in tools.items()}
    strangers: list[str] = []
    for call in calls:
        wire = str(call.get("tool", "") if isinstance(call, dict) else call)
        wire = wire if wire in tools else wire.rpartition(".")[2]
        if wire not in tools:
            strangers.append(f"It has no tool {wire!r}; it has: {', '.join(tools) or 'none'}.")
            continue
        arguments = (call.get("arguments") if isinstance(call, dict) else None) or {}
        outcome = await _called(module, tools[wire], arguments, scope)
        result = clean_text(outcome.text) or "nothing"
        result = result if len(result) <= LONGEST_RESULT else f"{result[: LONGEST_RESULT - 1]}…"
        told[wire].append(f"  {json.dumps(arguments, ensure_ascii=False)} -> {outcome.state}: {result}")
    return [line for lines in told.values() for line in lines] + strangers


async def _called(module: Module, tool: Tool, arguments: dict[str, Json], scope: Scope) -> Outcome:
    module.log.lines.clear()
    try:
        outcome = await module.call(tool, arguments, scope)
    except CapabilityError as error:
        return Outcome.failed(str(error))
    if outcome.text.strip() != f"{CRASHED} {tool.wire}":
        return outcome
    # The SDK keeps from clients what a tool died of. Whoever wrote it has to know, and it stands in
    # what the module writes beside the protocol, which may come a little later.
    for _ in range(LOOKS):
        if crash := crash_of(module.log.lines):
            return Outcome.failed(crash)
        await asyncio.sleep(LOOK)
    return outcome


def crash_of(lines: Iterable[str]) -> str:
    """What a tool died of, with the place in the module's own source, out of a traceback as Python or
    the SDK's log (in a box of lines) writes it; "" while it is not there."""
    place = ""
    for line in lines:
        plain = line.strip(" │╭╮╰╯─")
        if "site-packages" not in plain and (found := _PLACE.search(plain)):
            line, name = next(
                (a, b) for a, b in (found.group(1, 2), found.group(3, 4), found.group(6, 5)) if a
            )
            place = f" (line {line}, in {name})"
        elif found := _ERROR.fullmatch(plain):
            return f"{found[0]}{place}"
    return ""


#: As Python writes it, as the log does for a file, and for source that came without one.
_PLACE = re.compile(r'File ".*", line (\d+), in (\S+)|\S+:(\d+) in (\S+)|^in ([^\s:]+):(\d+)')
_ERROR = re.compile(
    r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning|Failed|Iteration|Group)\b(?::.*)?"
)


def _samples(module: Module) -> list[dict[str, Json]]:
    return [
        {"tool": tool.wire, "arguments": sample(tool.capability.parameters, tool.capability.parameters)}
        for tool in module.tools.usable.values()
    ]


def sample(schema: Any, whole: dict[str, Json], depth: int = 0) -> Json:
    """A small value that fits a JSON Schema; `whole` holds the definitions. Of an object only what is
    required."""
    if not isinstance(schema, dict) or depth > 8:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        definitions: Any = whole.get("$defs") or whole.get("definitions") or {}
        return sample(definitions.get(reference.rpartition("/")[2]), whole, depth + 1)
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return sample(schema[key][0], whole, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        parts: Any = schema.get("properties") or {}
        return {name: sample(parts.get(name), whole, depth + 1) for name in schema.get("required") or ()}
    if kind == "array":
        return [sample(schema.get("items"), whole, depth + 1) for _ in range(schema.get("minItems") or 0)]
    return _plain(kind, schema)


def _plain(kind: Any, schema: dict[str, Any]) -> Json:
    if kind in ("integer", "number"):
        low, high = schema.get("minimum"), schema.get("maximum")
        if (above := schema.get("exclusiveMinimum")) is not None:
            low = above + 1
        return low if low is not None else min(1, high) if high is not None else 1
    if kind == "boolean":
        return False
    if kind == "null":
        return None
    text = "example"
    return text.ljust(schema.get("minLength") or 0, "e")[: schema.get("maxLength") or None]
