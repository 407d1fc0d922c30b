"""When a dialogue outgrows its share of the window, its oldest part is summarised by the model.

One event replaces it; nothing is dropped in silence. A summary that is not shorter counts as
failed, and after two the turn ends with that reason.
"""

from __future__ import annotations

from textor.kernel.state import AgentState
from textor.messages import Context, Message, message_size, said

MOST_FAILURES = 2
REQUEST = (
    "Summarise the conversation so far for yourself, so that you can go on without it. Keep what was "
    "asked and decided, names, numbers, paths, results and what is still to be done. Write only the "
    "summary, much shorter than the conversation."
)


def due(agent: AgentState) -> bool:
    """Whether the prompt has outgrown its room and there is an old part to summarise."""
    return 0 < agent.room < agent.size * agent.ratio and oldest(agent) > 0


def oldest(agent: AgentState) -> int:
    """How many messages make the older half: cut before a message, never between a call and its
    result, and never the last message."""
    half = sum(message_size(m) for m in agent.dialogue) / 2
    size, count = 0, 0
    for n, message in enumerate(agent.dialogue[:-1]):
        size += message_size(message)
        if agent.dialogue[n + 1].role != "tool":
            count = n + 1
            if size >= half:
                break
    return count


def request(agent: AgentState, count: int, most: int) -> Context:
    """The prompt that asks for a summary of the first `count` messages, in `most` tokens at most."""
    messages = (*agent.prefix, *agent.dialogue[:count], said("user", REQUEST))
    return Context(messages, agent.tools, max_tokens=min(max(agent.room // 4, 64), most))


def replacement(agent: AgentState, count: int, text: str) -> Message | None:
    """The message that stands for the first `count`; None when it is not shorter than they are."""
    message = said("user", f"[Summary of the earlier conversation]\n{text.strip()}")
    old = sum(message_size(m) for m in agent.dialogue[:count])
    return message if text.strip() and message_size(message) < old else None
