"""The commands that a face sends to a session, as JSON: one struct each, told apart by `kind`.

Every command carries an id of the sender's making, which becomes the id of its event: a sender
that heard no answer sends the same again, and it counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec

from textor.errors import UseError
from textor.events import Level, Limits
from textor.record.review import Draft

if TYPE_CHECKING:
    from textor.session import Session

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Words = Annotated[str, msgspec.Meta(min_length=1)]


class Create(msgspec.Struct, frozen=True):
    """A new session with its first message. "" = the default agent type, the default model.

    `id` becomes the session's: a creation that is sent again finds the session of the first.
    """

    id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{7,99}$")]
    text: Words
    agent: str = ""
    model: str = ""


class Command(msgspec.Struct, frozen=True, tag_field="kind"):
    id: Id


class Post(Command, frozen=True, tag="post"):
    text: Words
    agent: str = "main"


class Answer(Command, frozen=True, tag="answer"):
    """At the gate; `arguments` are the edited ones, None leaves them as they are. `digest` is that
    of the question which was shown (`events.ActionJudged`): an answer to another one is void."""

    action: Words
    allow: bool
    reason: str = ""
    scope: Literal["once", "session", "always"] = "once"
    arguments: dict[str, Any] | None = None
    digest: str = ""


class Review(Command, frozen=True, tag="review"):
    """Of a reply that waits: `draft` is its edited form, `remark` what to do otherwise."""

    agent: Words
    verdict: Literal["accept", "edit", "again"]
    draft: Draft | None = None
    remark: str = ""


class Reply(Command, frozen=True, tag="reply"):
    """To the question with this key; `secret` where it asked for one (`events.Asked.secret`)."""

    key: Words
    text: str
    secret: bool = False


class Control(Command, frozen=True, tag="control"):
    level: Level
    agent: str = "main"


class ChangeModel(Command, frozen=True, tag="model"):
    model: Words
    agent: str = "main"


class RaiseLimits(Command, frozen=True, tag="limits"):
    """Agent "" is the whole session."""

    limits: Limits
    agent: str = ""


T = TypeVar("T")
AnyCommand = Post | Answer | Review | Reply | Control | ChangeModel | RaiseLimits

_create = msgspec.json.Decoder(Create)
_command: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)


def read_create(body: bytes) -> Create:
    return _read(_create, body)


def read_command(body: bytes) -> AnyCommand:
    return _read(_command, body)


def _read(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Raises `UseError` with what is wrong and where."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # a ValidationError is a DecodeError
        raise UseError(f"The request cannot be read: {str(error).rstrip('.')}.") from None


async def perform(session: Session, command: AnyCommand) -> str:
    """Hand a command to the session; returns the id of its event, which is durable by then."""
    match command:
        case Post(id=id, text=text, agent=agent):
            return await session.post(text, agent, id=id)
        case Answer(id=id):
            return await session.answer(
                command.action,
                command.allow,
                reason=command.reason,
                scope=command.scope,
                arguments=command.arguments,
                digest=command.digest,
                id=id,
            )
        case Review(id=id, agent=agent, verdict="edit", draft=draft):
            if draft is None:
                raise UseError("An edited reply needs its draft.", 'Send {"text": "…", "calls": []}.')
            return await session.edit_reply(agent, draft, id=id)
        case Review(id=id, agent=agent, verdict=verdict, remark=remark):
            return await session.review(agent, verdict, remark=remark, id=id)
        case Reply(id=id, key=key, text=text, secret=secret):
            return await session.reply(key, text, secret=secret, id=id)
        case Control(id=id, level=level, agent=agent):
            return await session.control(level, agent, id=id)
        case ChangeModel(id=id, model=model, agent=agent):
            return await session.change_model(model, agent, id=id)
        case RaiseLimits(id=id, limits=limits, agent=agent):
            return await session.raise_limits(limits, agent, id=id)
