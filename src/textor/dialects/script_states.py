"""What the reader of `script`'s arguments stands on: signatures, troubles, and the small moves
of a machine that takes a text in pieces."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from textor.actions import Capability
from textor.arguments import types_of
from textor.dialects.script_patterns import Unclear
from textor.dialects.script_terms import Scope, joined
from textor.values import Json

OPEN, CLOSE = "<!|", "|!>"
#: More arguments, or terms of one, are no call.
MOST = 256
SPACE = re.compile(r"\s*")


class Signature:
    """What the reader must know of a function: its parameters, and whether it takes one text."""

    def __init__(self, names: tuple[str, ...] = (), single: str = "", *, open_: bool = True) -> None:
        self.names = names
        self.single = single  #: the one parameter, a string, whose quotes may be left out
        self.open = open_  #: unknown names are allowed

    @classmethod
    def of(cls, capability: Capability) -> Signature:
        parameters = capability.parameters
        properties = parameters.get("properties") or {}
        names = tuple(properties)
        text = len(names) == 1 and "string" in (types := types_of(properties[names[0]], parameters))
        single = names[0] if text and types <= {"string", "null"} else ""
        return cls(names, single, open_=bool(parameters.get("additionalProperties")))


@dataclass
class Argument:
    """One argument: its name when it was given by name, and the terms that `+` joins."""

    offset: int
    keyword: str = ""
    terms: list[Json] = field(default_factory=list)
    source: bool = False  #: a typed object


@dataclass(frozen=True)
class Trouble:
    """What is wrong, at which character of the reply; `lost`: the end of the call is not certain."""

    what: str
    hint: str
    offset: int
    lost: bool = False


class States:
    """The ground of `ArgumentReader`: what was read, what is unread, and the small moves."""

    def __init__(self, signature: Signature, scope: Scope, offset: int) -> None:
        self.arguments: list[Argument] = []
        self.trouble: Trouble | None = None
        self.closed = False
        self.opened = offset  #: where what is open now began, and what it is
        self.inside = "call"
        self._signature = signature
        self._scope = scope
        self._text = ""  # unread
        self._offset = offset  # of _text[0] in the reply
        self._step: Callable[[], bool] = self._start
        self._quick: Callable[[str], object] | None = None
        self._argument: Argument | None = None
        self._parts: list[str] = []
        self._shown: list[str] = []
        self._gap: list[str] = []
        self._quote = '"'
        self._raw = self._loose = self._comma = False
        self._run = self._depth = 0
        self._label = ""

    @property
    def rest(self) -> str:
        """What followed the closing mark."""
        return self._text

    @property
    def offset(self) -> int:
        """Where in the reply the unread text begins."""
        return self._offset

    def shown(self) -> str:
        """What of the arguments' content was fed since this was asked last."""
        text = "".join(self._shown)
        self._shown.clear()
        return text

    @property
    def lost(self) -> bool:
        return self.trouble is not None and self.trouble.lost

    def quick(self, text: str) -> bool:
        """Take a text in which nothing is special. False when it must be fed."""
        if self._text or self._quick is None or self._quick(text) is not None:
            return False
        self._parts.append(text)
        self._offset += len(text)
        return True

    def feed(self, text: str) -> None:
        self._text += text
        while not self.closed and not self.lost and self._step():
            pass

    # -- small moves -----------------------------------------------------------------------

    def _take(self, count: int) -> str:
        taken, self._text = self._text[:count], self._text[count:]
        self._offset += count
        return taken

    def _keep(self, count: int) -> None:
        text = self._take(count)
        self._parts.append(text)
        self._shown.append(text)

    def _go(self, step: Callable[[], bool], quick: Callable[[str], object] | None = None) -> bool:
        self._step, self._quick = step, quick
        return True

    def _skip_space(self) -> bool:
        """Skip white space; False when nothing else is there yet."""
        self._take(SPACE.match(self._text).end())  # type: ignore[union-attr]
        return bool(self._text)

    def _waits(self, mark: str) -> bool:
        """Whether the unread text may still become `mark`."""
        return len(self._text) < len(mark) and mark.startswith(self._text)

    def _complain(self, what: str, hint: str = "", offset: int | None = None, *, lost: bool = False) -> bool:
        """Note the first trouble, and any that loses the end of the call."""
        if self.trouble is None or (lost and not self.trouble.lost):
            at = self._offset if offset is None else offset
            self.trouble = Trouble(what, hint, at, lost)
        return not lost

    def _open_argument(self) -> Argument:
        if self._argument is None:
            self._argument = Argument(self._offset)
        return self._argument

    def _term(self, value: Json) -> None:
        self._open_argument().terms.append(value)
        self._parts = []

    def _push(self) -> None:
        """The argument is complete."""
        if self._argument is not None:
            self.arguments.append(self._argument)
            try:
                self._argument.terms = [joined(self._argument.terms)] if self._argument.terms else []
            except Unclear as unclear:
                self._complain(unclear.what, unclear.hint, self._argument.offset)
        self._argument = None
        self.inside = "call"

    def _close(self) -> bool:
        self._take(len(CLOSE))
        self._push()
        self.closed = True
        return False

    def _start(self) -> bool:
        """The first state."""
        raise NotImplementedError
