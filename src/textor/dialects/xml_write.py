"""What `xml` writes: blocks of actions, results, what is taught of them, and the grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set

from textor.actions import Action, Capability, Outcome
from textor.arguments import ArgumentError, convert, describe, types_of
from textor.dialects.gbnf import JSON_RULES, choice, literal
from textor.dialects.names import Names
from textor.dialects.outcomes import outcome_text
from textor.errors import UseError
from textor.secrets import SECRET_NAME
from textor.values import Json

_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_NOT_NAME = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
#: A text that can be an attribute as it is.
_SIMPLE = re.compile(r"[^\"'&<>\x00-\x1f\x7f-\x9f\u2028\u2029]{0,60}")
#: Names that are not those of actions.
_OURS = frozenset(["actions", "context"])
MASK = "********"
#: Characters of an argument that are shown again beside its result.
SHOWN = 200


def xml_name(name: str) -> str:
    """A capability's name as an element's name; `files.list` stays as it is."""
    plain = _NOT_NAME.sub("_", name)
    return plain if _ELEMENT.match(plain) and plain.lower() not in _OURS else f"_{plain}"


def xml_names(names: Iterable[str]) -> Names:
    return Names(names, xml_name, 100)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- actions -------------------------------------------------------------------------------


def written(actions: Sequence[Action], capabilities: Sequence[Capability]) -> str:
    """One `<actions>` block. Raises `UseError` for what it cannot carry."""
    by_name = {c.name: c for c in capabilities}
    names = xml_names([*by_name, *(a.capability for a in actions)])
    lines = [_action(names.wire(a.capability), a, by_name.get(a.capability)) for a in actions]
    return "\n".join(["<actions>", *lines, "</actions>"])


def _action(name: str, action: Action, capability: Capability | None) -> str:
    attributes, elements = "", ""
    parameters = capability.parameters if capability else {}
    properties = parameters.get("properties") or {}
    for key, value in action.arguments.items():
        if not _ELEMENT.fullmatch(key):
            raise UseError(f"The xml dialect cannot write {action.capability}: `{key}` is no name in XML.")
        types = types_of(properties.get(key, {}), parameters)
        texts = _texts(value, types)
        if capability is not None:
            _check(action, key, texts, properties.get(key, {}), parameters)
        if len(texts) == 1 and _SIMPLE.fullmatch(texts[0]):
            attributes += f' {key}="{texts[0]}"'
        else:
            elements += "".join(f"\n  <{key}>{carried(text)}</{key}>" for text in texts)
    return f"<{name}{attributes}>{elements}\n</{name}>" if elements else f"<{name}{attributes}/>"


def _texts(value: Json, types: Set[str]) -> list[str]:
    """The texts of the elements that stand for a value: one for each item of a list of texts that
    are not blank; an empty element is an empty list."""
    if isinstance(value, str):
        return [value]
    texts = isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)
    if texts and len(value) > 1 and types == {"array"}:
        return list(value)
    return [json.dumps(value, ensure_ascii=False)]


def _check(action: Action, key: str, texts: list[str], schema: Json, parameters: dict[str, Json]) -> None:
    """Whether the value comes back as it is: only a schema tells a number from its text."""
    if len(texts) > 1 or (
        isinstance(action.arguments[key], str) and "string" in types_of(schema, parameters)
    ):
        return
    one = {"$defs": parameters.get("$defs", {}), "properties": {key: schema}, "required": [key]}
    try:
        same = convert({key: texts[0]}, one)[key] == action.arguments[key]
    except ArgumentError:
        same = False
    if not same and not isinstance(action.arguments[key], str):
        what = f"`{key}` would come back as another value, because its schema does not tell its type"
        raise UseError(f"The xml dialect cannot write {action.capability}: {what}.")


def carried(text: str) -> str:
    """A text as the content of its element; the parser gives it back byte for byte."""
    body = f"\n{text}\n" if "\n" in text else text
    if "<" not in text and "&" not in text:
        return body
    return "<![CDATA[" + body.replace("]]>", "]]]]><![CDATA[>") + "]]>"


# -- results -------------------------------------------------------------------------------


def results(outcomes: Sequence[tuple[Action, Outcome]]) -> str:
    """The actions again, with their results as text behind the last parameter (after SIA)."""
    names = xml_names(action.capability for action, _ in outcomes)
    lines = [_result(names.wire(action.capability), action, outcome) for action, outcome in outcomes]
    return "\n".join(["<previous>", "<actions>", *lines, "</actions>", "</previous>"])


def _result(name: str, action: Action, outcome: Outcome) -> str:
    """The parameters as they are written: one text as an attribute, more as elements. What is empty
    was mostly left out, and is left out."""
    attributes, elements = "", ""
    for key, given in action.arguments.items():
        plain, value = _NOT_NAME.sub("_", key), _masked(given)
        if isinstance(value, list) and len(value) > 1 and all(isinstance(v, str) for v in value):
            one = plain.removesuffix("s")
            elements += "".join(f"\n  <{one}>{escaped(_short(text))}</{one}>" for text in value)
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            attributes += f' {plain}="{_quoted(value[0])}"'
        elif value not in ("", [], {}, None):
            attributes += f' {plain}="{_quoted(value)}"'
    return f"<{name}{attributes}>{elements}\n{escaped(outcome_text(outcome))}\n</{name}>"


def _masked(value: Json) -> Json:
    """Texts whose names call them secrets (an environment) are not shown again."""
    if not isinstance(value, dict):
        return value
    return {k: MASK if isinstance(v, str) and SECRET_NAME.search(k) else v for k, v in value.items()}


def _quoted(value: Json) -> str:
    return escaped(_short(value)).replace('"', "&quot;").replace("\n", "&#10;")


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


# -- what is taught ------------------------------------------------------------------------

_HOW = """To act, end your reply with one block of actions, not in a code fence. Before it, write freely.
<actions>
"""
_RULES = """
</actions>
A parameter is an attribute or a child element; a list is its element repeated, an object holds an element for
each name. Write text with < or & as <name><![CDATA[text]]></name>. Only the last block counts: to correct
yourself, write a whole new one.
The results come back. Never write <context> or results yourself.

Actions:
"""


def teach(capabilities: Sequence[Capability]) -> str:
    names = xml_names(c.name for c in capabilities)
    lines = [f"{_form(names.wire(c.name), c)} {c.purpose}" for c in capabilities]
    return _HOW + _example(capabilities) + _RULES + "\n".join(lines)


def _form(name: str, capability: Capability) -> str:
    """`<files.read path="string" first="integer, optional"/>`"""
    parameters = capability.parameters
    required = parameters.get("required") or ()
    written = [
        f'{key}="{describe(schema, parameters, article=False)}{"" if key in required else ", optional"}"'
        for key, schema in (parameters.get("properties") or {}).items()
    ]
    return f"<{' '.join([name, *written])}/>"


def _example(capabilities: Sequence[Capability]) -> str:
    """An action that is there: two parameters if possible, the last of them as CDATA."""
    fitting = [(c, texts) for c in capabilities if (texts := _required_texts(c))]
    if not fitting:
        return '<write path="a.txt">\n  <text><![CDATA[1 < 2]]></text>\n</write>'
    capability, texts = max(fitting, key=lambda pair: min(len(pair[1]), 2))
    name = xml_names(c.name for c in capabilities).wire(capability.name)
    attributes = "".join(f' {key}="…"' for key in texts[:-1])
    return f"<{name}{attributes}>\n  <{texts[-1]}><![CDATA[1 < 2]]></{texts[-1]}>\n</{name}>"


def _required_texts(capability: Capability) -> list[str]:
    """The required parameters if all are texts."""
    parameters = capability.parameters
    properties = parameters.get("properties") or {}
    required = [key for key in properties if key in (parameters.get("required") or ())]
    texts = [key for key in required if types_of(properties[key], parameters) == {"string"}]
    return texts if texts == required else []


# -- the grammar ---------------------------------------------------------------------------

#: An answer holds no block; before a block nothing is quoted, and it begins a line.
_ANSWER = 'answer ::= ([^<] | "<" [^acA])*\n'
_GRAMMAR = """root ::= thought block | answer
thought ::= ([^<>`~[\\n]* "\\n")*
block ::= "<actions>\\n" (action "\\n")+ "</actions>"
text ::= ([^<&\\x00] | "&lt;" | "&amp;")*
"""


def gbnf(capabilities: Sequence[Capability]) -> str:
    """Prose, then at most one block with parameters of the types that their schemas ask for."""
    names = xml_names(c.name for c in capabilities)
    if not capabilities:
        return "root ::= answer\n" + _ANSWER
    actions = choice([_rule(names.wire(c.name), c) for c in capabilities])
    return _GRAMMAR + _ANSWER + f"action ::= {actions}\n" + JSON_RULES


def _rule(name: str, capability: Capability) -> str:
    parameters = capability.parameters
    required = parameters.get("required") or ()
    properties: Mapping[str, Json] = parameters.get("properties") or {}
    slots: list[str] = []
    for key, schema in properties.items():
        if _ELEMENT.fullmatch(key):
            slot = (
                f"{literal(f'<{key}>')} {_slot(schema, types_of(schema, parameters))} {literal(f'</{key}>')}"
            )
            slots.append(slot if key in required else f"({slot})?")
    return " ".join([literal(f"<{name}>"), *slots, literal(f"</{name}>")])


def _slot(schema: Json, types: Set[str]) -> str:
    if isinstance(schema, dict) and ("enum" in schema or "const" in schema):
        members = schema.get("enum") or [schema["const"]]
        return f"({choice([literal(escaped(m if isinstance(m, str) else json.dumps(m))) for m in members])})"
    forms = [_FORMS[type_] for type_ in _FORMS if type_ in types]
    return f"({choice(forms)})" if forms else "text"


_FORMS = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": '"true" | "false"',
    "null": '"null"',
    "array": "array",
    "object": "object",
}
