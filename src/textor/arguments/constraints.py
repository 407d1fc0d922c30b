"""The constraints of a schema that are no types: bounds, patterns, lengths; checked by `jsonschema`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from textor.arguments.json_text import Problem
from textor.near import excerpt
from textor.regexes import found
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
    from referencing import Registry

    checker = _checker()(schema, registry=Registry())  # nothing is fetched
    try:
        errors = list(checker.iter_errors(arguments))
    except Exception:
        return []
    # A value that several branches of `oneOf` take is understood all the same.
    return [_told(error) for error in errors if error.context or error.validator != "oneOf"]


@cache
def _checker() -> Any:
    """The validator of `jsonschema`, with patterns that take no longer than they may."""
    import jsonschema

    def pattern(validator: Any, wanted: str, text: Any, schema: Any) -> Iterator[Any]:
        if isinstance(text, str) and found(wanted, text) is False:
            yield jsonschema.ValidationError(f"{text!r} does not match {wanted!r}")

    def by_name(validator: Any, patterns: dict[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
        for wanted, inner in patterns.items() if isinstance(instance, dict) else ():
            for name, value in instance.items():
                if found(wanted, name):
                    yield from validator.descend(value, inner, path=name, schema_path=wanted)

    def others(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items() if isinstance(instance, dict) else ():
            if name in known or any(found(each, name) is not False for each in patterns):
                continue
            if wanted is False:
                yield jsonschema.ValidationError(f"{name!r} was not expected")
            elif wanted is not True:
                yield from validator.descend(value, wanted, path=name)

    own = {"pattern": pattern, "patternProperties": by_name, "additionalProperties": others}
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, own)  # type: ignore[no-untyped-call]


def _told(error: Any) -> Problem:
    path = ""
    for step in error.absolute_path:
        path += f"[{step}]" if isinstance(step, int) else (f".{step}" if path else str(step))
    words = _BEYOND.get(str(error.validator))
    if words is None:
        return Problem(path, f"is not allowed here ({excerpt(error.message, 120)})")
    return Problem(path, f"{words.format(error.validator_value)} and is {excerpt(error.instance)}")
