"""What a program is shown of a turn while it runs: pieces of text, steps, outcomes."""

from __future__ import annotations

import msgspec

from textor import events as e
from textor.actions import Action, Outcome
from textor.dialects.step_thoughts import Thoughts, thoughts_of
from textor.events import Event
from textor.live import Delta
from textor.messages import Reasoning, Usage


class Step(msgspec.Struct, frozen=True):
    """One reply of a model, as soon as it is whole and before its actions run.

    `agent` is "main", or the path of one that it called. `text` is what the model wrote, without
    what its provider marked as `reasoning`. `thoughts` are those of the dialect `step`; in the
    other dialects they are empty. `faults` are the sentences about what was not understood.
    """

    agent: str
    text: str
    thoughts: Thoughts = Thoughts()
    reasoning: str = ""
    actions: tuple[Action, ...] = ()
    usage: Usage = Usage()
    faults: tuple[str, ...] = ()


class Done(msgspec.Struct, frozen=True):
    """An action came to its one outcome."""

    agent: str
    action: Action
    outcome: Outcome


Piece = Delta | Step | Done


class Steps:
    """Makes steps and outcomes of the events of one turn, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._actions: dict[str, Action] = {}

    def take(self, event: Event) -> Step | Done | None:
        """What an event shows; None for most."""
        body = event.body
        if isinstance(body, e.GenerationFinished):
            self._actions |= {action.id: action for action in body.actions}
            step = step_of(body)
            self.steps.append(step)
            return step
        if isinstance(body, e.ActionFinished) and body.action in self._actions:
            return Done(body.agent, self._actions[body.action], body.outcome)
        return None


def step_of(body: e.GenerationFinished) -> Step:
    reasoning = "".join(part.text for part in body.message.parts if isinstance(part, Reasoning))
    thoughts = thoughts_of(body.message)
    return Step(body.agent, body.message.text, thoughts, reasoning, body.actions, body.usage, body.faults)
