"""The events of a session as lines for a person: what is done, what came of it, what waits."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from textor import events as e
from textor.actions import Action, Outcome
from textor.dialects.step_thoughts import thoughts_of

Line = tuple[str, str]  #: text, style

HINT = (
    "The small model in the box is at work. It is free and private, and it makes mistakes; for real"
    " work connect a bigger one: set OPENAI_API_KEY and TEXTOR_MODEL=oai:gpt-4o, or see `textor config init`."
)


def call_line(action: Action, longest: int = 160) -> str:
    """An action on one line, cut: `files.read(path="a.txt")`."""
    parts = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in action.arguments.items()]
    text = f"{action.capability}({', '.join(parts)})"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def call_block(action: Action) -> str:
    """An action exactly as it would run, whole, for the person who is asked about it."""
    lines = [action.capability]
    for key, value in action.arguments.items():
        if isinstance(value, str) and "\n" in value:
            lines.append(f"  {key}:")
            lines += [f"  | {line}" for line in value.split("\n")]
        else:
            lines.append(f"  {key}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)


def one_line(text: str, longest: int = 160) -> str:
    """The first line of a text, and how much more there is."""
    first, _, rest = text.strip().partition("\n")
    if len(first) > longest:
        first = first[: longest - 1] + "…"
    if rest:
        more = rest.count("\n") + 1
        first += f" … ({more} more line{'s' if more > 1 else ''})"
    return first


def outcome_line(outcome: Outcome, longest: int = 160) -> str:
    """What came of an action, on one line."""
    first = one_line(outcome.text, longest)
    status = "" if outcome.exit_status is None else f" (exit status {outcome.exit_status})"
    return f"{outcome.state}{status}{': ' if first else ''}{first}"


def is_embedded(model: str) -> bool:
    return model.startswith("embedded:")


class Story:
    """Tells the events of one session in order. Remembers the actions, to name them."""

    def __init__(self) -> None:
        self.actions: dict[str, Action] = {}
        self.models: dict[str, str] = {}
        self._told: set[str] = set()
        self._open: set[str] = set()  # told, and not finished yet
        self._reviewed: set[str] = set()
        self._steps: set[str] = set()  # agents that say what they think (`step`)

    def waits(self, body: e.GenerationFinished) -> bool:
        """Whether this reply waits for a person before anything of it runs."""
        return body.agent in self._reviewed and body.finish != "cut"

    def tell(self, event: e.Event) -> Iterator[Line]:
        """The lines for one event; none for most."""
        body = event.body
        match body:
            case e.AgentCreated(agent=agent, model=model, definition=definition):
                self.models[agent] = model
                if definition.review:
                    self._reviewed.add(agent)
                if definition.dialects == ("step",):
                    self._steps.add(agent)
                if agent == "main" and is_embedded(model):
                    yield HINT, "note"
            case e.ModelChanged(agent=agent, model=model):
                self.models[agent] = model
                yield f"{self._of(agent)}goes on with {model}", "note"
            case e.GenerationWaiting(agent=agent, reason=reason, seconds=seconds):
                yield f"{self._of(agent)}waiting {seconds:.3g} s: {reason}", "warn"
            case e.GenerationFinished():
                yield from self._generated(body)
            case e.ReplyReviewed(verdict="edit", actions=actions):
                self.actions |= {action.id: action for action in actions}
            case e.ActionAnswered(action=id, arguments=arguments) if (
                arguments is not None and id in self.actions
            ):
                self.actions[id] = msgspec.structs.replace(self.actions[id], arguments=arguments)
            case e.ActionStarted(agent=agent, action=id):
                yield from self._call(agent, id)
            case e.ActionFinished(agent=agent, action=id, outcome=outcome):
                yield from self._call(agent, id)
                # where several run at the same time, it is said which of them came to its end
                which = f"{self._of(agent)}{self.actions[id].capability} " if self._open - {id} else ""
                self._open.discard(id)
                well = outcome.state == "done" and not outcome.exit_status
                yield f"  {which}{outcome_line(outcome)}", "dim" if well else "bad"
            case e.Observed(agent=agent, notices=notices):
                for notice in notices:
                    yield f"{self._of(agent)}told the model: {notice}", "dim"
            case e.MessagePosted(agent=agent, text=text, sender=sender) if sender.startswith(f"{agent}/"):
                yield f"[{sender}] says: {one_line(text)}", "dim"
            case e.Summarised(agent=agent, count=count):
                yield f"{self._of(agent)}{count} old messages were summarised", "dim"
            case _:
                pass

    def _generated(self, body: e.GenerationFinished) -> Iterator[Line]:
        for action in body.actions:
            self.actions[action.id] = action
        if body.agent in self._steps:
            for line in str(thoughts_of(body.message)).splitlines():
                yield f"{self._of(body.agent)}{line}", "dim"
        # A small model's plan is shown as a whole before anything of it runs.
        if len(body.actions) > 1 and is_embedded(self.models.get(body.agent, "")):
            yield f"{self._of(body.agent)}planned:", "bold"
            for number, action in enumerate(body.actions, 1):
                yield f"  {number}. {call_line(action)}", "bold"

    def _call(self, agent: str, id: str) -> Iterator[Line]:
        action = self.actions.get(id)
        if action is not None and id not in self._told:
            self._told.add(id)
            self._open.add(id)
            # What was not understood is shown as the model wrote it.
            line = call_line(action) if not action.fault else f"{action.capability} {action.text}"[:160]
            yield f"{self._of(agent)}▸ {line}", ""

    def _of(self, agent: str) -> str:
        return "" if agent == "main" else f"[{agent}] "
