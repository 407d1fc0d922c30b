"""Reads a reply of the `tools` dialect: native calls, and the calls that stand in the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from textor.actions import Action, Catalogue
from textor.arguments import ArgumentError, parse_json
from textor.arguments.json_text import Extent
from textor.dialects.calls import Calls, OpenCall, native_action
from textor.dialects.fences import Fences, Piece
from textor.dialects.names import tool_names
from textor.dialects.near import Lines, unknown_name, wrong_arguments
from textor.dialects.port import (
    ActionBegun,
    ActionRead,
    ArgumentText,
    NearMiss,
    ParseEvent,
    Retracted,
)
from textor.dialects.sink import Sink
from textor.dialects.text_calls import (
    FENCES,
    JSON_FENCES,
    MARKS,
    Named,
    TextCall,
    Written,
    calls_in,
    calls_of,
    fitted,
    found_call,
    values_in,
)
from textor.messages import CallChunk, ToolCall

FORM = '<tool_call>{"name": …, "arguments": {…}}</tool_call>'

#: How the JSON of a call begins behind other text.
LATE = tuple(f'{{{blank}"name"' for blank in ("", " ", "\n", "\n ", "\n  ", "\n    ", "\n\t"))
#: The beginning of a reply that may be nothing but JSON, and what may become one.
_BARE = re.compile(r'\s{0,64}(?:\{\s{0,64}"|\[\s{0,64}\{)')
_MAYBE_BARE = re.compile(r"\s{0,64}(?:\{\s{0,64}|\[\s{0,64})?\Z")


@dataclass
class _Open:
    """A call in the text that is being read. `acts` False: it stands where calls are quoted."""

    call: TextCall
    offset: int
    mark: str
    acts: bool = True
    begun: bool = False
    raw: list[str] = field(default_factory=list)

    @property
    def bare(self) -> bool:
        return self.mark == ""

    @property
    def text(self) -> str:
        return self.mark + "".join(self.raw)


@dataclass
class _Fence:
    """A ```json fence that may be a call: held until it is seen whether it is the whole reply."""

    offset: int
    alone: bool
    text: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    begin: str = ""  #: the first character of the body that is not blank
    closed: bool = False


class ToolsParser:
    """The parser of `tools`. It is never `done`: another parallel call may follow."""

    done = False

    def __init__(self, capabilities: Catalogue) -> None:
        self._catalogue = capabilities
        self._names = tool_names(capabilities.names)
        self._fences = Fences(MARKS, LATE)
        self._lines = Lines()
        self._native = Calls()
        self._open: _Open | None = None
        self._held: list[_Fence] = []
        self._own_fence = False  # within a fence whose calls have been read
        self._untouched = True  # nothing but blanks and reasoning so far
        self._line_free = True  # nothing but blanks and calls on this line
        self._late: NearMiss | None = None  # told unless other text follows
        self._position = 0
        self._string: Extent | None = None  # of an open call whose text is being passed on
        self._quick: list[str] = []  # pieces in the middle of its string
        self._out = Sink()

    # -- the port --------------------------------------------------------------------------

    def feed(self, text: str) -> Sequence[ParseEvent]:
        if self._string is not None:
            # Most of a long call is the middle of a string: nothing is decided there.
            if self._string.within(text):
                self._quick.append(text)
                return (ArgumentText(self._position, text),)
            self._slow()
        self._lines.feed(text)
        self._fences.feed(text)
        self._run(ended=False)
        open = self._open
        self._string = open.call.inner if open is not None and open.begun else None
        return self._out.take()

    def _slow(self) -> None:
        """Make good what was left undone for the pieces that were only kept."""
        text, self._string = "".join(self._quick), None
        if text and self._open is not None:
            self._quick = []
            self._open.call.told(text)
            self._open.raw.append(text)
            self._lines.feed(text)
            self._fences.skip(text)

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        self._slow()
        if not self._native.open:
            self._text_was_no_call()
        place = self._native.feed(chunk)
        call = self._native.open[place]
        name = self._names.name(call.name)
        if name and call.pieces:
            if not call.begun:
                self._out.add(ActionBegun(place, name))
                call.begun = True
            fresh = "".join(call.pieces[call.told :])
            call.told = len(call.pieces)
            if fresh:
                self._out.add(ArgumentText(place, fresh))
        return self._out.take()

    def close(self, finish: str) -> Sequence[ParseEvent]:
        self._slow()
        self._fences.end()
        self._run(ended=True)
        self._close_held()
        if self._late is not None and not self._native.open and not self._position:
            self._out.add(self._late)
        kept = self._native.finished()
        for place, (call, known) in enumerate(zip(self._native.open, kept, strict=True)):
            last = place == len(kept) - 1
            self._close_native(place, call, known, cut=last and finish in ("length", "cut"))
        return self._out.take()

    # -- text ------------------------------------------------------------------------------

    def _run(self, ended: bool) -> None:
        while True:
            if self._open is not None:
                if not self._go_on(self._open, ended):
                    return
            elif self._untouched and self._fences.zone == "prose" and (bare := self._bare(ended)) is not None:
                if not bare:
                    return
            else:
                piece = self._fences.next()
                if piece is None:
                    return
                self._piece(piece)

    def _bare(self, ended: bool) -> bool | None:
        """Whether the reply begins with JSON: True, the call is open; False, more text is needed;
        None, it does not."""
        fences = self._fences
        if self._native.open:
            return None
        if _BARE.match(fences.buffer, fences.pos):
            self._open = _Open(TextCall("bare"), fences.offset, "")
            return True
        may_be = not ended and _MAYBE_BARE.match(fences.buffer, fences.pos)
        return False if may_be else None

    def _piece(self, piece: Piece) -> None:
        if piece.zone == "reasoning":
            self._reasoning(piece)
        elif piece.zone == "mark" and piece.text not in MARKS:
            self._begin_late(piece)
        elif piece.zone == "mark" and not self._native.open:
            acts = self._line_free
            self._release()
            self._open = _Open(TextCall(piece.text), piece.offset, piece.text, acts)
        elif piece.zone == "fence":
            self._fence(piece)
        elif self._held and piece.zone == "prose" and not piece.text.strip():
            self._held[-1].text.append(piece.text)
            self._line_free = self._line_free or "\n" in piece.text
        else:
            self._release()
            self._prose(piece.text, acts=piece.zone == "prose")

    def _begin_late(self, piece: Piece) -> None:
        """JSON of a call where a line begins, behind other text: told, if the reply ends so."""
        self._release()
        if self._native.open or self._position:
            self._prose(piece.text)
            return
        self._open = _Open(TextCall("bare"), piece.offset, "", acts=False, raw=[piece.text])
        self._open.call.take(piece.text.lstrip(), 0, False)

    def _reasoning(self, piece: Piece) -> None:
        if piece.edge == "orphan":  # all that came before was reasoning
            self._out.add(Retracted())
            self._held.clear()
            self._position, self._untouched = 0, True
        self._line_free = True

    def _fence(self, piece: Piece) -> None:
        self._line_free = False
        if self._own_fence:
            self._own_fence = not piece.edge
            if piece.text.strip() and not piece.edge:
                self._prose(piece.text, acts=False)
        elif piece.edge == "open" and piece.info in FENCES and not self._native.open:
            self._release()
            self._own_fence = True
            self._open = _Open(TextCall("fence"), piece.offset, piece.text)
        elif piece.edge == "open" and piece.info in JSON_FENCES and self._may_hold():
            alone = self._untouched if not self._held else self._held[0].alone
            self._held.append(_Fence(piece.offset, alone, [piece.text]))
        elif self._held and not self._held[-1].closed:
            self._hold(self._held[-1], piece)
        else:
            self._release()
            self._prose(piece.text, acts=False)

    def _may_hold(self) -> bool:
        return not self._native.open and self._position == 0

    def _hold(self, fence: _Fence, piece: Piece) -> None:
        fence.text.append(piece.text)
        if piece.edge:
            fence.closed = True
            return
        fence.body.append(piece.text)
        if not fence.begin:
            fence.begin = piece.text.lstrip()[:1]
            if fence.begin and fence.begin not in "{[":
                self._release()

    def _release(self) -> None:
        """The held fences are no calls, for other text stands beside them."""
        held, self._held = self._held, []
        for fence in held:
            self._prose("".join(fence.text), acts=False)

    def _prose(self, text: str, acts: bool = True) -> None:
        if not text:
            return
        self._out.prose(text)
        line = text[text.rfind("\n") + 1 :]
        free = acts and not line.strip()
        self._line_free = free and (self._line_free or len(line) < len(text))
        if text.strip():
            self._untouched, self._late = False, None

    # -- a call in the text ----------------------------------------------------------------

    def _go_on(self, open: _Open, ended: bool) -> bool:
        """Read on in an open call; False when more text is needed."""
        fences, call = self._fences, open.call
        start = fences.pos
        end = call.take(fences.buffer, start, ended)
        if end > start:
            open.raw.append(fences.buffer[start:end])
            fences.advance(end - start)
        if open.acts and not open.bare:
            self._tell(open)
        if call.state == "more":
            return False
        if call.state == "found":
            assert call.written is not None
            self._found(open, call.written)
            return True
        self._open = None
        if call.state == "none":
            self._no_call(open)
        self._line_free = True
        return True

    def _tell(self, open: _Open) -> None:
        """Show a face what arrives, as soon as the name is certain."""
        if not open.begun and (name := self._names.name(open.call.name)):
            open.begun = True
            self._out.add(ActionBegun(self._position, name))
        if open.begun and (fresh := open.call.fresh()):
            self._out.add(ArgumentText(self._position, fresh))

    def _found(self, open: _Open, written: Written) -> None:
        """A call has been read to its end, or to the end of the reply."""
        text, known = open.text, self._names.name(open.call.name)
        try:
            calls = calls_of(written, self._lines.at(self._fences.offset - len(written.body)))
            is_call = bool(calls) and (not open.bare or found_call(parse_json(written.body)[0], self._names))
            broken, problem = False, f"Between the marks no call was found. Write {FORM}."
        except ArgumentError as error:
            calls, is_call, broken = [], False, True
            problem = f"The call could not be read: {error}"
        open.raw, begun, open.begun = [], open.begun, False
        if open.bare and not (is_call or (known and broken)):
            self._prose(text)
        elif not open.acts:
            self._prose(text, acts=False)
            named = any(self._names.name(call.name) for call in calls)
            if open.bare and (is_call or (known and broken)):
                problem = problem if broken else f"A call beside other text is not run. Write {FORM}."
                self._late = NearMiss(problem, *self._lines.at(open.offset), text)
            elif named and not open.bare:
                self._miss(open.offset, f"A call acts only where a line begins with it. Write {FORM}.", text)
        elif is_call:
            for call in calls:
                self._read(call, text, open.offset, begun)
        elif known:
            self._action(Action("", known, fault=problem, text=text), open.offset, begun)
        else:
            self._miss(open.offset, problem, text)
        self._untouched = False

    def _no_call(self, open: _Open) -> None:
        """After a mark stands no call: a mention of the mark, or a fault."""
        text = open.text
        self._prose(text, acts=False)
        if open.acts and open.mark in ("<tool_call>", "[TOOL_CALLS]"):
            self._miss(open.offset, f"After {open.mark} no JSON object follows. Write {FORM}.", text)

    def _read(self, call: Named, text: str, offset: int, begun: bool = False) -> None:
        name = self._names.name(call.name)
        if name is None:
            self._miss(offset, unknown_name(call.name, self._names.wires), text)
            return
        capability = self._catalogue.get(name)
        assert capability is not None
        try:
            action = Action("", name, fitted(call.arguments, capability), text=text)
        except ArgumentError as error:
            action = Action("", name, fault=wrong_arguments(self._names.wire(name), error), text=text)
        self._action(action, offset, begun)

    def _action(self, action: Action, offset: int, begun: bool) -> None:
        if not begun:
            self._out.add(ActionBegun(self._position, action.capability))
        self._position += 1
        self._out.add(ActionRead(action, *self._lines.at(offset)))

    def _miss(self, offset: int, message: str, text: str) -> None:
        line, column = self._lines.at(offset)
        self._out.add(NearMiss(message, line, column, text))

    # -- ```json fences --------------------------------------------------------------------

    def _close_held(self) -> None:
        """The reply ended with ```json fences: calls, if they are all of it."""
        held, self._held = self._held, []
        values = [values_in("".join(fence.body)) for fence in held]
        calls = all(v and all(found_call(item, self._names) for item in v) for v in values)
        alone = bool(held) and held[0].alone
        for fence, found in zip(held, values, strict=True):
            text = "".join(fence.text)
            if calls and alone and found:
                for item in found:
                    for call in calls_in(item):
                        self._read(call, text, fence.offset)
                continue
            self._prose(text, acts=False)
            head = TextCall("bare")
            head.take("".join(fence.body).lstrip(), 0, False)
            if calls:
                self._miss(
                    fence.offset, f"A call in a fence beside other text is not run. Write {FORM}.", text
                )
            elif found is None and alone and self._names.name(head.name):
                self._miss(fence.offset, f"The call is cut short or no JSON. Write {FORM}.", text)

    # -- native calls ----------------------------------------------------------------------

    def _text_was_no_call(self) -> None:
        """A native call has come: what looked like calls in the text only looked so."""
        if self._position:
            self._out.add(Retracted())
            self._position = 0
        self._release()
        if self._open is not None:
            self._prose(self._open.text, acts=False)
            self._open = None

    def _close_native(self, place: int, call: OpenCall, known: ToolCall, cut: bool) -> None:
        line, column = self._lines.at(self._fences.offset)
        if not call.name:
            self._out.add(NearMiss("A function call came without a name.", line, column, call.arguments))
            return
        action, rest = native_action(call, known, self._names, self._catalogue, cut)
        if not call.begun:
            self._out.add(ActionBegun(place, action.capability))
        self._out.add(ActionRead(action, line, column))
        if rest.strip():
            self._prose(rest)
