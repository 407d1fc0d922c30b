"""Reading a reply with a dialect, for tests: feed it in pieces, merge what belongs together."""

from __future__ import annotations

from collections.abc import Iterable

from textor.actions import Action, Capability, Catalogue
from textor.dialects import Dialect
from textor.dialects.port import ActionRead, ArgumentText, NearMiss, ParseEvent, Prose, Reply, ThinkOn
from textor.messages import CallChunk

CAPABILITIES = (
    Capability(
        "files.list",
        "List a folder.",
        {"type": "object", "properties": {"path": {"type": "string", "default": "."}}},
    ),
    Capability(
        "files.write",
        "Write a text to a file.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
    ),
    Capability(
        "view",
        "View lines of a file.",
        {
            "type": "object",
            "properties": {
                "view_range": {"type": "array", "items": {"type": "integer"}},
                "n": {"type": "integer"},
                "text": {"type": "string"},
                "scale": {"type": "number"},
            },
        },
    ),
    Capability("keep", "Keep any value.", {"type": "object", "properties": {"x": {}}, "required": ["x"]}),
    Capability(
        "respond", "Answer.", {"type": "object", "properties": {"text": {"type": "string"}}}, ends_turn=True
    ),
)
CATALOGUE = Catalogue(CAPABILITIES)


def events(dialect: Dialect, text: str, size: int = 10**9, finish: str = "stop") -> list[ParseEvent]:
    """All events of a reply in text, merged."""
    parser = dialect.parser(CATALOGUE)
    found: list[ParseEvent] = []
    for start in range(0, len(text), size):
        found += parser.feed(text[start : start + size])
    return merged([*found, *parser.close(finish)])


def called(dialect: Dialect, chunks: Iterable[CallChunk], finish: str = "tool_calls") -> list[ParseEvent]:
    """All events of a reply in native calls, merged."""
    parser = dialect.parser(CATALOGUE)
    found: list[ParseEvent] = []
    for chunk in chunks:
        found += parser.feed_call(chunk)
    return merged([*found, *parser.close(finish)])


def merged(found: Iterable[ParseEvent]) -> list[ParseEvent]:
    """Prose that follows prose as one; the argument text of each action as one, where it begins."""
    out: list[ParseEvent] = []
    arguments: dict[int, int] = {}
    for event in found:
        if isinstance(event, Prose) and out and isinstance(out[-1], Prose):
            out[-1] = Prose(out[-1].text + event.text)
        elif isinstance(event, ArgumentText) and event.position in arguments:
            place = arguments[event.position]
            before = out[place]
            assert isinstance(before, ArgumentText)
            out[place] = ArgumentText(event.position, before.text + event.text)
        else:
            if isinstance(event, ArgumentText):
                arguments[event.position] = len(out)
            out.append(event)
    return out


def actions(found: Iterable[ParseEvent]) -> list[Action]:
    return [event.action for event in found if isinstance(event, ActionRead)]


def run(found: Iterable[ParseEvent]) -> list[tuple[str, dict[str, object]]]:
    """What would be run: the actions without a fault."""
    return [(action.capability, action.arguments) for action in actions(found) if not action.fault]


def faults(found: Iterable[ParseEvent]) -> list[str]:
    """What the model is told: near misses and the faults of actions."""
    told: list[str] = []
    for event in found:
        if isinstance(event, NearMiss):
            told.append(event.message)
        elif isinstance(event, ActionRead) and event.action.fault:
            told.append(event.action.fault)
    return told


def prose(found: Iterable[ParseEvent]) -> str:
    return "".join(event.text for event in found if isinstance(event, Prose))


def answer(found: Iterable[ParseEvent]) -> str:
    return "".join(event.text for event in found if isinstance(event, Reply))


def thinks(found: Iterable[ParseEvent]) -> list[str]:
    return [event.text for event in found if isinstance(event, ThinkOn)]
