"""The errors of Textor: each says what is wrong, where, and how to mend it.

A `TextorError` is meant for a person or a model: faces print `str(error)` and never a traceback.
"""

from __future__ import annotations

from typing import Literal

ModelFault = Literal[
    "auth",  # the key is missing or refused
    "rate",  # too many requests (429); `retry_after` in seconds when the server said it
    "server",  # 5xx, connection refused or lost before the first chunk
    "cut",  # the stream ended without a finish reason
    "junk",  # what came is no event of the protocol
    "context",  # the prompt does not fit the window
    "refused",  # the server understood and will not (400, 404: unknown model, bad argument)
    "timeout",  # no first event in time
]

#: Faults that a retry may heal.
TRANSIENT: frozenset[ModelFault] = frozenset({"rate", "server", "cut", "junk", "timeout"})


class TextorError(Exception):
    """Anything that a user can act upon.

    `message` is one sentence that says what and where; `hint` says how to mend it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        ended = self.message[-1:] in ".!?…:"  # the words of a server often end without a stop
        return f"{self.message}{'' if ended else '.'} {self.hint}".rstrip()


class ConfigError(TextorError):
    """The configuration holds a wrong key, type or value."""


class UseError(TextorError):
    """A command or a method was called in a way that cannot work (exit code 2)."""


class DefinitionError(TextorError):
    """An agent type's file cannot be read."""


class JournalError(TextorError):
    """The journal cannot be read or written (disk full, no permission, not a database)."""


class Fenced(JournalError):
    """Another host has taken the session over: run no further effect and do not retry."""


class ModelError(TextorError):
    """A generation could not be had. `fault` says why; `transient` whether a retry may heal it."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        fault: ModelFault,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.fault: ModelFault = fault
        self.retry_after = retry_after
        self.status = status

    @property
    def transient(self) -> bool:
        return self.fault in TRANSIENT


class CapabilityError(TextorError):
    """A capability failed in a way that the model should read; becomes a `failed` outcome."""
