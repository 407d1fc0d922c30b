"""How an exception ends a command: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
import traceback
from datetime import datetime
from pathlib import Path

from textor.cli import FAILED, WRONG_USE
from textor.errors import ConfigError, DefinitionError, TextorError, UseError


def told(error: BaseException) -> int:
    """Tell a person of an error; what we did not expect goes into the log file as a whole."""
    error = _single(error)
    if isinstance(error, TextorError):
        print(f"textor: {error}", file=sys.stderr)
        return WRONG_USE if isinstance(error, UseError | ConfigError | DefinitionError) else FAILED
    kind = type(error).__name__
    try:
        place = f"the details are in {_log(error)}"
    except OSError as fault:
        place = f"the details could not be written: {fault.strerror}"
    print(f"textor: An unexpected {kind} ended this command; {place}.", file=sys.stderr)
    return FAILED


def _single(error: BaseException) -> BaseException:
    """What a group of exceptions with one in it is about: task groups wrap all that they raise."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _log(error: BaseException) -> Path:
    from platformdirs import user_state_path

    path = user_state_path("textor", appauthor=False) / "textor.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(traceback.format_exception(error))
    # It may hold pieces of a dialogue, so it is its owner's alone.
    path.touch(mode=0o600)
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{datetime.now().astimezone().isoformat()} textor {' '.join(sys.argv[1:2])}\n{text}\n")
    return path
