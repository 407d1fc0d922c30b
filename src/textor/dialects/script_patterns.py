"""Pattern-action pairs: what an agent type adds to `script`.

After AIlice, where the interpreter is a list of such pairs. An **entry** pattern maps a line, or a
section, of the reply to a capability; its named groups are the arguments. An **inner** pattern
(`entry=False`) gives a value where an argument stands, by a typed Python function that has no
effect; its groups are evaluated first. What has an effect is always a capability, so that it goes
the one road.

The syntax is RE2 (package `google-re2`), whose work is linear in the text whatever the pattern.
A pattern meets whole lines or whole sections only, each once, so the parser stays linear too.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textor.arguments import ArgumentError, convert
from textor.errors import UseError
from textor.values import Json

_TYPES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TYPES |= {list: "array", dict: "object"}


@dataclass(frozen=True)
class Pattern:
    """One pair. The pattern with the smallest `priority` wins, then the first.

    `expression` must match the whole line (without its line break) or section. `capability` for
    an entry pattern, `function` for an inner one. The groups named in `quoted` are taken as they
    are written; all others are evaluated.
    """

    expression: str
    capability: str = ""
    function: Callable[..., Json] | None = None
    entry: bool = True
    priority: int = 0
    scope: Literal["line", "section"] = "line"
    quoted: tuple[str, ...] = ()


class Unclear(Exception):
    """What stands here is no value. `hint` says what to write."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class Compiled:
    """A pattern's expression, ready to be matched."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.quoted = frozenset(pattern.quoted)
        self._expression = _compile(pattern.expression)

    def match(self, text: str) -> dict[str, str] | None:
        """The named groups that took part, in order, when the whole text matches."""
        found = self._expression.fullmatch(text)
        if found is None:
            return None
        return {key: part for key, part in found.groupdict().items() if part is not None}


class Inner(Compiled):
    """An inner pattern with its function, called with arguments of the annotated types."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__(pattern)
        if pattern.function is None:
            raise UseError(f"The inner pattern {pattern.expression!r} has no function.")
        self._function = pattern.function
        self._schema = _schema(pattern.function)

    def value(self, groups: Mapping[str, Json]) -> Json:
        try:
            return self._function(**convert(dict(groups), self._schema))
        except ArgumentError as error:
            raise Unclear(f"{self._function.__name__} cannot take this: {error}") from None
        except Exception as error:  # the program's own function: whatever it raises is told
            raise Unclear(f"{self._function.__name__} failed: {type(error).__name__}: {error}") from None


def compile_patterns(patterns: Sequence[Pattern]) -> tuple[list[Compiled], list[Inner]]:
    """Entry patterns and inner patterns, by priority."""
    ordered = sorted(patterns, key=lambda pattern: pattern.priority)
    for pattern in ordered:
        if pattern.entry and not pattern.capability:
            raise UseError(
                f"The entry pattern {pattern.expression!r} names no capability.",
                "Register its function as a capability and give that name, or set entry=False.",
            )
    return [Compiled(p) for p in ordered if p.entry], [Inner(p) for p in ordered if not p.entry]


def _compile(expression: str) -> Any:
    try:
        import re2
    except ImportError:
        raise UseError(
            "Patterns need the package google-re2, which is not installed.", "pip install 'textor[patterns]'"
        ) from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options=options)
    except re2.error as error:
        raise UseError(f"The pattern {expression!r} is not in RE2's syntax: {error}") from None


def _schema(function: Callable[..., Json]) -> dict[str, Json]:
    """The parameters of a typed function as a JSON Schema."""
    hints = typing.get_type_hints(function)
    properties: dict[str, Json] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) not in _TYPES:
            raise UseError(
                f"The parameter `{name}` of {function.__name__} has no type that a pattern can fill.",
                "Annotate it with str, int, float, bool, list or dict.",
            )
        properties[name] = {"type": _TYPES[hints[name]]}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}
