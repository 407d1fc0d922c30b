"""Native function calls and a dialect of text in one reply: `tools` with `script` or `xml`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.dialects.port import Dialect, ParseEvent, Parser, Variables
from textor.errors import UseError
from textor.messages import CallChunk, Grammar, Message, ToolSpec


class MixedParser:
    """Calls go to one parser, text to the other; actions count in the order of their ends."""

    def __init__(self, calls: Parser, text: Parser) -> None:
        self._calls = calls
        self._text = text

    @property
    def done(self) -> bool:
        return False  # a native call may still come after the text

    def feed(self, text: str) -> Sequence[ParseEvent]:
        return self._text.feed(text)

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        return self._calls.feed_call(chunk)

    def close(self, finish: str) -> Sequence[ParseEvent]:
        return [*self._text.close(finish), *self._calls.close(finish)]


class Mixed:
    """The `Dialect` of an agent type that declares `tools` and one dialect of text."""

    def __init__(self, calls: Dialect, text: Dialect) -> None:
        self._calls = calls
        self._text = text

    @property
    def name(self) -> str:
        return f"{self._calls.name}+{self._text.name}"

    @property
    def order(self) -> Literal["parallel", "serial"]:
        return self._text.order

    @property
    def final(self) -> bool:
        return False

    def teach(self, capabilities: Sequence[Capability]) -> str:
        return self._text.teach(capabilities)

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        return self._calls.declare(capabilities)

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> Parser:
        return MixedParser(self._calls.parser(capabilities), self._text.parser(capabilities, variables))

    def names(self, message: str) -> dict[str, str]:
        return self._text.names(message)

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        return None  # a grammar would forbid one of the two

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        return self._text.write(actions, capabilities)

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        """Results of native calls by their ids first: servers want them right after the calls."""
        called = [(a, o) for a, o in outcomes if a.call_id]
        written = [(a, o) for a, o in outcomes if not a.call_id]
        messages = self._calls.render(called) if called else ()
        return (*messages, *(self._text.render(written) if written else ()))


def mixed(dialects: Sequence[Dialect]) -> Dialect:
    """`tools` and one of `script` and `xml` as one dialect, in either order. Raises `UseError`."""
    by_name = {d.name: d for d in dialects}
    calls = by_name.pop("tools", None)
    if calls is None or len(by_name) != 1 or not by_name.keys() <= {"script", "xml"}:
        names = ", ".join(d.name for d in dialects)
        raise UseError(f"The dialects {names} cannot be mixed.", "`tools` goes with `script` or with `xml`.")
    return Mixed(calls, next(iter(by_name.values())))
