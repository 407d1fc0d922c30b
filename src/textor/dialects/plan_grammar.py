"""The grammar that holds a local model to the lines of its capabilities.

A model of a hundred million parameters chooses well among sentences and invents badly. So every
line is one of the phrases, and a parameter is *copied*: a span of words of the request, a number,
a choice of the enumeration, or the default of the schema. Only what an agent says itself (the
slots of a capability that ends the turn) is free text.

The spans of n words are n rules that call each other (the words from here on, or up to here), not
n² alternatives; the server parses the grammar at every request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from textor.actions import Capability
from textor.arguments import types_of
from textor.dialects.plan_lines import Phrase
from textor.dialects.plan_slots import encode
from textor.values import Json

MOST_LINES = 4
#: Words of the request that can be copied; a longer request is copied from its first words.
MOST_WORDS = 400
#: Characters of a free slot.
MOST_CHARACTERS = 200

_OPENERS = "\"'`“‘«(<{"
_CLOSERS = "\"'`”’»)>}"
_FULL_STOPS = ".,;:!?"
#: Words that point at a file or a folder, or say what to do with it, and are no names of one.
_NO_PATHS = frozenset(
    re.findall(
        r"\S+",
        "a all an and are at can contents current date directory do every file files folder folders for from"
        " have here i in inside into is it list look me my of on open our please print read save search show"
        " tell text that the there these this those time to was we what what's where which with word write"
        " you your",
    )
)
_PARTS = re.compile(r"\b(?:and|then|also|afterwards)\b|[.;,!?]\s|\n", re.IGNORECASE)
_NUMBERS = re.compile(r"(?<![\w.])-?\d{1,12}(?:\.\d{1,6})?(?!\w)")
_QUOTED = re.compile(r'"([^"\[\]\n]+)"|“([^”\[\]\n]+)”|`([^`\[\]\n]+)`')


def gbnf(phrases: Sequence[Phrase], request: str = "") -> str:
    """GBNF for as many lines as the request has parts, each one of `phrases`; the line of a
    capability that ends the turn only as the last. Empty without phrases."""
    if not phrases:
        return ""
    slots = _Slots(request)
    steps = [_line(p, slots) for p in phrases if not p.capability.ends_turn]
    ends = [_line(p, slots) for p in phrases if p.capability.ends_turn]
    last = "step | end" if steps and ends else "step" if steps else "end"
    # A small model does not know when to end: asked for one thing it would do it four times.
    more = min(MOST_LINES - 1, len(_PARTS.findall(request.strip()))) if request else MOST_LINES - 1
    lead = f'(step "\\n"){{0,{more}}} ' if steps and more else ""
    rules = [f"root ::= {lead}({last})"]
    rules += [f"{name} ::= {' | '.join(lines)}" for name, lines in (("step", steps), ("end", ends)) if lines]
    # A free text begins with a letter, a digit or a sign, so that it is never blank.
    rules += [f"free ::= [^\\[\\] \\t\\r\\n] [^\\[\\]\\r\\n]{{0,{MOST_CHARACTERS - 1}}}"]
    rules += ['whole ::= "0" | [1-9] [0-9]{0,8}', 'number ::= "-"? whole ("." [0-9]{1,6})?']
    return "\n".join(rules + slots.rules) + "\n"


def _line(phrase: Phrase, slots: _Slots) -> str:
    pieces: list[str] = []
    for literal, name in zip(phrase.literals, (*phrase.properties, ""), strict=True):
        written = ("]" if pieces else "") + literal + ("[" if name else "")
        pieces += [_literal(written)] if written else []
        pieces += [slots.of(phrase.capability, name)] if name else []
    return " ".join(pieces)


class _Slots:
    """What may stand in the slots of one request's lines."""

    def __init__(self, request: str) -> None:
        words = re.findall(r"\S+", request)[:MOST_WORDS]
        self._copied = _spans(words)
        self._paths = _paths(request, words) if self._copied else []
        self._numbers = list(dict.fromkeys(_NUMBERS.findall(request)))

    def of(self, capability: Capability, name: str) -> str:
        parameters = capability.parameters
        required = name in (parameters.get("required") or ())
        schema: Mapping[str, Json] = parameters["properties"][name]
        if "enum" in schema or "const" in schema:
            forms = [_literal(encode(option)) for option in schema.get("enum") or [schema["const"]]]
        else:
            text = "free" if capability.ends_turn else self._text(name, schema, required)
            forms = self._forms(types_of(schema, parameters) or {"string"}, text)
        if not required:
            default = schema.get("default")
            forms.insert(0, _literal("" if default is None else encode(default)))
        return f"({' | '.join(dict.fromkeys(forms))})"

    def _forms(self, types: Set[str], text: str) -> list[str]:
        forms: list[str] = []
        if types & {"number", "integer"}:
            whole = "number" not in types
            copied = [_literal(n) for n in self._numbers if not (whole and "." in n)]
            forms += copied or ['"-"? whole' if whole else "number"]
        if "boolean" in types:
            forms += ['"true" | "false"']
        if text and ("string" in types or not forms):
            forms.append(text)
        return forms

    def _text(self, name: str, schema: Mapping[str, Json], required: bool) -> str:
        """The rule for a text: a path where one is named, else a span of words, else anything."""
        if not self._copied:
            return "free"
        if schema.get("format") != "path" and name.rpartition("_")[2] != "path":
            return "span"
        if self._paths:
            return "path"
        return "span" if required else ""

    @property
    def rules(self) -> list[str]:
        return self._copied + self._paths


def _literal(text: str) -> str:
    return '"' + re.sub(r'[\x00-\x1f\x7f"\\]', lambda m: f"\\x{ord(m[0]):02X}", text) + '"'


def _spans(words: Sequence[str]) -> list[str]:
    """Rules for `span`: any words that follow each other.

    Quotation marks around a span and the punctuation after it are left out, inside they stay; a
    word with a bracket in it is not copied, because a slot could not hold it.
    """
    rules: list[str] = []
    starts: list[str] = []
    for at, word in enumerate(words):
        if _copied(word):
            goes_on = at + 1 < len(words) and _copied(words[at + 1])
            starts.append(f"b{at}")
            rules.append(_chain(f"b{at}", _begun(word), at, goes_on))
            if at > 0 and _copied(words[at - 1]):
                rules.append(_chain(f"w{at}", word, at, goes_on))
    return [f"span ::= {' | '.join(starts)}", *rules] if starts else []


def _chain(name: str, word: str, at: int, goes_on: bool) -> str:
    """From this word on: here the span ends, or it goes on with the next word."""
    ended = _literal(_ended(word))
    return f"{name} ::= {ended} | {_literal(word + ' ')} w{at + 1}" if goes_on else f"{name} ::= {ended}"


def _paths(request: str, words: Sequence[str]) -> list[str]:
    """The rule for `path`: one word that may be a name, or what stands in quotation marks. A folder
    called "files" or "my notes" has to be quoted."""
    quoted = [text for pair in _QUOTED.findall(request) for text in pair if text.strip()]
    single = [_ended(_begun(word)) for word in words if _copied(word)]
    names = dict.fromkeys([word for word in single if word.casefold() not in _NO_PATHS] + quoted)
    return [f"path ::= {' | '.join(map(_literal, names))}"] if names else []


def _copied(word: str) -> bool:
    return not re.search(r"[\[\]\x00-\x1f\x7f]", word) and bool(_ended(_begun(word)))


def _begun(word: str) -> str:
    return word.lstrip(_OPENERS)


def _ended(word: str) -> str:
    """The word as the last of a span: `README.md?` is `README.md`, `"Hello!".` is `Hello!`."""
    bare = word.rstrip(_FULL_STOPS + _CLOSERS)
    closed = word.rstrip(_FULL_STOPS)
    if closed and closed[-1] in _CLOSERS:
        bare = closed.rstrip(_CLOSERS)
    return bare
