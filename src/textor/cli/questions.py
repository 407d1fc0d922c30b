"""What a person is asked: may this action run, and what an agent wants to know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from textor import events as e
from textor.actions import Action
from textor.cli.story import call_block
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.session import Session

PROMPT = "Allow it? [y]es, [n]o, [e]dit, [a]lways, yes for this [s]ession: "


REVIEW = "Let it act? [y]es, [e]dit, or a remark and it is asked again: "


class Question(NamedTuple):
    """One open question. `key` is the action at the gate, or the key of an agent's question."""

    kind: Literal["gate", "agent", "review"]
    key: str
    text: str
    agent: str = "main"
    action: Action | None = None
    digest: str = ""
    secret: bool = False  #: the answer is typed unseen and kept nowhere
    draft: str = ""  #: the reply on one line, for editing

    @property
    def prompt(self) -> str:
        return {"gate": PROMPT, "review": REVIEW}.get(self.kind, "Your answer: ")


class Answer(NamedTuple):
    """A person's word at the gate; `edit` asks for other arguments first."""

    allow: bool
    scope: Literal["once", "session", "always"] = "once"
    reason: str = ""
    edit: bool = False


def at_the_gate(body: e.ActionJudged, action: Action) -> Question:
    """The question about an action that waits: the exact call and why it waits."""
    text = f"{call_block(action)}\nThis waits for you: {body.reason}."
    return Question("gate", body.action, text, body.agent, action, body.digest)


def of_an_agent(body: e.Asked) -> Question:
    text = f"{body.agent} asks: {body.question}"
    return Question("agent", body.key, text, body.agent, secret=body.secret)


def of_a_reply(key: str, body: e.GenerationFinished) -> Question:
    """The question about a reply that waits: what it says and what it would do."""
    from textor.record.review import draft_of

    blocks = [call_block(action) for action in body.actions]
    text = "\n".join([f"{body.agent} replies:", body.message.text.rstrip(), *blocks])
    draft = msgspec.json.encode(draft_of(body)).decode()
    return Question("review", key, f"{text}\nThis waits for you.", body.agent, draft=draft)


async def review(session: Session, question: Question, line: str) -> bool:
    """Hand a person's word on a reply on; False when it asks to edit it first."""
    word = line.strip().lower().rstrip(".")
    if word in ("y", "yes", "a", "accept"):
        await session.review(question.agent, "accept")
    elif word in ("e", "edit"):
        return False
    else:
        await session.review(question.agent, "again", remark=line.strip())
    return True


def parse_answer(text: str) -> Answer | None:
    """ "y", "yes", "n", "no because …", "e", "s", "a"; None for anything else."""
    word, _, rest = text.strip().partition(" ")
    reason = rest.strip()
    match word.lower().rstrip(",:;."):
        case "y" | "yes" if not reason:
            return Answer(True)
        case "s" | "session" if not reason:
            return Answer(True, "session")
        case "a" | "always" if not reason:
            return Answer(True, "always")
        case "e" | "edit" if not reason:
            return Answer(True, edit=True)
        case "n" | "no":
            return Answer(False, reason=reason)
    return None


def arguments_text(action: Action) -> str:
    """The arguments on one line, for editing."""
    return json.dumps(action.arguments, ensure_ascii=False)


def parse_arguments(text: str) -> dict[str, Any]:
    """Edited arguments. Raises `UseError` that says what is wrong."""
    try:
        arguments = json.loads(text)
    except json.JSONDecodeError as error:
        raise UseError(f"This is not valid JSON: {error.msg} at character {error.pos + 1}.") from None
    if not isinstance(arguments, dict):
        raise UseError('The arguments must be a JSON object, such as {"path": "notes.txt"}.')
    return arguments
