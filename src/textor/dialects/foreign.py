"""Calls in a form that the agent's dialect does not know: told, never taken for the answer.

Models fall back to what they were trained on: the special tokens of another server, Python, ReAct,
or a mark of `script` half remembered. Where a reply holds nothing else that was meant as a call, a
line that begins so and names a capability is a near miss (law 5). It is looked for once, at the end
of such a reply; in code, quotations and reasoning never.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from textor.actions import Catalogue
from textor.dialects.fences import Fences
from textor.dialects.names import Names, script_names, tool_names
from textor.dialects.port import ActionRead, FreeLine, NearMiss, ParseEvent, Parser, Reply
from textor.dialects.script_write import call_form
from textor.messages import CallChunk
from textor.near import nearest, position

#: A reply with more text than this is no call that was meant.
LONGEST = 200_000
#: The name of a capability is looked for in so many characters behind a mark.
NEAR = 300

#: `!NAME` with another mark than `<!|`, and `NAME :=` without it.
_SCRIPT = re.compile(r"^[ \t]{0,8}!(?P<name>[\w.-]{1,64})[ \t]{0,4}(?:<[!|(]|[(\[:]|<!\|)", re.M | re.A)
_DEFINED = re.compile(r"^[ \t]{0,8}(?P<name>[A-Za-z_]\w{0,63})[ \t]{0,4}:=[ \t]{0,4}[^\s<]", re.M | re.A)
#: The marks of other servers: <|…|>, <｜…｜>, XML elements of that use, harmony's recipient.
_TOKEN = re.compile(
    r"^[ \t]{0,8}(?:<[|｜]{1}[^<>\n]{1,60}>|\[TOOL_CALLS\]|functions\.(?=\w)|<function="
    r"|<(?:\w{1,20}:)?(?:tool_calls?|function_calls?|tools|invoke|tool_code|actions)\b[^<>\n]{0,120}>)",
    re.M,
)
_WORD = re.compile(r"[\w.-]{1,64}", re.A)
_REACT = re.compile(r"^[ \t]{0,8}Action[ \t]?:[ \t]{0,4}`?(?P<name>[\w.-]{1,64})`?[ \t]{0,4}(?:\(|$)", re.M)
#: The whole reply is one Python call, or a list of them.
_PYTHON = re.compile(r"\s*\[?(?P<name>[\w.-]{1,64})\((?s:.*)\)\s*\]?\s*", re.A)
_NAMED = re.compile(
    r'"(?:name|tool|tool_name|function|function_name|action|command)"\s{0,8}:\s{0,8}"(?P<name>[\w.-]{1,64})"'
)
_ARGUED = re.compile(r'"(?:arguments|args|parameters|params|input|action_input|tool_input)"\s{0,8}:')


class Watched:
    """A parser whose replies without any action are looked through for foreign calls."""

    def __init__(self, dialect: str, parser: Parser, capabilities: Catalogue) -> None:
        self._dialect = dialect
        self._parser = parser
        self._capabilities = capabilities
        self._text: list[str] = []
        self._length = 0
        self._meant = False  # something was read or told

    @property
    def done(self) -> bool:
        return self._parser.done

    def feed(self, text: str) -> Sequence[ParseEvent]:
        if self._length <= LONGEST:
            self._text.append(text)
            self._length += len(text)
        return self._seen(self._parser.feed(text))

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        self._meant = True
        return self._parser.feed_call(chunk)

    def close(self, finish: str) -> Sequence[ParseEvent]:
        events = self._seen(self._parser.close(finish))
        if self._meant or self._length > LONGEST:
            return events
        missed = foreign_call("".join(self._text), self._dialect, self._capabilities)
        return [*events, missed] if missed else events

    def _seen(self, events: Sequence[ParseEvent]) -> Sequence[ParseEvent]:
        if not self._meant:
            self._meant = any(isinstance(event, (ActionRead, NearMiss, FreeLine, Reply)) for event in events)
        return events


def watched(dialect: str, parser: Parser, capabilities: Catalogue) -> Parser:
    """The parser of a dialect in which calls stand in free text, made to tell of foreign ones."""
    return parser if dialect in ("plan", "step") else Watched(dialect, parser, capabilities)


def foreign_call(text: str, dialect: str, capabilities: Catalogue) -> NearMiss | None:
    """The first call in a foreign form that names one of `capabilities`; None where none stands.

    `dialect` is its name, such as "tools" or "tools+xml", for what the model is told to write.
    """
    wires = tool_names(capabilities.names)
    prose = list(_prose(text))
    found = [*_candidates(text, wires, script_names(capabilities.names))]
    if "script" in dialect:
        found += [("", match.start("name")) for match in _DEFINED.finditer(text)]
    for name, offset in sorted(found, key=_offset):
        if any(start <= offset < end for start, end in prose):
            line, column = position(text, offset)
            told = f"Line {line}, column {column}: {_told(name, dialect, wires, capabilities)}"
            return NearMiss(told, line, column, text[offset : offset + NEAR])
    return None


def _offset(found: tuple[str, int]) -> int:
    return found[1]


def _prose(text: str) -> Iterator[tuple[int, int]]:
    """The stretches of the text in which a call could act."""
    fences = Fences()
    fences.feed(text)
    fences.end()
    while (piece := fences.next()) is not None:
        if piece.zone == "prose":
            yield piece.offset, piece.offset + len(piece.text)


def _candidates(text: str, wires: Names, script: Names) -> Iterator[tuple[str, int]]:
    """(capability, offset) of what looks like a call."""
    for found in _SCRIPT.finditer(text):
        if name := script.name(found["name"]) or script.name(found["name"].upper()):
            yield name, found.start("name") - 1
    for found in _REACT.finditer(text):
        if name := wires.name(found["name"]):
            yield name, found.start()
    for found in _TOKEN.finditer(text):
        words = _WORD.findall(text, found.start(), found.end() + NEAR)
        if name := next((n for word in words if (n := _named(word, wires))), None):
            yield name, found.end() - len(found[0].lstrip())
    whole = _PYTHON.fullmatch(text)
    if whole and (name := wires.name(whole["name"]) or script.name(whole["name"])):
        yield name, whole.start("name")
    if (begun := re.match(r"\s*(?=[\[{])", text)) and _ARGUED.search(text):
        call = _NAMED.search(text, 0, begun.end() + NEAR)
        if call and (name := _named(call["name"], wires) or _near(call["name"], wires)):
            yield name, begun.end()


def _named(word: str, wires: Names) -> str | None:
    """The capability of a name as other servers write it: `functions.files_list:0`."""
    return wires.name(word.removeprefix("functions.").rstrip(".-"))


def _near(word: str, wires: Names) -> str | None:
    return next((wires.name(wire) for wire in nearest(word, wires.wires, 1)), None)


def _told(name: str, dialect: str, wires: Names, capabilities: Catalogue) -> str:
    if not name:
        return 'A variable is set so: name := <!|"text"|!>'
    capability = capabilities.get(name)
    assert capability is not None
    what = "this is no form in which calls are written here, and nothing was run. "
    if "script" in dialect:
        wire = script_names(capabilities.names).wire(name)
        return f"{what}Write !{call_form(wire, capability)}"
    if "xml" in dialect:
        return f"{what}Write <actions><{name} …/></actions>."
    form = f'<tool_call>{{"name": "{wires.wire(name)}", "arguments": {{…}}}}</tool_call>'
    return f"{what}Call the function {wires.wire(name)}, or begin a line with {form}."
