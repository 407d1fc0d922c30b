"""Sentences of a GBNF grammar, drawn at random: what a model that is held to it can write."""

from __future__ import annotations

import random
import re

_TOKEN = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|\[((?:[^\]\\]|\\.)*)\]|([a-z][a-z-]*)|(\{\d+,\d*\})|([|()*+?]))'
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_ALPHABET = "aE NDt09.,:;<>|!&\"'\\[]{}=\n"


def _plain(text: str) -> str:
    return re.sub(
        r"\\(?:x([0-9a-fA-F]{2})|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]),
        text,
        flags=re.DOTALL,
    )


class Sampler:
    """`sentence()` gives one text of the language; long ones are rare."""

    def __init__(self, grammar: str, seed: int) -> None:
        self._rules = {}
        for line in grammar.strip().splitlines():
            name, _, body = line.partition(" ::= ")
            self._rules[name] = self._alternatives(self._tokens(body))
        self._random = random.Random(seed)
        self._depth = 0

    def sentence(self) -> str:
        return self._rule("root")

    # -- reading ---------------------------------------------------------------------------

    def _tokens(self, body: str) -> list[tuple[str, str]]:
        found, at = [], 0
        while body[at:].strip():
            token = _TOKEN.match(body, at)
            assert token, f"no GBNF: {body[at:]}"
            kind = ("text", "set", "rule", "range", "sign")[(token.lastindex or 1) - 1]
            found.append((kind, token[token.lastindex or 1]))
            at = token.end()
        return found[::-1]  # a stack

    def _alternatives(self, tokens: list[tuple[str, str]]) -> list[list[tuple[str, object, str]]]:
        choices: list[list[tuple[str, object, str]]] = [[]]
        while tokens:
            kind, text = tokens.pop()
            if (kind, text) == ("sign", ")"):
                break
            if (kind, text) == ("sign", "|"):
                choices.append([])
            elif (kind, text) == ("sign", "("):
                choices[-1].append(("group", self._alternatives(tokens), ""))
            elif kind in ("sign", "range"):
                kind_, value, _ = choices[-1].pop()
                choices[-1].append((kind_, value, text))
            else:
                choices[-1].append((kind, _plain(text) if kind == "text" else text, ""))
        return choices

    # -- drawing ---------------------------------------------------------------------------

    def _rule(self, name: str) -> str:
        self._depth += 1
        text = self._choice(self._rules[name])
        self._depth -= 1
        return text

    def _choice(self, choices: list[list[tuple[str, object, str]]]) -> str:
        items = self._random.choice(choices)
        if self._depth > 12:
            items = min(choices, key=len)
        return "".join(self._repeated(*item) for item in items)

    def _repeated(self, kind: str, value: object, times: str) -> str:
        signs = {"": (1, 1), "?": (0, 1), "*": (0, 3), "+": (1, 3)}
        least, most = signs.get(times) or (int(times[1]), int(times[1]) + 2)
        most = least if self._depth > 12 else most
        return "".join(self._one(kind, value) for _ in range(self._random.randint(least, most)))

    def _one(self, kind: str, value: object) -> str:
        if kind == "text":
            return str(value)
        if kind == "set":
            allowed = re.compile(f"[{value}]")
            return self._random.choice([c for c in _ALPHABET if allowed.match(c)])
        return self._rule(str(value)) if kind == "rule" else self._choice(value)  # type: ignore[arg-type]
