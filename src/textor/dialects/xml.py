"""The `xml` dialect, after SIA: free reasoning, then one block of actions.

    John did not say when. I ask, and write it down.
    <actions>
    <write_stdout message="Is 9 am all right?"/>
    <start_container image="busybox" volumes="/tasks:/tasks">
      <command>sh</command>
      <parameter>-c</parameter>
      <parameter><![CDATA[echo 'feed the cat' > /tasks/cat.txt]]></parameter>
    </start_container>
    </actions>

The last complete block counts, because the model may start over; actions are given when their
block is complete, and `Retracted` before them when there was a block before. A block that is
quoted, in reasoning, or after a `<context>` that the model invented counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.arguments import ArgumentError, convert
from textor.dialects.fences import Fences, Piece
from textor.dialects.names import tool_names
from textor.dialects.near import Lines, unknown_name, wrong_arguments
from textor.dialects.outcomes import media_message
from textor.dialects.port import ActionRead, ArgumentText, NearMiss, ParseEvent, Prose, Retracted, Variables
from textor.dialects.xml_elements import Element, Shapes
from textor.dialects.xml_reader import BlockReader
from textor.dialects.xml_write import gbnf, results, teach, written, xml_names
from textor.messages import CallChunk, Grammar, Message, ToolSpec, said

#: The text is read in pieces of this length, so that what is put aside stays small.
PIECE = 1_024
#: So much of a line is remembered to see whether a block in it is an example.
REMEMBERED = 200
#: At most so many elements outside of a block are told.
TOLD = 3
_BLOCK, _CONTEXT, _CONTEXT_END, _CLOSE = "<actions", "<context", "</context>", "</actions"
_WRONG = frozenset(["action", "Action", "Actions", "ACTIONS"])
_TAG = re.compile(r"<([A-Za-z_][\w.:-]{0,99})(?=[\s/>])", re.ASCII)
#: The beginning of a tag that is not decided yet.
_HALF_TAG = re.compile(r"<(?:[A-Za-z_][\w.:-]{0,99})?\Z", re.ASCII)
_EXAMPLE = re.compile(
    r"(?:[\"'“‘«‹„]|(?:e\.\s?g\.|for example|for instance|such as|example:|z\.\s?B\.)[^.!?\n]{0,80})\Z",
    re.IGNORECASE,
)


class Xml:
    """The dialect. `stop` "context": the reply ends at an invented `<context>`; "block": also at
    its first complete block."""

    def __init__(self, *, stop: Literal["context", "block"] = "context") -> None:
        self._stop = stop

    @property
    def name(self) -> str:
        return "xml"

    @property
    def order(self) -> Literal["parallel", "serial"]:
        return "serial"

    @property
    def final(self) -> bool:
        return False

    def teach(self, capabilities: Sequence[Capability]) -> str:
        return teach(capabilities)

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        return ()

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> XmlParser:
        return XmlParser(capabilities, stop=self._stop == "block")

    def names(self, message: str) -> dict[str, str]:
        return {}

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        return Grammar(gbnf=gbnf(capabilities))

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        """One block. Raises `UseError` for a name that is none in XML, or, with `capabilities`, a
        value that is no text and whose type no schema tells."""
        return written(actions, capabilities)

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        if not outcomes:
            return ()
        return (said("user", results(outcomes)), *media_message(o for _, o in outcomes))


class XmlParser:
    """Reads one reply as it streams."""

    def __init__(self, capabilities: Catalogue, *, stop: bool) -> None:
        self._catalogue = capabilities
        self._names = xml_names(capabilities.names)
        self._tools = tool_names(capabilities.names)
        self._stop = stop
        self._fences = Fences((_BLOCK, _CONTEXT))
        self._skew = 0  # offset in the reply minus offset that `_fences` knows
        self._lines = Lines()
        self._length = 0  # of the reply so far
        self._line = ""  # the line so far, as far as it is remembered
        self._held = ""  # prose that may be the beginning of a tag
        self._held_end = 0  # its end in the reply
        self._mark: Piece | None = None  # a mark whose next character is not there yet
        self._block: BlockReader | None = None
        self._started = 0  # where the block began
        self._skipped = ""  # up to this nothing is read: the end of a broken block or of a context
        self._tail = ""  # the end of what was skipped
        self._count = 0
        self._given = False  # actions were given
        self._complete = False  # a block was complete, or was told
        self._fenced = ""  # how the text in a code fence begins
        self._fenced_at = 0
        self._beside: list[NearMiss] = []  # told at the end when there was no block
        self._done = False
        self._events: list[ParseEvent] = []

    @property
    def done(self) -> bool:
        return self._done

    def feed(self, text: str) -> Sequence[ParseEvent]:
        block = self._block
        if block is not None and block.quick(text):
            self._lines.feed(text)
            self._length += len(text)
            return (ArgumentText(block.position - 1, text),)
        self._events = []
        for start in range(0, len(text), PIECE):
            if self._done:
                break
            self._feed(text[start : start + PIECE] if len(text) > PIECE else text)
        return self._events

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        if not chunk.name:
            return ()
        message = f"Functions are not called this way here. Write <actions><{chunk.name} …/></actions>."
        return (NearMiss(message, *self._lines.at(self._fences.offset + self._skew), chunk.name),)

    def close(self, finish: str) -> Sequence[ParseEvent]:
        self._events = []
        if self._done:
            return ()
        if self._block is not None:
            self._unfinished(self._block, finish)
        else:
            self._fences.end()
            self._read()
            self._release(len(self._held))
            if self._mark is not None:
                self._prose(self._mark.text)
        if not self._complete:
            self._events += self._beside[:TOLD]
        return self._events

    # -- prose and marks -------------------------------------------------------------------

    def _feed(self, text: str) -> None:
        self._lines.feed(text)
        self._length += len(text)
        if self._block is not None:
            self._take(self._block, text)
        elif self._skipped:
            self._skip(text)
        else:
            self._fences.feed(text)
            self._read()

    def _read(self) -> None:
        """Take the pieces that are certain, until a block is open that needs more text."""
        while not self._done and self._block is None and not self._skipped:
            if self._mark is not None:
                if self._fences.pos >= len(self._fences.buffer):
                    return
                mark, self._mark = self._mark, None
                if self._fences.buffer[self._fences.pos] in " \t\r\n/>":
                    self._act(mark)
                else:
                    self._prose(mark.text)
            elif (piece := self._fences.next()) is None:
                return
            elif piece.zone == "prose":
                self._held += piece.text
                self._held_end = piece.offset + self._skew + len(piece.text)
                half = _HALF_TAG.search(self._held, max(0, len(self._held) - 101))
                self._release(half.start() if half else len(self._held))
            else:
                self._release(len(self._held))
                self._apart(piece)

    def _apart(self, piece: Piece) -> None:
        """A piece that is no prose."""
        if piece.zone == "mark":
            self._mark = piece
        elif piece.zone == "fence":
            self._fence(piece)
        elif piece.zone != "reasoning":
            self._prose(piece.text)
        elif piece.edge == "orphan" and self._given:
            self._given = False
            self._events.append(Retracted())  # what was read was reasoning

    def _release(self, count: int) -> None:
        """So much of what is held back is prose; actions in it, outside of a block, are noted."""
        start = self._held_end - len(self._held)
        text, self._held = self._held[:count], self._held[count:]
        for tag in _TAG.finditer(text) if len(self._beside) < TOLD else ():
            known = tag[1] in _WRONG or self._capability(tag[1]) is not None
            if known and not self._is_example(text[: tag.start()]):
                self._beside_block(tag[1], start + tag.start())
        self._prose(text)

    def _beside_block(self, name: str, at: int) -> None:
        line, column = self._lines.at(at)
        hint = "<actions>" if name in _WRONG else f"<actions>, <{name} …/> and </actions>"
        what = f"Line {line}, column {column}: <{name}> outside of a block does nothing. Write {hint}."
        self._beside.append(NearMiss(what, line, column, f"<{name}"))

    def _prose(self, text: str) -> None:
        if text:
            self._events.append(Prose(text))
            self._line = (self._line + text).rpartition("\n")[2][-REMEMBERED:]

    def _fence(self, piece: Piece) -> None:
        """A block alone in a code fence was probably meant; it is told when there is no other."""
        if piece.edge == "open":
            self._fenced, self._fenced_at = "", piece.offset + self._skew
        elif not piece.edge and len(self._fenced) < REMEMBERED:
            self._fenced = (self._fenced + piece.text).lstrip()[:REMEMBERED]
        elif piece.edge and self._fenced.startswith(_BLOCK):
            line, column = self._lines.at(self._fenced_at)
            what = "what stands in a code fence is quoted and was not run. Write <actions> outside of it."
            self._beside.append(NearMiss(f"Line {line}, column {column}: {what}", line, column))
        self._prose(piece.text)

    def _act(self, mark: Piece) -> None:
        """A tag of ours in prose."""
        at = mark.offset + self._skew
        place = self._lines.at(at)
        where = f"Line {place[0]}, column {place[1]}"
        if mark.text == _CONTEXT and (self._complete or not self._line.strip()):
            what = f"{where}: <context> was not written by you; what follows it was not read."
            if self._complete:
                self._events.append(NearMiss(what, *place, mark.text))
                self._done = True
                return
            self._beside.append(NearMiss(what, *place, mark.text))
            self._prose(mark.text)
            self._begin_skipping(_CONTEXT_END)
        elif mark.text == _CONTEXT:
            self._prose(mark.text)
        elif self._is_example():
            what = f"{where}: this <actions> is quoted and was not read. Write it on a line of its own."
            self._beside.append(NearMiss(what, *place, mark.text))
            self._prose(mark.text)
        else:
            self._started = at
            self._block = BlockReader(self._capability, at + len(_BLOCK), self._count)
            rest = self._fences.buffer[self._fences.pos :]
            self._fences.advance(len(rest))
            self._take(self._block, rest)

    def _is_example(self, text: str = "") -> bool:
        """Whether what the line and `text` lead up to is quoted or given as an example."""
        line = (self._line + text[-REMEMBERED:]).rpartition("\n")[2][-REMEMBERED:]
        return _EXAMPLE.search(line) is not None

    def _capability(self, name: str) -> Capability | None:
        known = self._names.name(name) or self._tools.name(name)
        return self._catalogue.get(known) if known else None

    # -- what is skipped -------------------------------------------------------------------

    def _begin_skipping(self, end: str) -> None:
        self._skipped, self._tail = end, ""
        rest = self._fences.buffer[self._fences.pos :]
        self._fences.advance(len(rest))
        self._skip(rest)

    def _skip(self, text: str) -> None:
        text = self._tail + text
        at = text.find(self._skipped)
        if at < 0:
            self._tail = text[-len(self._skipped) + 1 :]
            return
        self._skipped = ""
        # What follows the closing tag ends at the length of the reply so far.
        rest = text[at:]
        self._go_on(rest, self._length - len(rest))

    def _go_on(self, rest: str, offset: int) -> None:
        """Read on in prose with `rest`, which begins at `offset` of the reply."""
        # One character before the rest, so that it is not taken for the start of a line.
        self._fences.feed(">" + rest)
        self._fences.advance(1)
        self._skew = offset - self._fences.offset
        self._line = ""
        self._read()

    # -- blocks ----------------------------------------------------------------------------

    def _take(self, block: BlockReader, text: str) -> None:
        block.feed(text)
        self._events += block.events
        block.events.clear()
        if block.broken is not None:
            self._block = None
            line, column = self._lines.at(block.broken.offset)
            why = f"Line {line}, column {column}: {block.broken.what}. Nothing of this block was run."
            self._take_back(NearMiss(why, line, column))
            self._skipped, self._tail = _CLOSE, ""
            self._skip(block.rest)
        elif block.closed:
            self._block = None
            self._finish(block)
            if not self._done:
                self._go_on(block.rest, block.offset)

    def _take_back(self, miss: NearMiss | None = None) -> None:
        """A new block takes the place of what was given before."""
        self._complete = True
        if self._given:
            self._events.append(Retracted())
        self._given = False
        if miss is not None:
            self._events.append(miss)

    def _finish(self, block: BlockReader) -> None:
        """The block is complete: its actions count, and only they."""
        self._count = block.position
        self._take_back()
        for element, capability in zip(block.actions, block.capabilities, strict=True):
            self._events.append(
                ActionRead(self._action(element, capability), *self._lines.at(element.offset))
            )
        self._given = bool(block.actions)
        self._done = self._stop

    def _action(self, element: Element, capability: Capability | None) -> Action:
        if capability is None:
            return Action("", element.name, fault=unknown_name(element.name, self._names.wires))
        line, column = self._lines.at(element.offset)
        where = f"{element.name} (line {line}, column {column})"
        if element.fault:
            return Action("", capability.name, fault=f"{where} was not run: {element.fault}.")
        try:
            arguments = convert(Shapes(capability).arguments(element), capability.parameters)
        except ArgumentError as error:
            return Action("", capability.name, fault=wrong_arguments(where, error))
        return Action("", capability.name, arguments)

    def _unfinished(self, block: BlockReader, finish: str) -> None:
        """The reply ended within a block."""
        self._block = None
        cut = finish in ("length", "cut")
        if not cut and block.may_end and (block.actions or not self._given):
            self._finish(block)
            return
        if not block.actions and block.open is None:
            return  # <actions> was only mentioned
        element = block.open
        line, column = self._lines.at(element.offset if element else self._started)
        name = element.name if element else "actions"
        if cut:
            why = f"the reply was cut short in <{name}>. Nothing of this block was run. Write it again"
            why += ", shorter."
        else:
            why = f"<{name}> is not closed. Nothing of this block was run. Write </{name}> behind it."
        self._complete = True
        self._events.append(NearMiss(f"Line {line}, column {column}: {why}", line, column))
