"""What a model is shown of an outcome, the same in every dialect of text."""

from __future__ import annotations

from collections.abc import Iterable

from textor.actions import Outcome
from textor.messages import Media, Message, Part, Text
from textor.values import SHOWN

_STATES = {
    "failed": "Failed: ",
    "denied": "Denied: ",
    "cancelled": "Cancelled: ",
    "unknown": "It is not known whether this was done: ",
}


def outcome_text(outcome: Outcome) -> str:
    """The outcome in words: its state where it is not done, the exit status of a program, its text."""
    said = _STATES.get(outcome.state, "")
    status = f"exit status {outcome.exit_status}"
    if outcome.exit_status is not None and not outcome.text.startswith(status):
        said += f"{status}\n"
    text = said + outcome.text
    return text.rstrip(": \n") if said and not outcome.text else text or "Done."


def media_message(outcomes: Iterable[Outcome]) -> tuple[Message, ...]:
    """The media of outcomes as one more message of the user: a tool's result holds only text."""
    parts: list[Part] = []
    for outcome in outcomes:
        for value in outcome.values:
            if value.kind in SHOWN:
                parts.append(Media(value, value.name))
    return (Message("user", (Text("The media of these results:"), *parts)),) if parts else ()
