"""A module's question in the middle of a call, brought to the person through the session.

It is asked like any question (`events.Asked`), so every face shows it and the first answer counts.
A secret is asked for as such: the answer reaches the module and neither journal nor model.
"""

from __future__ import annotations

import json
import math

from textor import events as e
from textor.capabilities.modules.questions import Answer, Field, Question
from textor.capabilities.port import Scope as PortScope
from textor.secrets import KNOWN
from textor.tree.scope import Scope
from textor.values import Json

#: How often a secret is asked for that was given and did not arrive.
TRIES = 3
LOST = "What you gave was not kept and did not reach the process that runs this session; give it again. "

#: Answers by which a person says that nothing shall come of it.
NO = frozenset({"no", "decline", "cancel", "stop"})
_YES = frozenset({"yes", "y", "true", "on", "1"})


async def ask_person(question: Question, scope: PortScope | None) -> Answer:
    """The person's answer; "cancel" when nobody can be asked."""
    if not isinstance(scope, Scope) or not scope.state.attended:
        return Answer("cancel")
    text, lost = None, 0
    while text is None and lost < TRIES:
        text = await _answered(scope, question, LOST if lost else "")
        lost += 1
    return Answer("cancel") if text is None else read_answer(question, text)


async def _answered(scope: Scope, question: Question, remark: str) -> str | None:
    """Ask once; None where a secret answer was given and did not come here."""
    key = f"{scope.key}.{question.module}"
    n = 1
    while f"{key}.{n}" in scope.state.answers:  # a call may ask more than once
        n += 1
    key = f"{key}.{n}"
    asked = e.Asked("main", remark + told(question), key, secret=question.secret)
    await scope.post(asked, f"elicit {key}")
    answer = await scope.until(lambda state: state.answers.get(key))
    if not question.secret:
        return answer.text
    text = scope.secret(key)
    if text is not None:
        KNOWN.add(f"for {question.module}", text)  # a module that says it back says it masked
    return text


def told(question: Question) -> str:
    """The question as a person reads it."""
    lines = [f"The module {question.module} asks: {question.message}"]
    if question.url:
        lines.append(f"Open {question.url} and answer yes when you are done.")
    for field in question.fields:
        hints = [field.description, f"one of {', '.join(field.choices)}" if field.choices else ""]
        hint = "; ".join(h for h in hints if h)
        lines.append(f"- {field.title or field.name}{f' ({hint})' if hint else ''}")
    if len(question.fields) > 1:
        names = ", ".join(f'"{f.name}": …' for f in question.fields)
        lines.append(f"Answer with {{{names}}}, or no.")
    return "\n".join(lines)


def read_answer(question: Question, text: str) -> Answer:
    """What a person wrote, as the module wants it. What does not fit is a "decline"."""
    words = text.strip()
    if not question.fields:
        return Answer("decline" if words.lower() in NO else "accept")
    if words.lower() in NO and not (len(question.fields) == 1 and question.fields[0].kind == "yes or no"):
        return Answer("decline")
    if len(question.fields) == 1 and not words.startswith("{"):
        given: dict[str, Json] = {question.fields[0].name: words}
    else:
        try:
            given = json.loads(words)
        except ValueError:
            return Answer("decline")
    content: dict[str, Json] = {}
    for field in question.fields:
        if isinstance(given, dict) and field.name in given:
            value = _value(field, given[field.name])
            if value is None:
                return Answer("decline")
            content[field.name] = value
        elif field.default is not None:
            content[field.name] = field.default
        elif field.required:
            return Answer("decline")
    return Answer("accept", content)


def _value(field: Field, given: Json) -> Json:
    """One answer in the kind that is asked for; None when it cannot be that."""
    try:
        match field.kind:
            case "integer":
                return int(str(given))
            case "number":
                number = float(str(given))
                return number if math.isfinite(number) else None  # JSON holds no other
            case "yes or no":
                return given if isinstance(given, bool) else str(given).strip().lower() in _YES
            case "texts":
                several = given if isinstance(given, list) else str(given).split(",")
                texts = [str(text).strip() for text in several]
                return texts if not field.choices or set(texts) <= set(field.choices) else None
            case _:
                return str(given) if not field.choices or str(given) in field.choices else None
    except ValueError:
        return None
