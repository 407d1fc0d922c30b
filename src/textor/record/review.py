"""A reply that waits at the gate, as a person edits it: the text, or the calls beside it.

What was edited is read by the agent's own dialect, as if the model had written it; so what runs is
what stands in the dialogue. Editing a response before its actions are executed is from the web
interface of the SIA document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from textor import events as e
from textor.actions import Action
from textor.dialects.names import tool_names
from textor.dialects.reader import Reader
from textor.errors import UseError
from textor.kernel.services import Services
from textor.kernel.state import AgentState
from textor.messages import CallChunk, Message, Part, Reasoning, TextChunk
from textor.values import content_of


class EditedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call beside the text, where calls are not written in it."""

    capability: str
    arguments: dict[str, Any] = {}


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reply as a person edits it. `calls` are native function calls; in dialects of text the
    actions stand in the text, and `calls` is empty."""

    text: str
    calls: tuple[EditedCall, ...] = ()


def waiting(agent: AgentState) -> e.GenerationFinished | None:
    """The reply of an agent that waits for a person, None when none does."""
    waits = agent.definition.review and agent.reply is not None and not agent.reviewed
    return agent.reply if waits else None


def draft_of(reply: e.GenerationFinished) -> Draft:
    """A reply as it can be edited."""
    calls = tuple(EditedCall(a.capability, a.arguments) for a in reply.actions if a.call_id)
    return Draft(reply.message.text, calls)


def parse_draft(text: str) -> Draft:
    """A draft from JSON. Raises `UseError` that says what is wrong."""
    try:
        return msgspec.json.decode(text, type=Draft)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UseError(
            f"The edited reply cannot be read: {str(error).rstrip('.')}.",
            'It is JSON such as {"text": "…", "calls": [{"capability": "files.read", "arguments": {…}}]}.',
        ) from None


def edited(services: Services, agent: AgentState, draft: Draft) -> e.ReplyReviewed:
    """The review that puts a draft in the place of the waiting reply.

    Raises `UseError` when none waits, or when the dialect does not understand the draft.
    """
    reply = agent.reply
    if reply is None or agent.reviewed:
        raise UseError(f"No reply of {agent.id} waits for a review.")
    offered = services.offered(agent.offered)
    variables = {
        name: content_of(v, services.journal.blobs).decode("utf-8", "replace") if v.kind == "text" else v
        for name, v in agent.variables.items()
    }
    dialect = services.dialect_of(agent)
    reader = Reader(dialect, offered, f"{agent.id}.{agent.iterations}", variables)
    if draft.text:
        reader.feed(TextChunk(draft.text))
    for chunk in _calls(draft.calls, reply.actions, agent):
        reader.feed(chunk)
    reading = reader.close("tool_calls" if draft.calls else "stop")
    if faults := [*reading.faults, *(a.fault for a in reading.actions if a.fault)]:
        raise UseError(f"The edited reply was not understood: {' '.join(faults)}")
    if not reading.actions and not reading.reply and not reading.think:
        raise UseError("The edited reply is empty.", "Write an answer or an action.")
    labels = agent.turn.labels if agent.turn else ()
    thoughts: list[Part] = [part for part in reply.message.parts if isinstance(part, Reasoning)]
    message = Message("assistant", (*thoughts, *reading.message.parts))
    actions = tuple(replace(action, labels=labels) for action in reading.actions)
    return e.ReplyReviewed(agent.id, "edit", message, actions, "" if actions else reading.reply)


def _calls(calls: Sequence[EditedCall], before: Sequence[Action], agent: AgentState) -> Sequence[CallChunk]:
    """The calls as a server would send them; those that were there keep their ids."""
    if calls and not agent.tools:
        raise UseError(f"{agent.id} writes its actions in the text.", "Edit the text instead.")
    names = tool_names(agent.offered)
    ids = [action.call_id for action in before if action.call_id]
    chunks: list[CallChunk] = []
    for n, call in enumerate(calls):
        if call.capability not in names:
            hint = f"It has: {', '.join(agent.offered)}."
            raise UseError(f"{agent.id} is not offered {call.capability!r}.", hint)
        id = ids[n] if n < len(ids) else f"call_edited_{agent.iterations}_{n}"
        arguments = msgspec.json.encode(call.arguments).decode()
        chunks.append(CallChunk(n, id, names.wire(call.capability), arguments))
    return chunks
