"""The values of `script`: string literals, words, lists and objects, variables, patterns.

Everything is evaluated to JSON data. A variable that holds media stands for `$name`, by which it
travels with a message.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from textor.arguments import ArgumentError, parse_json
from textor.dialects.near import excerpt, nearest
from textor.dialects.script_patterns import Inner, Unclear
from textor.near import did_you_mean
from textor.values import Json, Value

#: Nesting of lists and objects, and of patterns in patterns.
DEEPEST = 50
#: A literal longer than this is not tried as a program (`text_of`).
LONGEST_PROGRAM = 200_000

VARIABLE = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
#: Names that the machine gives to fenced blocks and results: never meant as text.
_GIVEN = re.compile(r"code_\w+_\d+|last", re.ASCII)
_WORDS: dict[str, Json] = {
    "True": True, "true": True, "False": False, "false": False, "None": None, "null": None,
}  # fmt: skip
_INTEGER = re.compile(r"[+-]?\d{1,4000}", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:\d{1,400}\.\d{0,400}|\.\d{1,400}|\d{1,400}(?=[eE]))(?:[eE][+-]?\d{1,3})?", re.ASCII
)
_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r?\n)|(?P<octal>[0-7]{1,3})|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|(?P<one>.))",
    re.DOTALL,
)
_ONE = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f",
    "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


class Scope:
    """What names mean while one reply is read: the agent's variables, and inner patterns."""

    def __init__(self, variables: Mapping[str, Json | Value], patterns: Sequence[Inner] = ()) -> None:
        self._variables = dict(variables)
        self._patterns = patterns

    def define(self, name: str, value: Json) -> None:
        self._variables[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._variables

    def variable(self, name: str) -> Json:
        value = self._variables[name]
        if not isinstance(value, Value):
            return value
        return value.text if value.kind == "text" and value.text is not None else f"${name}"

    def word(self, text: str, depth: int = 0) -> Json:
        """The value of a text without quotes. Raises `Unclear`."""
        if text in self:
            return self.variable(text)
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if depth < DEEPEST:
            for pattern in self._patterns:
                if (groups := pattern.match(text)) is not None:
                    inner = {
                        key: part if key in pattern.quoted else self.inner(part, depth + 1)
                        for key, part in groups.items()
                    }
                    return pattern.value(inner)
        raise self._unclear(text)

    def inner(self, text: str, depth: int = 0) -> Json:
        """A text that may be an expression and otherwise stands for itself."""
        try:
            return self._literal(text) if text[:1] in ("'", '"') else self.word(text, depth)
        except Unclear:
            return text

    def bare(self, text: str) -> Json:
        """The one string of a function, written without quotes: a variable, or itself."""
        if text in self:
            return self.variable(text)
        if _GIVEN.fullmatch(text) or ("_" in text and VARIABLE.fullmatch(text) and self._near(text)):
            raise self._unclear(text)
        if any(pattern.match(text) is not None for pattern in self._patterns):
            return self.word(text)
        return text

    def structure(self, text: str) -> Json:
        """A list or an object, as JSON or as Python writes it. Raises `Unclear`."""
        try:
            value, end = parse_json(text)
            if not text[end:].strip():
                return value
        except ArgumentError:
            pass
        try:
            return self._walk(_parsed(text, "eval").body)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise Unclear(
                f"{excerpt(text)} is neither JSON nor a Python list or dict", 'Write [1, "a"] or {"key": 1}.'
            ) from None

    def _literal(self, text: str) -> Json:
        value = self.structure(text)
        if isinstance(value, str):
            return value
        raise Unclear("no text")

    def _walk(self, node: ast.AST, depth: int = 0) -> Json:
        """Python's literals, with variables and `+` between texts. `ValueError` for the rest."""
        if depth > DEEPEST:
            raise ValueError("too deep")
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool, type(None))):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._walk(item, depth + 1) for item in node.elts]
        if isinstance(node, ast.Dict):
            values = [self._walk(value, depth + 1) for value in node.values]
            return dict(zip(map(self._key, node.keys), values, strict=True))
        if isinstance(node, ast.Name):
            return self.word(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._walk(node.operand, depth + 1)
            if isinstance(value, (int, float)):
                return -value
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return joined([self._walk(node.left, depth + 1), self._walk(node.right, depth + 1)])
        raise ValueError("no literal")

    def _key(self, node: ast.AST | None) -> str:
        key = self._walk(node, 1) if node is not None else None
        if not isinstance(key, str):
            raise ValueError("a key is no text")
        return key

    def _near(self, text: str) -> tuple[str, ...]:
        return nearest(text, self._variables)

    def _unclear(self, text: str) -> Unclear:
        if not VARIABLE.fullmatch(text):
            return Unclear(f"{excerpt(text)} is no value", "Text stands in quotation marks.")
        near = did_you_mean(self._near(text))
        hint = near or f'Did you mean "{text}", in quotation marks?'
        return Unclear(f"there is no variable {text}", hint)


def joined(terms: Sequence[Json]) -> Json:
    """The value of `a + b + …`: one term as it is, several only if all are texts."""
    if len(terms) == 1:
        return terms[0]
    for term in terms:
        if not isinstance(term, str):
            raise Unclear(f"+ joins texts, and {excerpt(term)} is none", "Write a number in quotation marks.")
    return "".join(terms)


def media(kind: str, source: Json) -> dict[str, Json]:
    """`<Image|source|Image>`, also under AIlice's own name `AImage`."""
    return {"kind": re.sub(r"^A(?=[A-Z])|Location$", "", kind).lower(), "source": source}


def unescape(text: str) -> str:
    """The escapes of Python's string literals; an unknown escape stays as it is written."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_escape, text)
    if any("\ud800" <= c <= "\udfff" for c in plain):
        plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return plain


def _escape(found: re.Match[str]) -> str:
    if found["line"]:
        return ""
    for group, base in (("octal", 8), ("x", 16), ("u", 16), ("U", 16)):
        if found[group]:
            code = int(found[group], base)
            return chr(code) if code <= 0x10FFFF else found[0]
    return _ONE.get(found["one"], found[0])


def text_of(written: str, quote: Literal["'", '"', "'''", '"""'] | str) -> str:
    """What a string literal means.

    Its escapes are Python's. Where that would break a program, and the text as it is written is
    one, the text as it is written was meant: `\"\"\"print("a\\nb")\"\"\"` is the program that prints
    two lines, not one whose quotation is broken by a line end (case R10).
    """
    plain = unescape(written)
    if plain == written or len(written) > LONGEST_PROGRAM or not ("'" in written or '"' in written):
        return plain
    if ("\n" in plain or "\r" in plain) and not _compiles(plain) and _compiles(written):
        return written
    return plain


def _parsed(text: str, mode: str) -> Any:
    """Python's own reading of a text, without its remarks about style."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text.strip(), mode=mode)


def _compiles(text: str) -> bool:
    try:
        _parsed(text, "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
