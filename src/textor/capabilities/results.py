"""What a Python function gave back, as an outcome. Nothing that it gives back is an error of ours."""

from __future__ import annotations

import json
from typing import Any

from textor.actions import Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import text_outcome
from textor.errors import TextorError
from textor.values import BIG, Json, clean_text


def outcome_of(result: Any, scope: Scope) -> Outcome:
    """A text as it is, None as nothing, anything else as JSON, or as `repr` where JSON cannot say it.

    A field named `error` is data like any other.
    """
    if isinstance(result, Outcome):
        return result
    if result is None:
        return Outcome("done")
    if isinstance(result, str):
        return text_outcome(clean_text(str(result)), scope)
    text, data = as_json(result)
    # what is big is kept once, as the value
    return text_outcome(text, scope, data=data if len(text.encode()) <= BIG else None)


def as_json(result: Any) -> tuple[str, Json]:
    """The JSON text and data of a result; its `repr` and None for circles and strangers."""
    from pydantic_core import to_json

    try:
        data = json.loads(to_json(result, inf_nan_mode="strings"))
        return clean_text(json.dumps(data, ensure_ascii=False)), data
    except Exception:
        return clean_text(_repr(result)), None


def failure(error: BaseException) -> Outcome:
    """A failed outcome that names the type and the message; no traceback."""
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, TextorError):
        return Outcome.failed(clean_text(text))
    name = type(error).__name__
    return Outcome.failed(clean_text(f"{name}: {text}" if text else name))


def _repr(result: Any) -> str:
    try:
        return repr(result)
    except Exception:
        return f"<{type(result).__name__}>"
