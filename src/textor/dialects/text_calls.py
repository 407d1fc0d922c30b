"""Function calls that a server left in the text, by an explicit table of known forms.

    <tool_call>{"name": …, "arguments": {…}}</tool_call>            Hermes, Qwen, and `write`
    <tool_call><function=NAME><parameter=KEY>…</parameter></function></tool_call>    Qwen Coder
    <function=NAME>{…}</function>                                    Llama 3
    <|python_tag|>{"name": …, "parameters": {…}}; {…}                Llama 3.1
    [TOOL_CALLS] [{"name": …, "arguments": {…}}, …]                  Mistral
    [TOOL_CALLS]NAME[ARGS]{…}                                        Mistral, newer
    ```tool_call with one or more such objects                       the declared fence
    the object or list, bare or in a ```json fence, as the whole reply

An object ends where its JSON ends, so marks inside its strings are data. A parameter in the form
of Qwen Coder ends at a `</parameter>` that is followed by the next one or by `</function>`; a
text that holds just that cannot be carried by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from textor.actions import Capability
from textor.arguments import ArgumentError, Problem, convert, parse_arguments, parse_json
from textor.arguments.json_text import Extent
from textor.dialects.names import Names
from textor.near import excerpt
from textor.values import Json, clean_text

MARKS = ("<tool_call>", "<function=", "<|python_tag|>", "[TOOL_CALLS]")
FENCES = frozenset(["tool_call", "tool_calls", "tool-call"])
JSON_FENCES = frozenset(["", "json", "JSON"])

#: What may follow a call and belongs to it.
_TAILS: dict[str, tuple[str, ...]] = {
    "<tool_call>": ("</tool_call>",),
    "<function=": ("</function>", "</tool_call>"),
    "<|python_tag|>": ("<|eom_id|>", "<|eot_id|>"),
}
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[\w.\-/:]{0,128}")
_LONGEST_BLANK = 64
#: A fence with more calls than this is data.
MAX_CALLS = 64
#: The name of a call is looked for in so many characters of it.
HEAD = 300

Kind = Literal["call", "arguments", "parameters"]
Step = Callable[[str, int, bool], int]


class Written(NamedTuple):
    """A call as it was written. `kind` "call": `body` is the JSON of one call or a list of them;
    "arguments": the JSON of the arguments of `name`; "parameters": the marked parameters of it."""

    kind: Kind
    name: str
    body: str
    whole: bool  #: False: the text ended before the call did


class TextCall:
    """Reads one call of a known form, from behind its mark, as the text comes in pieces.

    `take` says how far it read. Then `state` is "more" (feed on), "found" (`written` holds a
    call; `take` again, for its tail or the next one), "end", or "none" (no call stands here).
    """

    def __init__(self, form: str) -> None:
        self._form = form
        self.state: Literal["more", "found", "end", "none"] = "more"
        self.written: Written | None = None
        self.head = ""  #: the first characters of the body, to see the name early
        first: dict[str, Step] = {"[TOOL_CALLS]": self._mistral, "<function=": self._named}
        self._step: Step = first.get(form, self._start)
        self._name = ""
        self._kind: Kind = "call"
        self._extent = Extent()
        self._body: list[str] = []
        self._carry = ""
        self._found = 0
        self._told = 0
        self._reading = False

    @property
    def name(self) -> str:
        """The name of the call that is being read, as soon as it is certain; "" before."""
        if not self._reading:
            return ""
        if self._kind != "call":
            return self._name
        found = _HEAD_NAME.match(self.head)
        return found.group(1) if found else ""

    def fresh(self) -> str:
        """What has come of the body since this was asked last."""
        told, self._told = self._told, len(self._body)
        return "".join(self._body[told:])

    @property
    def inner(self) -> Extent | None:
        """The JSON that is being read, once its name has been looked for; else None."""
        plain = self.state == "more" and self._step == self._json and len(self.head) == HEAD
        return self._extent if plain else None

    def told(self, text: str) -> None:
        """A piece that stands in the middle of a string of `inner`, and has been shown."""
        self._body.append(text)
        self._told += 1

    def take(self, text: str, at: int, ended: bool) -> int:
        self._reading = self._reading and self.state != "found"
        self.state = "more"
        while self.state == "more" and at < len(text):
            before, step = at, self._step
            at = step(text, at, ended)
            if at == before and step == self._step:
                break
        if ended and self.state == "more":
            self._give_up()
        return at

    def _give_up(self) -> None:
        """The text has ended in the middle."""
        if self._step in (self._json, self._parameters):
            self._find(whole=False)
        else:
            self.state = "end" if self._found else "none"

    # -- steps -----------------------------------------------------------------------------

    def _start(self, text: str, at: int, ended: bool) -> int:
        """Behind a mark: blanks, then the call."""
        start = self._blank(text, at)
        if start < 0:
            return at
        if text[start] in "{[":
            self._begin("call" if not self._name else "arguments", self._json)
            return start
        mark = text[start : start + len("<function=")]
        if len(mark) < len("<function=") and mark[0] == "<" and not ended:
            return at
        if mark == "<function=" and self._form == "<tool_call>":
            self._form, self._step = "<function=", self._named
            return start + len(mark)
        if mark == "<parameter" and self._form == "<function=":
            self._begin("parameters", self._parameters)
            return start
        if mark == "</function" and self._form == "<function=":
            self._begin("arguments", self._json)
            self._find(whole=True)
            return start
        self.state = "none"
        return at

    def _named(self, text: str, at: int, ended: bool) -> int:
        """`NAME>` of `<function=NAME>`."""
        found = _WORD.match(text, at)
        assert found is not None
        if found.end() == len(text):
            return at
        if text[found.end()] != ">" or not found.group():
            self.state = "none"
            return at
        self._name, self._step = found.group(), self._start
        return found.end() + 1

    def _mistral(self, text: str, at: int, ended: bool) -> int:
        """A list, or `NAME[ARGS]{…}`, or `NAME{…}`."""
        start = self._blank(text, at)
        if start < 0:
            return at
        if text[start] in "{[":
            self._name = ""
            self._begin("call", self._json)
            return start
        found = _WORD.match(text, start)
        assert found is not None
        rest = text[found.end() : found.end() + 6]
        if not found.group() or (rest and rest[0] != "{" and not "[ARGS]".startswith(rest)):
            self.state = "none"
            return at
        if not rest or (rest[0] == "[" and len(rest) < 6):
            return at
        self._name, self._step = found.group(), self._start
        return found.end() + (6 if rest[0] == "[" else 0)

    def _json(self, text: str, at: int, ended: bool) -> int:
        end = self._extent.take(text, at)
        self._keep(text[at:end])
        if self._extent.done:
            self._find(whole=True)
        return end

    def _parameters(self, text: str, at: int, ended: bool) -> int:
        window = self._carry + text[at:]
        found = _PARAMETERS_END.search(window)
        if found is None:
            self._keep(text[at:])
            self._carry = window[-_CARRY:]
            return len(text)
        end = at + found.end() - len(self._carry)
        self._keep(text[at:end])
        self._find(whole=True)
        return end

    def _tail(self, text: str, at: int, ended: bool) -> int:
        """Closing marks, or the next call of the same container."""
        start = self._blank(text, at)
        if start < 0:
            self.state = "end" if self.state == "none" else self.state
            return at
        for tail in _TAILS.get(self._form, ()):
            rest = text[start : start + len(tail)]
            if rest == tail:
                if tail != "</function>":  # a </tool_call> may follow that one
                    self.state = "end"
                return start + len(tail)
            if tail.startswith(rest) and not ended:
                return at
        return self._next(text, at, start)

    def _next(self, text: str, at: int, start: int) -> int:
        if self._form == "<|python_tag|>" and text[start] == ";":
            self._step = self._start
            return start + 1
        if self._form in ("fence", "[TOOL_CALLS]") and text[start] in "{[":
            if self._form == "[TOOL_CALLS]" and text[start] == "[":
                self._step = self._again
                return start
            self._name = ""
            self._begin("call", self._json)
            return start
        self.state = "end"
        return at

    def _again(self, text: str, at: int, ended: bool) -> int:
        mark = "[TOOL_CALLS]"
        rest = text[at : at + len(mark)]
        if rest == mark:
            self._step = self._mistral
            return at + len(mark)
        if not mark.startswith(rest) or ended:
            self.state = "end"
        return at

    def _blank(self, text: str, at: int) -> int:
        """Behind the blanks; -1 where more text is needed. Endless blanks are no call."""
        start = _skip(text, at)
        if start - at > _LONGEST_BLANK:
            self.state = "none"
        return start if start < len(text) and start - at <= _LONGEST_BLANK else -1

    # -- the body --------------------------------------------------------------------------

    def _begin(self, kind: Kind, step: Step) -> None:
        self._kind, self._extent, self._body, self._carry, self.head = kind, Extent(), [], "", ""
        self._step, self._told, self._reading = step, 0, True

    def _keep(self, text: str) -> None:
        self._body.append(text)
        if len(self.head) < HEAD:
            self.head += text[: HEAD - len(self.head)]

    def _find(self, whole: bool) -> None:
        self.written = Written(self._kind, self._name, "".join(self._body), whole)
        self._found += 1
        self.state, self._step = "found", self._tail


_HEAD_NAME = re.compile(r'\{\s*"name"\s*:\s*"([^"\\]{1,128})"')
_PARAMETERS_END = re.compile(rf"</parameter>\s{{0,{_LONGEST_BLANK}}}</function>")
_CARRY = len("</parameter></function>") + _LONGEST_BLANK


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


# -- from what was written to calls --------------------------------------------------------


class Named(NamedTuple):
    """A call with the name as written. Exactly one of `arguments` and `fault` counts."""

    name: str
    arguments: Json
    fault: str = ""


def calls_of(written: Written, place: tuple[int, int] = (1, 1)) -> list[Named]:
    """The calls in a text, which begins at `place`; raises `ArgumentError` where it is no JSON."""
    if written.kind == "arguments":
        return [Named(written.name, written.body)]
    if written.kind == "parameters":
        return [Named(written.name, _marked(written.body))]
    value, _ = parse_json(written.body, place)
    return calls_in(value)


def calls_in(value: Json) -> list[Named]:
    """The calls that a JSON value is: one, or a list of them; [] where it is anything else."""
    calls = [call_of(item) for item in (value if isinstance(value, list) else [value])]
    return [call for call in calls if call is not None] if all(calls) else []


def values_in(body: str) -> list[Json] | None:
    """The JSON values in the body of a fence; None when it holds anything else."""
    found: list[Json] = []
    while body.strip():
        if len(found) == MAX_CALLS:
            return None
        try:
            value, end = parse_json(body)
        except ArgumentError:
            return None
        found.append(value)
        body = body[end:]
    return found


def call_of(value: Json) -> Named | None:
    """A JSON value as a call: `{name, arguments}`, `{name, parameters}`, or either of them under
    `function`; None when it is none of these."""
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    if set(value) - {"name", "arguments", "parameters", "id", "type"}:
        return None
    return Named(value["name"], value.get("arguments", value.get("parameters", {})))


def fitted(arguments: Json, capability: Capability) -> dict[str, Json]:
    """Arguments as written (JSON text, an object, or nothing) by the capability's schema."""
    if arguments is None:
        arguments = {}
    if isinstance(arguments, str):
        parsed = parse_arguments(arguments, capability.parameters)
        return parsed.arguments
    if not isinstance(arguments, dict):
        raise ArgumentError([Problem("", f"the arguments are {excerpt(arguments)}, not a JSON object")])
    return convert(arguments, capability.parameters)


def found_call(value: Json, names: Names) -> bool:
    """Whether a whole reply that is this JSON value is a call, or a list of them: it has arguments
    every name exists."""
    items = value if isinstance(value, list) else [value]
    calls = [call_of(item) for item in items if isinstance(item, dict) and len(item) > 1]
    exist = all(call is not None and names.name(call.name) for call in calls)
    return bool(items) and len(calls) == len(items) and exist


_PARAMETER = re.compile(
    r"\s*<parameter=([^>\n]{1,128})>\n?(.*?)\n?</parameter>"
    rf"(?=\s{{0,{_LONGEST_BLANK}}}(?:<parameter=|</function>))",
    re.DOTALL,
)


def _marked(body: str) -> dict[str, Json]:
    """`<parameter=KEY>text</parameter>`, repeated; the text as it is, without the line breaks
    that set it off."""
    found: dict[str, Json] = {}
    at = 0
    while (parameter := _PARAMETER.match(body, at)) is not None:
        key, text = parameter.groups()
        if key.strip() in found:
            raise ArgumentError([Problem(key.strip(), "is given twice; which is meant is not certain")])
        found[clean_text(key.strip())] = clean_text(text)
        at = parameter.end()
    if body[at:].strip() != "</function>":
        said = excerpt(body[at : at + 40])
        raise ArgumentError([Problem("", f"at {said} <parameter=NAME>…</parameter> should stand")])
    return found
