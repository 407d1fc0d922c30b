"""A context as the body of an OpenAI chat request: the exact text, never rendered again.

The client library would re-serialise the arguments of old calls and join the parts of a text with
blank lines, which breaks the prompt cache of servers that compare bytes; so the body is made here
and handed to it whole.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from textor.errors import ModelError
from textor.messages import Context, Grammar, Media, Message, Reasoning, Text, ToolCall, ToolResult, ToolSpec
from textor.models.habits import Habits
from textor.models.server import Server
from textor.values import clean_text

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def body_of(server: Server, habits: Habits, context: Context, grammar: Grammar | None) -> dict[str, Any]:
    """The fields of a request that are ours: messages, tools, grammar, and the configured `args`."""
    body: dict[str, Any] = {"messages": messages_of(server, habits, context)}
    if context.tools and server.native_tools:
        body["tools"] = [_tool(spec) for spec in context.tools]
    if grammar is not None:
        if grammar.gbnf and server.gbnf:
            body["grammar"] = grammar.gbnf
        elif grammar.json_schema is not None and server.json_schema:
            schema = {"name": "reply", "schema": grammar.json_schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body | server.args


def messages_of(server: Server, habits: Habits, context: Context) -> list[dict[str, Any]]:
    """The messages on the wire."""
    found: list[dict[str, Any]] = []
    leading = True
    for message in context.messages:
        leading = leading and message.role == "system"
        for wired in _wired(message, leading, server, habits, context.media):
            last = found[-1] if found else None
            if last is not None and _joins(last, wired, habits):
                found[-1] = _joined(last, wired)
            else:
                found.append(wired)
    return found


def later_system(context: Context) -> bool:
    """Whether a system message stands after one of another role."""
    roles = [message.role for message in context.messages]
    first = next((i for i, role in enumerate(roles) if role != "system"), len(roles))
    return "system" in roles[first:]


def _wired(
    message: Message, leading: bool, server: Server, habits: Habits, media: dict[str, bytes]
) -> Iterable[dict[str, Any]]:
    if message.role == "assistant":
        yield _assistant(message, server)
        return
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for part in results:
        yield {"role": "tool", "tool_call_id": part.call_id, "content": clean_text(part.text)}
    others = [part for part in message.parts if isinstance(part, Text | Media)]
    if not others:
        return
    role: str = "user" if message.role == "tool" else message.role
    if role == "system" and (habits.system_role == "none" or (habits.system_role == "first" and not leading)):
        role = "user"
    if any(isinstance(part, Media) for part in others):
        yield {"role": role, "content": [piece for part in others for piece in _pieces(part, media)]}
    else:
        yield {"role": role, "content": clean_text(message.text)}


def _assistant(message: Message, server: Server) -> dict[str, Any]:
    wired: dict[str, Any] = {"role": "assistant", "content": clean_text(message.text)}
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if not calls:
        return wired
    wired["tool_calls"] = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": _arguments(call.arguments)},
        }
        for call in calls
    ]
    if not wired["content"]:
        wired["content"] = None
    if server.reasoning_field:
        thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
        wired[server.reasoning_field] = clean_text("".join(thoughts))
    return wired


def _arguments(text: str) -> str:
    """The arguments of an old call, verbatim; servers refuse a history whose arguments are no JSON
    object, so what the model wrote instead is shown inside of one."""
    try:
        _OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return msgspec.json.encode({"INVALID_JSON": clean_text(text)}).decode() if text.strip() else "{}"
    return text


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _joins(last: dict[str, Any], following: dict[str, Any], habits: Habits) -> bool:
    """Whether two neighbours go as one: several system messages at the beginning for a server that
    takes one, neighbours of the same role for one that wants them to take turns, and an outcome with
    the user message behind it for one that takes none there."""
    role = following["role"]
    if last["role"] == "tool" and role == "user":
        return not habits.after_outcome and isinstance(following["content"], str)
    if last["role"] != role:
        return False
    if role == "system":
        return habits.system_role != "all"
    return habits.alternate and role == "user"


def _joined(last: dict[str, Any], following: dict[str, Any]) -> dict[str, Any]:
    one, two = last["content"], following["content"]
    if isinstance(one, str) and isinstance(two, str):
        return {**last, "content": f"{one}\n\n{two}"}
    as_list = [x if isinstance(x, list) else [{"type": "text", "text": x}] for x in (one, two)]
    return {**last, "content": as_list[0] + as_list[1]}


def _pieces(part: Text | Media, media: dict[str, bytes]) -> Iterable[dict[str, Any]]:
    """A text or a media part as content parts; the caption stands before the media."""
    if isinstance(part, Text):
        yield {"type": "text", "text": clean_text(part.text)}
        return
    if part.caption:
        yield {"type": "text", "text": clean_text(part.caption)}
    value = part.value
    data = content_of(part, media)
    if value.kind in ("text", "json"):
        yield {"type": "text", "text": clean_text(data.decode("utf-8", "replace"))}
        return
    coded = base64.b64encode(data).decode()
    if value.kind == "image":
        yield {"type": "image_url", "image_url": {"url": f"data:{value.media_type};base64,{coded}"}}
    elif value.kind == "audio":
        form = {"audio/mpeg": "mp3", "audio/mp3": "mp3"}.get(value.media_type, "wav")
        yield {"type": "input_audio", "input_audio": {"data": coded, "format": form}}
    elif value.kind == "file":
        name = value.name or "file"
        file = {"filename": name, "file_data": f"data:{value.media_type};base64,{coded}"}
        yield {"type": "file", "file": file}
    else:
        raise ModelError(f"This protocol has no form for {value.kind}.", fault="refused")


def content_of(part: Media, media: dict[str, bytes]) -> bytes:
    """The bytes of a media part. Raises `ModelError` when the context does not bring them."""
    value = part.value
    if value.text is not None:
        return value.text.encode()
    if value.blob is None or value.blob not in media:
        raise ModelError(
            f'The content of "{value.name or value.handle}" was not given along with the prompt.',
            fault="refused",
        )
    return media[value.blob]
