"""What `script` writes: calls, what is taught of them, and the grammar for local models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set

from textor.actions import Action, Capability
from textor.arguments import types_of
from textor.dialects.gbnf import JSON_RULES, choice, literal
from textor.dialects.names import script_names
from textor.dialects.near import signature
from textor.values import Json

#: A text that stands in quotation marks as it is; every other is written as a block.
_SIMPLE = re.compile(r"[^\"\\\x00-\x1f\x7f-\x9f\u2028\u2029]{0,200}")
_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}", re.ASCII)
#: The label of the blocks that are taught.
LABEL = "END"

_HOW = """To act, write a call, outside code fences. The reply ends there; the result comes back.
!NAME<!|argument, name=argument|!>
An argument is "text", 'text' or \"""text\""" (escapes as in Python), a number, True, False, None, [1, "a"], \
{"a": 1}, a variable, or "text" + variable. Calls do not stand in calls.
Code and long text stand in a block, unchanged, under a label that is no line of them:
"""
_VARIABLES = """
name := <!|"text"|!> keeps a text in a variable, !PRINT<!|name|!> shows it.

Calls:
"""


def call_form(name: str, capability: Capability) -> str:
    """`FILES-READ<!|path: string, first?: integer = 1|!>`"""
    return f"{name}<!|{signature('', capability.parameters)[1:-1]}|!>"


def teach(capabilities: Sequence[Capability]) -> str:
    names = script_names(c.name for c in capabilities)
    lines = [f"!{call_form(names.wire(c.name), c)}: {c.purpose}" for c in capabilities]
    return _HOW + _example(capabilities) + _VARIABLES + "\n".join(lines)


def _example(capabilities: Sequence[Capability]) -> str:
    """A call with a block, of a capability that is there and takes one text, if any does."""
    names = script_names(c.name for c in capabilities)
    fitting = [c for c in capabilities if len(_texts(c)) == 1 == len(c.parameters.get("properties") or {})]
    by_code = sorted(fitting, key=lambda c: "execute" not in c.effects)
    name = names.wire(by_code[0].name) if by_code else "PYTHON"
    code = 'print("hello")' if "PYTHON" in name else 'echo "hello"'
    return f"!{name}<!|<<{LABEL}\n{code}\n{LABEL}|!>"


def _texts(capability: Capability) -> list[str]:
    properties: Mapping[str, Json] = capability.parameters.get("properties") or {}
    return [n for n, schema in properties.items() if "string" in types_of(schema, capability.parameters)]


# -- calls ---------------------------------------------------------------------------------


def written(actions: Sequence[Action], capabilities: Sequence[Capability]) -> str:
    by_name = {c.name: c for c in capabilities}
    names = script_names([*by_name, *(a.capability for a in actions)])
    return "\n".join(_call(names.wire(a.capability), a, by_name.get(a.capability)) for a in actions)


def _call(name: str, action: Action, capability: Capability | None) -> str:
    order = list((capability.parameters.get("properties") or {}) if capability else {})
    plain = 0
    while plain < len(order) and order[plain] in action.arguments:
        plain += 1
    arguments = [argument(action.arguments[key]) for key in order[:plain]]
    named = {key: value for key, value in action.arguments.items() if key not in order[:plain]}
    arguments += [f"{_keyword(key)}={argument(value)}" for key, value in named.items()]
    return f"!{name}<!|{', '.join(arguments)}|!>"


def _keyword(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def argument(value: Json) -> str:
    """One argument. A text that quotation marks would change becomes a block, under a label that
    the text does not hold."""
    if isinstance(value, str):
        if _SIMPLE.fullmatch(value):
            return f'"{value}"'
        label, number = LABEL, 1
        while label in value:
            number += 1
            label = f"{LABEL}{number}"
        return f"<<{label}\n{value}\n{label}"
    if value is None or isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


# -- the grammar ---------------------------------------------------------------------------

#: An answer holds no call; before a call nothing is quoted; a block's lines do not begin with
#: its label.
_ANSWER = 'answer ::= ([^<] | "<" [^!])*\n'
_RULES = f"""root ::= thought call | answer
thought ::= [^<>`~[]*
string ::= "\\"" ([^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\nt])* "\\""
block ::= "<<{LABEL}\\n" (line "\\n")* "{LABEL}"
line ::= ([^E\\n] [^\\n]* | "E" ([^N\\n] [^\\n]* | "N" ([^D\\n] [^\\n]*)?)?)?
text ::= string | block
"""


def gbnf(capabilities: Sequence[Capability]) -> str:
    """Prose, then at most one call with arguments of the types that its schema asks for."""
    names = script_names(c.name for c in capabilities)
    calls = [
        f"{literal(f'!{names.wire(c.name)}<!|')} {_slots(c)} {literal('|!>')}" if _slots(c) else
        literal(f"!{names.wire(c.name)}<!||!>")
        for c in capabilities
    ]  # fmt: skip
    if not calls:
        return "root ::= answer\n" + _ANSWER
    return _RULES + _ANSWER + f"call ::= {choice(calls)}\n" + JSON_RULES


def _slots(capability: Capability) -> str:
    """Required parameters by place while they come first, all others by name."""
    parameters = capability.parameters
    required = parameters.get("required") or ()
    properties: Mapping[str, Json] = parameters.get("properties") or {}
    slots: list[str] = []
    optional: list[str] = []
    by_place = True
    for name, schema in properties.items():
        slot = _slot(schema, types_of(schema, parameters))
        if name in required:
            lead = ", " if slots else ""
            lead += "" if by_place else f"{name}="
            slots.append(f"{literal(lead)} {slot}" if lead else slot)
        else:
            by_place = False
            optional.append(f"{literal(f'{name}=')} {slot}")
    if slots:
        return " ".join([*slots, *(f'(", " {form})?' for form in optional)])
    return f"({choice(optional)})?" if optional else ""


def _slot(schema: Json, types: Set[str]) -> str:
    if isinstance(schema, dict) and ("enum" in schema or "const" in schema):
        return f"({choice([literal(argument(m)) for m in schema.get('enum') or [schema['const']]])})"
    forms = [_FORMS[type_] for type_ in _FORMS if type_ in types]
    return f"({choice(forms)})" if forms else "text"


_FORMS = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": '"True" | "False"',
    "null": '"None"',
    "array": "array",
    "object": "object",
}
