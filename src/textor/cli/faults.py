"""How an exception ends a command: one line on stderr, and an exit code."""

from __future__ import annotations

import logging
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
    return write_log("".join(traceback.format_exception(error)))


def write_log(text: str) -> Path:
    """Append to the log file, which is made for its owner alone: it may hold pieces of a dialogue.
    Secrets that we know are masked."""
    from platformdirs import user_state_path

    from textor.secrets import KNOWN

    path = user_state_path("textor", appauthor=False) / "textor.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{datetime.now().astimezone().isoformat()} {KNOWN.mask(text.rstrip())}\n")
    return path


class LogFile(logging.Handler):
    """What parts of Textor and its libraries log goes into the log file, not onto the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            write_log(f"{record.name}: {self.format(record)}")
        except OSError:
            pass  # there is nowhere left to say it


def log_to_file() -> None:
    logging.getLogger().addHandler(LogFile(logging.WARNING))
