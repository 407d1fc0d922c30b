"""What the tests of `script` share: a catalogue, and a whole reply read at once or in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from textor.actions import Action, Capability, Catalogue
from textor.dialects.port import ActionRead, Defined, NearMiss, Parser, Prose, Retracted
from textor.values import Json


def capability(name: str, *required: str, returns: bool = True, **properties: Json) -> Capability:
    """A capability whose parameters are `properties` (a type, or a schema)."""
    schemas = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    parameters = {"type": "object", "properties": schemas, "required": list(required)}
    return Capability(name, f"Does {name}.", parameters, returns=returns)


CATALOGUE = Catalogue(
    [
        capability("bash", "code", code="string"),
        capability("python", "code", code="string"),
        capability("speak", "text", returns=False, text="string"),
        capability(
            "files.write",
            "path",
            "text",
            path="string",
            text="string",
            append={"type": "boolean", "default": False},
        ),
        capability("wait", "seconds", seconds="number"),
        capability(
            "search",
            "query",
            query="string",
            count={"type": "integer", "default": 5},
            order={"enum": ["new", "old"]},
            sites={"type": "array", "items": {"type": "string"}},
            options={"type": "object"},
        ),
        capability("image.show", "image", image="string"),
        capability("memory.keep", "text", text="string"),
        capability("now"),
    ]
)


@dataclass
class Read:
    """What came of a reply."""

    actions: list[Action] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    misses: list[NearMiss] = field(default_factory=list)
    defined: dict[str, str] = field(default_factory=dict)
    prose: str = ""
    done: bool = False

    @property
    def faults(self) -> list[str]:
        return [a.fault for a in self.actions if a.fault] + [m.message for m in self.misses]

    @property
    def called(self) -> list[tuple[str, dict[str, Json]]]:
        return [(a.capability, a.arguments) for a in self.actions if not a.fault]


def pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def read(parser: Parser, text: str, *, size: int = 0, finish: str = "stop") -> Read:
    """Feed `text` in pieces of `size` characters (0: at once) and close."""
    found = Read()
    for piece in pieces(text, size or max(1, len(text))):
        _note(parser.feed(piece), found)
    _note(parser.close(finish), found)
    found.done = parser.done
    return found


def _note(events: object, found: Read) -> None:
    for event in events:  # type: ignore[attr-defined]
        if isinstance(event, ActionRead):
            found.actions.append(event.action)
            found.places.append((event.line, event.column))
        elif isinstance(event, NearMiss):
            found.misses.append(event)
        elif isinstance(event, Defined):
            found.defined[event.name] = event.text
        elif isinstance(event, Prose):
            found.prose += event.text
        elif isinstance(event, Retracted):
            found.actions.clear()
            found.places.clear()
