"""The grammar of the plan dialect: which lines a local model can write for a request."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.actions import Capability, Catalogue
from textor.dialects.plan import Plan
from textor.dialects.port import ActionRead
from textor.values import Json


def capability(
    title: str, phrase: str, required: tuple[str, ...] = (), ends: bool = False, **p: Json
) -> Capability:
    schema = {"type": "object", "properties": p, "required": list(required)}
    return Capability(title, "", schema, phrases=(phrase,), ends_turn=ends)


TEXT = {"type": "string"}
LIST = capability("list", "list files in []", path={"type": "string", "default": "."})
FIND = capability("find", "find []", ("text",), text=TEXT)
WAIT = capability("wait", "wait [] seconds", ("seconds",), seconds={"type": "number"})
PAINT = capability("paint", "paint it []", ("colour",), colour={"enum": ["red", "blue"]})
RESPOND = capability("respond", "say []", ("text",), True, text=TEXT)
ALL = (LIST, FIND, WAIT, PAINT, RESPOND)


class Language:
    """The grammar as a regular expression: no rule of it calls itself."""

    def __init__(self, request: str, capabilities: tuple[Capability, ...] = ALL) -> None:
        grammar = Plan().grammar(capabilities, request)
        assert grammar is not None
        self.rules = dict(line.split(" ::= ", 1) for line in grammar.gbnf.splitlines())
        self.pattern = re.compile(self._expanded(self.rules["root"]))

    def _expanded(self, rule: str) -> str:
        pieces = re.findall(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-z][a-z0-9]*|\{[\d,]+\}|[|()?]', rule)
        return "".join(map(self._piece, pieces))

    def _piece(self, piece: str) -> str:
        if piece[0] == '"':
            return "(?:" + re.escape(re.sub(r"\\x(..)|\\n", self._sign, piece[1:-1])) + ")"
        if piece[0].isalpha():
            return f"(?:{self._expanded(self.rules[piece])})"
        return "(?:" if piece == "(" else piece

    @staticmethod
    def _sign(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else "\n"

    def __contains__(self, text: str) -> bool:
        return self.pattern.fullmatch(text) is not None


def test_spans_of_the_request_are_copied() -> None:
    language = Language('Find "open issue" in README.md, please?')
    for span in ("Find", "open issue", 'open issue" in README.md', "README.md", "in README.md, please"):
        assert f"find [{span}]" in language
    for other in ("issue open", "README", "something", "", '"open issue"', "please?"):
        assert f"find [{other}]" not in language


def test_a_path_is_one_word_or_quoted() -> None:
    language = Language('what is in src/main.py and "my notes.txt"?')
    for path in (".", "src/main.py", "my notes.txt"):
        assert f"list files in [{path}]" in language
    for path in ("in src/main.py", "notes", "is in", "what", ""):
        assert f"list files in [{path}]" not in language


def test_a_word_that_only_points_is_no_path() -> None:
    for asked in ("list the files in this folder", "What files are here?"):
        assert "list files in [.]" in Language(asked)
        for path in ("folder", "this", "files", "here"):
            assert f"list files in [{path}]" not in Language(asked)
    assert "list files in [files]" in Language('list the files in "files"')


def test_numbers_are_those_of_the_request_or_any() -> None:
    assert "wait [5] seconds" in Language("wait 5 seconds or 2.5")
    assert "wait [2.5] seconds" in Language("wait 5 seconds or 2.5")
    assert "wait [6] seconds" not in Language("wait 5 seconds or 2.5")
    assert "wait [6] seconds" in Language("wait six seconds")
    assert "wait [06] seconds" not in Language("wait six seconds")


def test_choices_and_free_text() -> None:
    language = Language("hello")
    assert "paint it [red]" in language
    assert "paint it [green]" not in language
    assert "say [How are you?]" in language
    for text in ("", " x", "a]b", "a\nb", "x" * 201):
        assert f"say [{text}]" not in language


def test_as_many_lines_as_the_request_has_parts() -> None:
    one, three = "find [x]", "find [x]\nlist files in [.]\nsay [ok]"
    assert one in Language("x") and three not in Language("x")
    assert three in Language("find x, then list the files and say ok")
    assert "say [ok]\nfind [x]" not in Language("find x, then list the files and say ok")


def test_without_a_request_texts_are_free() -> None:
    assert "find [anything at all]" in Language("")
    assert Plan().grammar(()) is None


@pytest.mark.parametrize(
    "request_", ["[]", '"', "\\", 'a\\"b \\n', "“x”", "\x01 \x7f", "?? !", "日本語 です"]
)
def test_strange_requests_still_give_lines(request_: str) -> None:
    assert "list files in [.]" in Language(request_)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(str.strip))
def test_every_word_can_be_copied_and_read_back(request_: str) -> None:
    language = Language(request_, (FIND,))
    for word in request_.split():
        line = f"find [{word}]"
        if word.isalnum():
            assert line in language
            (event,) = (*(parser := Plan().parser(Catalogue((FIND,)))).feed(line), *parser.close("stop"))
            assert isinstance(event, ActionRead) and event.action.arguments == {"text": word}
