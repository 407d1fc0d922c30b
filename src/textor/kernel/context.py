"""What a model is shown in one iteration: stable prefix, dialogue, volatile status.

The prefix is made once and stored with the agent; dialogue messages are stored verbatim; the
status is the last block of the last message and is left out the next time (law 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from textor.actions import Capability
from textor.dialects.port import Dialect
from textor.events import Definition, MessagePosted
from textor.kernel.state import AgentState, State
from textor.messages import Context, Message, Text
from textor.values import Value


class Layout(Protocol):
    """A way to build prompts; an agent type names the one it uses (see `textor.layouts`)."""

    def prefix(
        self, definition: Definition, dialect: Dialect, capabilities: Sequence[Capability]
    ) -> tuple[Message, ...]: ...

    def posted(
        self, posted: Iterable[MessagePosted], agent: AgentState, values: Iterable[Value]
    ) -> Message: ...

    def status(self, state: State, agent: AgentState, now: float) -> str: ...

    def messages(self, state: State, agent: AgentState) -> tuple[Message, ...]: ...

    def size(self, agent: AgentState) -> int: ...  # characters of `messages`, about


def build(layout: Layout, state: State, agent: AgentState, status: str, max_tokens: int) -> Context:
    """The context of the iteration whose status text this is."""
    messages = layout.messages(state, agent)
    if status and messages:
        last = messages[-1]
        messages = (*messages[:-1], replace(last, parts=(*last.parts, Text("\n\n" + status))))
    return Context(messages, agent.tools, max_tokens, agent.definition.temperature)
