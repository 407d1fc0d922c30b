"""The constraints of a schema that are no types: bounds, patterns, lengths; checked by `jsonschema`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textor.json_text import Problem
from textor.near import excerpt
from textor.values import Json

#: Keywords whose meaning is left to `jsonschema`, with the sentence for each.
_BEYOND: dict[str, str] = {
    "pattern": "should match the pattern {0}",
    "minimum": "should be at least {0}",
    "maximum": "should be at most {0}",
    "exclusiveMinimum": "should be more than {0}",
    "exclusiveMaximum": "should be less than {0}",
    "multipleOf": "should be a multiple of {0}",
    "minLength": "should have at least {0} characters",
    "maxLength": "should have at most {0} characters",
    "minItems": "should have at least {0} items",
    "maxItems": "should have at most {0} items",
    "minProperties": "should have at least {0} entries",
    "maxProperties": "should have at most {0} entries",
    "uniqueItems": "should not hold the same item twice",
}
_BEYOND_WORDLESS = frozenset(
    ["not", "if", "contains", "dependentRequired", "dependentSchemas", "propertyNames"]
)


def _keywords(schema: Any) -> Iterator[str]:
    """All keys in a schema, those of its properties included: cheap, and more is harmless."""
    if isinstance(schema, dict):
        for key, inner in schema.items():
            yield key
            yield from _keywords(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _keywords(inner)


def unmet(arguments: dict[str, Json], schema: dict[str, Json]) -> list[Problem]:
    """What `jsonschema` finds in arguments that are of the right form. A schema that it cannot
    use is the provider's fault and refuses nothing here."""
    if not any(key in _BEYOND or key in _BEYOND_WORDLESS for key in _keywords(schema)):
        return []
    import jsonschema
    from referencing import Registry

    checker = jsonschema.Draft202012Validator(schema, registry=Registry())  # nothing is fetched
    try:
        errors = list(checker.iter_errors(arguments))
    except Exception:
        return []
    # A value that several branches of `oneOf` take is understood all the same.
    return [_told(error) for error in errors if error.context or error.validator != "oneOf"]


def _told(error: Any) -> Problem:
    path = ""
    for step in error.absolute_path:
        path += f"[{step}]" if isinstance(step, int) else (f".{step}" if path else str(step))
    words = _BEYOND.get(str(error.validator))
    if words is None:
        return Problem(path, f"is not allowed here ({excerpt(error.message, 120)})")
    return Problem(path, f"{words.format(error.validator_value)} and is {excerpt(error.instance)}")
