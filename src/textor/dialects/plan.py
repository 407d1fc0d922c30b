"""The `plan` dialect: one action a line, its parameters in brackets.

    list files in [src]
    write [hello] to file [notes.txt]

After the action lines of AIE. A line is an action when everything outside its brackets is a
phrase of a capability (`plan_lines`); numbers and bullets before it do not count. What stands in
brackets arrives verbatim and may hold brackets that are closed; a line break or a bracket without
its partner cannot be written (`write` says so), and there is no escape sign, because any would
change somebody's payload. The lines run one after the other, and their outcomes are the answer.

A line with a fence, inline code, a quotation or reasoning in it (`fences`) is prose, and so is one
that ends with a colon, or has no brackets and shares few words with any phrase. Everything else
that is no action is a `NearMiss` with the nearest phrases, and does not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.arguments import ArgumentError
from textor.dialects.plan_grammar import gbnf
from textor.dialects.plan_lines import Phrase, Phrases, phrases_of
from textor.dialects.plan_reader import PlanReader, Written
from textor.dialects.plan_slots import arguments_of, filled
from textor.dialects.port import ActionRead, FreeLine, NearMiss, ParseEvent, Prose, Retracted, Variables
from textor.errors import UseError
from textor.messages import CallChunk, Grammar, Message, ToolSpec, said
from textor.values import Json, shown

#: Bytes of one outcome that the dialogue keeps: a small model reads slowly and understands little.
SHOWN = 600

_CUT = "The reply was cut short in this line, so it did not run. Write it again, shorter."


class Plan:
    """The dialect. Its actions are serial, and they are the whole turn."""

    @property
    def name(self) -> str:
        return "plan"

    @property
    def order(self) -> Literal["parallel", "serial"]:
        return "serial"

    @property
    def final(self) -> bool:
        return True

    def teach(self, capabilities: Sequence[Capability]) -> str:
        lines = [phrase.shown for capability in capabilities for phrase in phrases_of(capability)]
        return "Answer only with such lines:\n" + "\n".join(lines)

    def declare(self, capabilities: Sequence[Capability]) -> tuple[ToolSpec, ...]:
        return ()

    def parser(self, capabilities: Catalogue, variables: Variables | None = None) -> PlanParser:
        return PlanParser(Phrases(capabilities))

    def names(self, message: str) -> dict[str, str]:
        return {}

    def grammar(self, capabilities: Sequence[Capability], request: str = "") -> Grammar | None:
        text = gbnf([phrase for c in capabilities for phrase in phrases_of(c)], request)
        return Grammar(gbnf=text) if text else None

    def write(self, actions: Sequence[Action], capabilities: Sequence[Capability] = ()) -> str:
        """The lines of `actions`, in the first phrase of each capability that holds its arguments.

        Raises `UseError` for an argument that a slot cannot carry: a text with a line break or
        with a bracket that has no partner, a value that is not of the schema's type, an optional
        text that is blank.
        """
        by_name = {c.name: c for c in capabilities}
        return "\n".join(_written(action, by_name.get(action.capability)) for action in actions)

    def render(self, outcomes: Sequence[tuple[Action, Outcome]]) -> tuple[Message, ...]:
        if not outcomes:
            return ()
        return (said("user", "\n".join(_rendered(action, outcome) for action, outcome in outcomes)),)


def _written(action: Action, capability: Capability | None) -> str:
    if capability is None:
        raise UseError(f"The plan dialect cannot write {action.capability}: it is not in the catalogue.")
    problem = "It has no phrase for all of its required parameters."
    for phrase in phrases_of(capability):
        try:
            return filled(phrase, action)
        except UseError as error:
            problem = str(error)
    raise UseError(f"The plan dialect cannot write {action.capability}. {problem}")


def _rendered(action: Action, outcome: Outcome) -> str:
    mark = "" if outcome.state == "done" else f" ({outcome.state})"
    text = shown(outcome.text, "of this outcome", SHOWN)
    return f"{action.text or action.capability}{mark}:\n{text}"


class PlanParser:
    """Reads a reply line by line. A line counts once its line break, or the end, has come."""

    def __init__(self, phrases: Phrases) -> None:
        self._phrases = phrases
        self._reader = PlanReader()
        self._number = 1
        self._done = False

    @property
    def done(self) -> bool:
        """A line that ends the turn was read (`respond`)."""
        return self._done

    def feed(self, text: str) -> Sequence[ParseEvent]:
        return [] if self._done else self._events(self._reader.feed(text), "\n")

    def feed_call(self, chunk: CallChunk) -> Sequence[ParseEvent]:
        if not chunk.name:
            return []
        message = f"This agent calls no functions; it writes lines.{_advice(self._phrases.all)}"
        return [NearMiss(message, self._number, 1, chunk.name)]

    def close(self, finish: str) -> Sequence[ParseEvent]:
        if self._done:
            return []
        lines, last = self._reader.end()
        events = self._events(lines, "\n")
        if finish in ("length", "cut") and last.line.skeleton and not last.quoted and not self._done:
            return [*events, NearMiss(_CUT, last.number, last.column, last.raw)]
        return [*events, *self._events([last], "")]

    def _events(self, lines: Sequence[Written], newline: str) -> list[ParseEvent]:
        events: list[ParseEvent] = []
        for written in lines:
            if self._done:
                break
            self._number = written.number + 1
            if written.disowned:
                events.append(Retracted())
            if written.raw.strip():
                events.append(self._event(written, newline))
        return events

    def _event(self, written: Written, newline: str) -> ParseEvent:
        line = written.line
        matches = [] if written.unclosed else self._phrases.exact(line)
        if written.quoted or not line.skeleton:
            return Prose(written.raw + newline)
        if len(matches) == 1:
            return self._action(written, matches[0])
        if written.unclosed:
            nearest = [phrase for _, phrase in self._phrases.nearest(line)]
            why = "This bracket is never closed." + _advice(nearest or self._phrases.all)
            return NearMiss(why, written.number, written.column, line.text)
        if line.skeleton.endswith(":"):  # it announces something
            return Prose(written.raw + newline)
        return FreeLine(line.text, written.number, written.column)

    def _action(self, written: Written, phrase: Phrase) -> ActionRead:
        arguments: dict[str, Json] = {}
        fault = ""
        try:
            arguments = arguments_of(phrase, written.line.slots)
        except ArgumentError as error:
            fault = f"{error} Write `{phrase.shown}`."
        self._done = phrase.capability.ends_turn and not fault
        action = Action("", phrase.capability.name, arguments, fault=fault, text=written.line.text)
        return ActionRead(action, written.number, written.column)


def _advice(phrases: Sequence[Phrase]) -> str:
    shown = [f"`{phrase.shown}`" for phrase in phrases[:3]]
    return f" Write one of {', '.join(shown)}." if shown else ""
