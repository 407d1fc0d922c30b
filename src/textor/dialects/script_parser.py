"""The parser of `script`: prose, marks, calls, definitions, sections."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from textor.actions import Action, Capability, Catalogue
from textor.arguments import ArgumentError, Problem, convert, positional, types_of
from textor.dialects.fences import Fences, Piece
from textor.dialects.names import script_names
from textor.dialects.near import Lines, unknown_name
from textor.dialects.port import (
    ActionBegun,
    ActionRead,
    ArgumentText,
    Defined,
    NearMiss,
    ParseEvent,
    Prose,
    Retracted,
)
from textor.dialects.script_arguments import ArgumentReader
from textor.dialects.script_lines import LineReader, Section
from textor.dialects.script_patterns import Compiled
from textor.dialects.script_states import OPEN, Argument, Signature, Trouble
from textor.dialects.script_terms import VARIABLE, Scope
from textor.dialects.script_write import call_form
from textor.messages import CallChunk
from textor.values import Json

#: Always there: shows a variable or an expression back.
PRINT = Capability(
    "print",
    "Show a variable or an expression.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    repeat="idempotent",
)
#: So much of a call is kept as `Action.text`.
KEPT = 2_000
#: The text is read in pieces of this length, so that what is put aside stays small.
PIECE = 1_024
#: What stands before `<!|` on its line, read backwards.
_HEAD = re.compile(
    r"[ \t]{0,4}(?:(?P<sign>=:|=|:)[ \t]{0,4})?(?P<name>[\w.-]{0,64})(?P<mark>[ \t]{0,2}!)?", re.ASCII
)
_HEAD_LENGTH = 80
_FENCED = re.compile(r"!([\w.-]{1,64})<!\|", re.ASCII)
_TEXT = Signature(("text",), "text")


class _Call:
    """One call, definition or near miss while it is being read."""

    def __init__(self, kind: str, name: str, capability: Capability | None, reader: ArgumentReader) -> None:
        self.kind = kind  # "call", "define", "miss"
        self.name = name  # as it is written
        self.capability = capability
        self.reader = reader
        self.position = -1
        self.start = 0  # offset in the reply
        self.place = (1, 1)
        self.problem = ""  # why it is a near miss
        self.source: list[str] = []
        self.length = 0

    def keep(self, text: str) -> None:
        if self.length < KEPT:
            self.source.append(text)
            self.length += len(text)

    @property
    def text(self) -> str:
        """How it is written, as far as it was read."""
        text = "".join(self.source)
        length = self.reader.offset - self.start
        return text[:length] if length <= KEPT else text[:KEPT] + "…"


class ScriptParser:
    """Reads one reply as it streams."""

    def __init__(self, capabilities: Catalogue, scope: Scope, lines: LineReader, *, stop: bool) -> None:
        given = capabilities.get("print")
        self._catalogue = Catalogue([*capabilities, *(() if given else (PRINT,))])
        self._names = script_names(self._catalogue.names)
        self._scope = scope
        self._sections = lines
        self._stop = stop
        self._fences = Fences((OPEN,))
        self._skew = 0  # offset in the reply minus offset that `_fences` knows
        self._lines = Lines()
        self._held = ""  # prose that may be the head of a call
        self._held_end = 0  # its end in the reply
        self._call: _Call | None = None
        self._fenced = ""  # how the text in a code fence begins
        self._fenced_at = 0
        self._beside: NearMiss | None = None  # told at the end when there was no call
        self._count = 0
        self._done = False
        self._events: list[ParseEvent] = []

    @property
    def done(self) -> bool:
        return self._done

    def feed(self, text: str) -> Sequence[ParseEvent]:
        call = self._call
        if call is not None and call.reader.quick(text):
            self._lines.feed(text)
            call.keep(text)
            return (ArgumentText(call.position, text),) if call.position >= 0 else ()
        self._events = []
        for start in range(0, len(text), PIECE):
            if self._done:
                break
            self._feed(text[start : start + PIECE] if len(text) > PIECE else text)
        return self._events

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        if not chunk.name:
            return ()
        message = f"Functions are not called this way here. Write !{self._shown(chunk.name)}"
        return (NearMiss(message, *self._lines.at(self._fences.offset + self._skew), chunk.name),)

    def close(self, finish: str) -> Sequence[ParseEvent]:
        self._events = []
        if self._done:
            return ()
        if self._call is not None:
            self._unfinished(self._call, finish)
            return self._events
        self._fences.end()
        self._read()
        self._release(len(self._held))
        self._settle(*self._sections.close())
        if self._beside is not None and not self._count:
            self._events.append(self._beside)
        return self._events

    # -- prose and marks -------------------------------------------------------------------

    def _feed(self, text: str) -> None:
        self._lines.feed(text)
        if self._call is None:
            self._fences.feed(text)
        elif not self._argue(self._call, text):
            return
        self._read()

    def _read(self) -> None:
        """Take the pieces that are certain, until a call is open that needs more text."""
        while not self._done and (piece := self._fences.next()) is not None:
            at = piece.offset + self._skew
            if piece.edge == "orphan" and self._count:
                self._events.append(Retracted())  # what was read was reasoning
            if piece.zone == "mark" and not self._sections.inside:
                if not self._mark(at):
                    return
            elif piece.zone == "fence":
                self._release(len(self._held))
                self._fence(piece, at)
            elif piece.zone == "prose":
                self._held += piece.text
                self._held_end = at + len(piece.text)
                tail = _HEAD.match(self._held[: -_HEAD_LENGTH - 1 : -1])
                self._release(len(self._held) - (tail.end() if tail else 0))
            else:
                self._release(len(self._held))
                self._settle(*self._sections.feed(piece.text, piece.zone, at))

    def _fence(self, piece: Piece, at: int) -> None:
        """A call alone in a code fence was probably meant; it is told when there is no other."""
        if piece.edge == "open":
            self._fenced, self._fenced_at = "", at
        elif not piece.edge and len(self._fenced) < _HEAD_LENGTH:
            self._fenced = (self._fenced + piece.text).lstrip()[:_HEAD_LENGTH]
        elif piece.edge and (found := _FENCED.match(self._fenced)) and self._names.name(found[1]):
            line, column = self._lines.at(self._fenced_at)
            what = f"what stands in a code fence is quoted and was not run. Write !{self._shown(found[1])}"
            self._beside = NearMiss(f"Line {line}, column {column}: {what} outside of it.", line, column)
        self._settle(*self._sections.feed(piece.text, piece.zone, at))

    def _release(self, count: int) -> None:
        """So much of what is held back is prose for certain."""
        if count > 0:
            at = self._held_end - len(self._held)
            text, self._held = self._held[:count], self._held[count:]
            self._settle(*self._sections.feed(text, "prose", at))

    def _settle(self, prose: str, sections: Sequence[Section]) -> None:
        if prose:
            self._events.append(Prose(prose))
        for section in sections:
            if not self._done:
                self._section(section)

    def _mark(self, at: int) -> bool:
        """`<!|` in prose: open what its head says. False while it is open."""
        found = _HEAD.match(self._held[: -_HEAD_LENGTH - 1 : -1])
        head = found[0][::-1] if found else ""
        if found is None or found["mark"] is None:
            head = head.lstrip("-. \t0123456789")
        name = (found["name"][::-1] if found else "").lstrip("-.0123456789")
        if found is None or not name or (len(found["name"]) == 64 and not found["mark"]):
            self._release(len(self._held))
            self._settle(*self._sections.feed(OPEN, "code", at))
            return True
        self._release(len(self._held) - len(head))
        self._settle(self._sections.broken(), ())
        call = self._opened(name, found["sign"], found["mark"], at + len(OPEN))
        call.start = at - len(head)
        call.place = self._lines.at(call.start)
        call.keep(head + OPEN)
        self._held = ""
        if call.kind == "call":
            call.position, self._count = self._count, self._count + 1
            self._events.append(ActionBegun(call.position, call.capability.name if call.capability else name))
        self._call = call
        rest = self._fences.buffer[self._fences.pos :]
        self._fences.advance(len(rest))
        return self._argue(call, rest)

    def _opened(self, name: str, sign: str | None, mark: str | None, after: int) -> _Call:
        """What begins here, by its head."""
        if sign == "=:" and not mark and VARIABLE.fullmatch(name):
            return _Call("define", name, None, ArgumentReader(_TEXT, self._scope, after))
        found = self._names.name(name)
        capability = self._catalogue.get(found) if found else None
        signature = Signature.of(capability) if capability else Signature()
        reader = ArgumentReader(signature, self._scope, after)
        if mark == "!" and not sign and capability:
            return _Call("call", name, capability, reader)
        call = _Call("miss", name, capability, reader)
        if sign:
            call.problem = f'A variable is set so: {re.sub(r"[^A-Za-z0-9_]", "_", name)} := <!|"text"|!>'
        elif not capability:
            call.problem = unknown_name(name, self._names.wires)
            near = [self._names.name(wire) for wire in self._names.wires if f" {wire}" in call.problem]
            call.problem += f" Write !{self._shown(near[0])}" if near and "mean" in call.problem else ""
        elif mark:
            call.problem = f"A blank stands behind the mark !. Write !{self._shown(name)}"
        else:
            call.problem = f"The mark ! is missing before {name}. Write !{self._shown(name)}"
        return call

    def _shown(self, name: str | None) -> str:
        """The form of a call, for a sentence: `BASH<!|code: string|!>`."""
        known = self._names.name(name or "")
        capability = self._catalogue.get(known) if known else None
        if capability is None or known is None:
            return 'NAME<!|"text"|!>'
        return call_form(self._names.wire(known), capability)

    # -- calls -----------------------------------------------------------------------------

    def _argue(self, call: _Call, text: str) -> bool:
        """Give the call more text. True when it is complete and reading goes on behind it."""
        reader = call.reader
        reader.feed(text)
        if call.position >= 0 and (shown := reader.shown()):
            self._events.append(ArgumentText(call.position, shown))
        call.keep(text)
        if not (reader.closed or reader.lost):
            return False
        self._call = None
        rest = reader.rest
        self._complete(call)
        if self._done:
            return False
        # One character before the rest, so that it is not taken for the start of a line.
        self._fences.feed(">" + rest)
        self._fences.advance(1)
        self._skew = reader.offset - self._fences.offset
        return True

    def _complete(self, call: _Call) -> None:
        trouble = call.reader.trouble
        if call.kind == "define":
            self._define(call, trouble)
        elif call.kind == "miss":
            self._miss(call, call.problem)
        elif trouble is not None:
            self._fault(call, self._told(trouble, call))
        else:
            self._act(call)

    def _define(self, call: _Call, trouble: Trouble | None) -> None:
        if trouble is not None:
            form = f'Write {call.name} := <!|"text"|!>'
            self._miss(call, f"{call.name} was not set: {self._where(trouble)} {form}")
            return
        terms = [argument.terms[0] for argument in call.reader.arguments if argument.terms]
        if len(terms) != 1:
            self._miss(call, f'{call.name} was not set: one value must stand in {call.name} := <!|"text"|!>')
            return
        text = terms[0] if isinstance(terms[0], str) else _as_text(terms[0])
        self._scope.define(call.name, text)
        self._events.append(Defined(call.name, text))

    def _act(self, call: _Call) -> None:
        assert call.capability is not None
        try:
            arguments = convert(_bound(call.reader.arguments, call.capability), call.capability.parameters)
        except ArgumentError as error:
            self._fault(call, f"{error} Write !{self._shown(call.capability.name)}")
            return
        self._action(Action("", call.capability.name, arguments, text=call.text), call.place)
        if self._stop and call.capability.returns:
            self._done = True

    def _fault(self, call: _Call, why: str) -> None:
        assert call.capability is not None
        line, column = call.place
        fault = f"{call.name} (line {line}, column {column}) was not run: {why}"
        self._action(Action("", call.capability.name, {}, fault=fault, text=call.text), call.place)
        self._done = self._stop or call.reader.lost

    def _miss(self, call: _Call, why: str) -> None:
        line, column = call.place
        self._events.append(NearMiss(f"Line {line}, column {column}: {why}", line, column, call.text))
        self._done = self._stop or call.reader.lost

    def _action(self, action: Action, place: tuple[int, int]) -> None:
        self._events.append(ActionRead(action, *place))

    def _where(self, trouble: Trouble) -> str:
        line, column = self._lines.at(trouble.offset)
        return f"line {line}, column {column}: {trouble.what}. {trouble.hint}".rstrip()

    def _told(self, trouble: Trouble, call: _Call) -> str:
        return f"{self._where(trouble)} Write !{self._shown(call.capability.name if call.capability else '')}"

    def _unfinished(self, call: _Call, finish: str) -> None:
        """The reply ended within a call."""
        reader = call.reader
        line, column = self._lines.at(reader.opened)
        if finish in ("length", "cut"):
            why = "the reply was cut short in it. Write it again, shorter or in parts."
        elif reader.inside == "call":
            why = "its closing mark |!> is missing."
        else:
            why = f"the {reader.inside} that begins at line {line}, column {column} is not closed, "
            why += "or |!> is missing."
        if call.kind == "call":
            form = self._shown(call.capability.name if call.capability else "")
            self._fault(call, f"{why} Write !{form}")
        else:
            self._miss(call, call.problem or f"{call.name} was not set: {why}")
        self._call = None
        self._done = True

    # -- sections and lines that act by their title or form ----------------------------------

    def _section(self, section: Section) -> None:
        """A complete section or line that is bound to a capability."""
        line, column = self._lines.at(section.offset)
        if section.fault:
            self._events.append(NearMiss(f"Line {line}, column {column}: {section.fault}", line, column))
            return
        capability = self._catalogue.get(section.capability)
        position, self._count = self._count, self._count + 1
        self._events.append(ActionBegun(position, section.capability))
        if capability is None:
            fault = unknown_name(section.capability, self._catalogue.names)
            self._action(Action("", section.capability, fault=fault, text=section.source), (line, column))
            return
        try:
            arguments = convert(self._of_section(section, capability), capability.parameters)
        except ArgumentError as error:
            fault = f"{section.title} (line {line}) was not run: {error}"
            self._action(Action("", capability.name, fault=fault, text=section.source), (line, column))
            return
        self._action(Action("", capability.name, arguments, text=section.source), (line, column))
        self._done = self._stop and capability.returns

    def _of_section(self, section: Section, capability: Capability) -> dict[str, Json]:
        if section.pattern is not None:
            return _of_pattern(section.pattern, section.groups, self._scope)
        properties: dict[str, dict[str, Json]] = capability.parameters.get("properties") or {}
        texts = [name for name, schema in properties.items() if "string" in types_of(schema)]
        needed = [name for name in texts if name in capability.parameters.get("required", ())]
        if len(needed) == 2:  # a place and what belongs there, as of `notes.set`
            return {needed[0]: section.title, needed[1]: section.text}
        return {texts[0]: section.text} if texts else positional([section.text], capability.parameters)


def _of_pattern(pattern: Compiled, groups: Mapping[str, str], scope: Scope) -> dict[str, Json]:
    return {key: text if key in pattern.quoted else scope.inner(text) for key, text in groups.items()}


def _bound(arguments: Sequence[Argument], capability: Capability) -> dict[str, Json]:
    """Arguments by name. Raises `ArgumentError` for one given twice or by place after a name."""
    parameters = capability.parameters
    plain = [argument for argument in arguments if not argument.keyword]
    bound = positional([argument.terms[0] for argument in plain], parameters)
    sources = dict(zip(bound, plain, strict=False))
    for argument in arguments:
        if not argument.keyword:
            continue
        if argument.keyword in bound:
            raise ArgumentError([_twice(argument.keyword)])
        bound[argument.keyword] = argument.terms[0]
        sources[argument.keyword] = argument
    for name, argument in sources.items():
        types = types_of((parameters.get("properties") or {}).get(name, {}), parameters)
        if argument.source and isinstance(bound[name], dict) and types and "object" not in types:
            bound[name] = bound[name]["source"]
    return bound


def _twice(name: str) -> Problem:
    return Problem(name, "was given twice", "Give it once, by place or by name.")


def _as_text(value: Json) -> str:
    """What a number, a list or an object is as the text of a variable."""
    return json.dumps(value, ensure_ascii=False)
