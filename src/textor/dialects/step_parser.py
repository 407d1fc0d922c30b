"""Reads a reply of the `step` dialect: the object, from a native call or from the text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from textor.actions import Action, Catalogue
from textor.arguments import ArgumentError, Problem, parse_json
from textor.arguments.json_text import Extent
from textor.dialects.calls import Calls
from textor.dialects.fences import Fences, Piece
from textor.dialects.names import tool_names
from textor.dialects.near import Lines, excerpt, unknown_name, wrong_arguments
from textor.dialects.port import (
    ActionBegun,
    ActionRead,
    ArgumentText,
    NearMiss,
    ParseEvent,
    Reply,
    ThinkOn,
)
from textor.dialects.sink import Sink
from textor.dialects.text_calls import JSON_FENCES, fitted
from textor.messages import CallChunk, ToolCall
from textor.values import Json

ITERATE = "iterate"
FORM = '{"thought": …, "command": {"name": …, "arguments": {…}}} or {"thought": …, "response": …}'
KEYS = ("thought", "description", "criticism", "command", "response")
#: An object of this dialect begins with one of its keys.
_STARTS = re.compile(rf'\{{\s{{0,64}}"(?:{"|".join(KEYS)})"')
_BRACE = re.compile(r"\s{0,64}\{")
_BLANK = re.compile(r"\s{0,64}")
_LONGEST = 2 + 64 + max(map(len, KEYS)) + 2


class StepParser:
    """The parser of `step`; `done` as soon as one bare object has been read."""

    def __init__(self, capabilities: Catalogue) -> None:
        self._catalogue = capabilities
        self._names = tool_names(capabilities.names)
        self._fences = Fences(line_marks=("{",))
        self._lines = Lines()
        self._native = Calls()
        self._reasoned = False  # reasoning has just ended
        self._opening: int | None = None  # where an object may begin, until its first key is seen
        self._extent: Extent | None = None  # of the object that is being read
        self._object: list[str] = []
        self._offset = 0
        self._fenced: list[tuple[int, list[str]]] = []  # ```json fences, should no bare object come
        self._in_json_fence = False
        self._out = Sink()
        self._held: list[str] = []  # prose from the first of these fences on
        self._some_text = False
        self._position = 0
        self.done = False

    # -- the port --------------------------------------------------------------------------

    def feed(self, text: str) -> Sequence[ParseEvent]:
        if self.done:
            return ()
        self._lines.feed(text)
        self._fences.feed(text)
        self._run(ended=False)
        return self._out.take()

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        place = self._native.feed(chunk)
        if place == 0 and chunk.arguments:
            self._out.add(ArgumentText(0, chunk.arguments))
        return self._out.take()

    def close(self, finish: str) -> Sequence[ParseEvent]:
        self._fences.end()
        if not self.done:
            self._run(ended=True)
        kept = self._native.finished()
        if kept and not self.done:
            self._close_native(kept, finish in ("length", "cut"))
        elif not kept and not self.done:
            self._close_text()
        return self._out.take()

    # -- text ------------------------------------------------------------------------------

    def _run(self, ended: bool) -> None:
        while not self.done:
            if self._extent is not None:
                if not self._read_on(self._extent, ended):
                    return
            elif self._opening is not None:
                if not self._open(ended):
                    return
            elif self._reasoned:
                if not self._behind_reasoning(ended):
                    return
            else:
                piece = self._fences.next()
                if piece is None:
                    return
                self._piece(piece)

    def _piece(self, piece: Piece) -> None:
        self._reasoned = piece.zone == "reasoning" and piece.edge in ("close", "orphan")
        if piece.zone == "mark" and not self._native.open:
            self._prose(piece.text[:-1])
            self._opening = piece.offset + len(piece.text) - 1
        elif piece.zone != "reasoning":
            if piece.zone == "fence":
                self._fence(piece)
            self._prose(piece.text)

    def _behind_reasoning(self, ended: bool) -> bool:
        """A reply may go on with its object on the line where the reasoning ended."""
        fences = self._fences
        found = _BRACE.match(fences.buffer, fences.pos)
        if found is None:
            self._reasoned = not ended and _BLANK.fullmatch(fences.buffer, fences.pos) is not None
            return not self._reasoned
        self._prose(fences.buffer[fences.pos : found.end() - 1])
        fences.advance(found.end() - fences.pos)
        self._opening, self._reasoned = fences.offset - 1, False
        return True

    def _fence(self, piece: Piece) -> None:
        if piece.edge == "open":
            self._in_json_fence = piece.info in JSON_FENCES
            if self._in_json_fence:
                self._fenced.append((piece.offset + len(piece.text), []))
                self._held = self._held or [""]  # from here on prose waits
        elif piece.edge:
            self._in_json_fence = False
        elif self._in_json_fence:
            self._fenced[-1][1].append(piece.text)

    def _open(self, ended: bool) -> bool:
        """Behind a brace where a line begins: an object of ours, or other text."""
        assert self._opening is not None
        fences = self._fences
        head = "{" + fences.buffer[fences.pos : fences.pos + _LONGEST]
        if _STARTS.match(head):
            self._extent, self._object, self._offset = Extent(), ["{"], self._opening
            self._extent.take("{")
        elif len(head) < _LONGEST and not ended and "}" not in head:
            return False
        else:
            self._prose("{")
        self._opening = None
        return True

    def _read_on(self, extent: Extent, ended: bool) -> bool:
        fences = self._fences
        start = fences.pos
        end = extent.take(fences.buffer, start)
        self._object.append(fences.buffer[start:end])
        fences.advance(end - start)
        if not extent.done and not ended:
            return False
        self._extent = None
        self._release()
        self._read("".join(self._object), self._offset)
        self.done = True
        return True

    def _close_text(self) -> None:
        """No bare object came: the one in a ```json fence counts, if there is only one."""
        found = [(at, "".join(body)) for at, body in self._fenced if _STARTS.match("".join(body).lstrip())]
        if len(found) == 1:
            offset, body = found[0]
            self._held = []
            self._read(body.strip(), offset + len(body) - len(body.lstrip()))
            return
        self._release()
        if found:
            self._miss(f"There are {len(found)} objects; write one: {FORM}.", found[0][0])
        elif self._some_text:
            self._miss(f"This is no step. Write one JSON object: {FORM}.", 0)

    def _release(self) -> None:
        held, self._held = self._held, []
        self._out.prose("".join(held))

    def _prose(self, text: str) -> None:
        if not text:
            return
        self._some_text = self._some_text or bool(text.strip())
        (self._held.append if self._held else self._out.prose)(text)

    def _miss(self, message: str, offset: int, text: str = "") -> None:
        self._out.add(NearMiss(message, *self._lines.at(offset), text))

    # -- native calls ----------------------------------------------------------------------

    def _close_native(self, kept: tuple[ToolCall, ...], cut: bool) -> None:
        """The first call is the step; each further one gets the outcome that it was not run."""
        for place, (call, known) in enumerate(zip(self._native.open, kept, strict=True)):
            if call.name != ITERATE:
                fault = unknown_name(call.name, [ITERATE]) + f" Call {ITERATE} with {FORM}."
                self._action(Action("", call.name, fault=fault), known)
            elif place:
                fault = "One reply is one step: this one was not run."
                self._action(Action("", ITERATE, fault=fault), known)
            elif cut and not call.complete:
                fault = "The step was cut short and was not run. Write it again, shorter."
                self._action(Action("", ITERATE, fault=fault), known)
            else:
                self._read(call.arguments, self._fences.offset, known)

    # -- the object ------------------------------------------------------------------------

    def _read(self, text: str, offset: int, known: ToolCall | None = None) -> None:
        try:
            step, end = parse_json(text, self._lines.at(offset) if known is None else (1, 1))
            if isinstance(step, str):
                step, _ = parse_json(step)
            if not isinstance(step, dict):
                raise ArgumentError([Problem("", f"it is {excerpt(step)}, not a JSON object")])
        except ArgumentError as error:
            self._fault(f"The step could not be read: {error}", offset, text, known)
            return
        if strange := [key for key in step if key not in KEYS]:
            self._fault(f"A step has no {excerpt(strange[0])}. Write {FORM}.", offset, text, known)
            return
        self._take(step, text, offset, known)
        if rest := text[end:].strip():
            self._prose(rest)

    def _take(self, step: dict[str, Any], text: str, offset: int, known: ToolCall | None) -> None:
        thought, command, response = (
            _text(step.get("thought")),
            step.get("command"),
            _text(step.get("response")),
        )
        if command:
            said = "\n".join(part for part in (thought, response) if part)
            if said:
                self._out.prose(said)
            self._command(command, text, offset, known)
            return
        if thought and response:
            self._out.prose(thought)
        written = text if known is not None else ""
        if response:
            self._out.add(Reply(response, written))
        else:
            rest = (_text(step.get(key)) for key in ("description", "criticism"))
            self._out.add(ThinkOn("\n".join(part for part in (thought, *rest) if part), written))

    def _command(self, command: Json, text: str, offset: int, known: ToolCall | None) -> None:
        if not isinstance(command, dict) or not isinstance(command.get("name"), str):
            form = '{"name": …, "arguments": {…}}'
            self._fault(f"The command is {excerpt(command)}. Write it as {form}.", offset, text, known)
            return
        written = command["name"]
        name = self._names.name(written)
        if name is None:
            self._fault(unknown_name(written, self._names.wires), offset, text, known, written)
            return
        strange = [key for key in command if key not in ("name", "arguments")]
        capability = self._catalogue.get(name)
        assert capability is not None
        fault, arguments = "", {}
        try:
            arguments = fitted(command.get("arguments"), capability)
        except ArgumentError as error:
            fault = wrong_arguments(written, error)
        if strange:
            fault, arguments = f"A command has a name and arguments, and no {excerpt(strange[0])}.", {}
        self._action(Action("", name, arguments, fault=fault, text=text), known, offset)

    def _fault(self, fault: str, offset: int, text: str, known: ToolCall | None, name: str = "") -> None:
        """A native call needs an outcome, so its fault is an action; in text it is a near miss."""
        if known is None and not name:
            self._miss(fault, offset, text)
        else:
            self._action(Action("", name or ITERATE, fault=fault, text=text), known, offset)

    def _action(self, action: Action, known: ToolCall | None, offset: int = 0) -> None:
        if known is not None:
            action = Action(
                "",
                action.capability,
                action.arguments,
                known.call_id,
                known.name,
                fault=action.fault,
                text=known.arguments,
            )
        self._out.add(ActionBegun(self._position, action.capability))
        self._position += 1
        self._out.add(ActionRead(action, *self._lines.at(offset)))


def _text(value: Json) -> str:
    """A field as text: what is no string is shown as JSON."""
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
