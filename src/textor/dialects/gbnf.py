"""Pieces of GBNF that the grammars of several dialects share."""

from __future__ import annotations

import json
from collections.abc import Sequence

#: JSON without white space outside strings but one blank behind commas and colons.
JSON_RULES = r"""value ::= object | array | jstring | number | "true" | "false" | "null"
object ::= "{" (member (", " member)*)? "}"
member ::= jstring ": " value
array ::= "[" (value (", " value)*)? "]"
jstring ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\nt])* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,15})?
"""


def literal(text: str) -> str:
    """A text as a GBNF string."""
    return json.dumps(text, ensure_ascii=False)


def choice(forms: Sequence[str]) -> str:
    return " | ".join(forms)
