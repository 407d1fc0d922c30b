"""A typed Python function as a capability: its phrase, its route, its contract, its answer."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from textor.actions import EFFECTS, Effect, Repeat
from textor.apps.store import Refused
from textor.arguments import convert
from textor.arguments.json_text import ArgumentError
from textor.errors import UseError

Method = Literal["GET", "POST", "PUT", "DELETE"]
Returns = Literal["text", "data", "image"]
ROUTE = re.compile(r"[a-z0-9]+([-_/][a-z0-9]+)*")
RESERVED = ("health", "app", "static")  #: first parts of routes that the SDK has for itself
PLACE = "[]"

#: The numbers by which the document's JSON names kinds and methods.
LAUNCH, HTTP, UI = 0, 1, 2
METHODS: dict[str, int] = {"GET": 0, "POST": 1, "PUT": 2, "DELETE": 3, "NA": 4}


class Picture(msgspec.Struct, frozen=True):
    """An image as a result, or part of one."""

    content: bytes
    type: str = "image/png"
    name: str = ""

    def json(self) -> dict[str, Any]:
        data = base64.b64encode(self.content).decode()
        return {"type": self.type, "name": self.name, "data": data}


class Result(msgspec.Struct, frozen=True):
    """What an action gives back: a sentence, structured data, a picture; each may be missing."""

    text: str = ""
    data: Any = None
    image: Picture | None = None


class Action:
    """One capability of an app. Raises `UseError` for a function that cannot be one."""

    def __init__(
        self,
        function: Callable[..., Any],
        phrase: str,
        *,
        route: str = "",
        method: Method = "POST",
        effects: Sequence[Effect] = (),
        repeat: Repeat = "once",
        examples: Sequence[str] = (),
        max_body: int = 4_000_000,
        returns: Returns | None = None,
        hidden: bool = False,
    ) -> None:
        self.function = function
        self.name = function.__name__
        self.phrase = " ".join(phrase.split())
        self.route = route or self.name.replace("_", "-")
        self.method = method
        self.effects = tuple(effects)
        self.repeat: Repeat = repeat
        self.examples = tuple(examples)
        self.max_body = max_body
        self.hidden = hidden  #: for the page alone: not registered
        self.is_async = inspect.iscoroutinefunction(function)
        self.purpose = inspect.getdoc(function) or ""
        self.struct, found = _read(function, self._wrong)
        self.returns = returns or found
        self.schema = _schema(self.struct)
        self._check()

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.struct.__struct_fields__

    @property
    def required(self) -> tuple[str, ...]:
        fields = msgspec.structs.fields(self.struct)
        return tuple(f.name for f in fields if f.required)

    @property
    def single(self) -> str:
        """The parameter that the document's `SingleText` fills: the only text that must be given."""
        names = self.required or self.parameters[:1]
        if len(names) != 1:
            return ""
        told = self.schema["properties"][names[0]]
        words = told.get("enum", [])
        is_text = told.get("type") == "string" or (words and all(isinstance(word, str) for word in words))
        return names[0] if is_text else ""

    @property
    def contract(self) -> str:
        """What the document's broker can send: one text for one place, or what the schema says."""
        places = self.phrase.count(PLACE)
        if places == 0:
            return ""
        return "SingleText" if places == 1 and self.single else "JsonSchema"

    @property
    def label(self) -> str:
        """The phrase for a person: "set email subject to …"."""
        return self.phrase.replace(PLACE, "…")

    def arguments(self, body: dict[str, Any]) -> dict[str, Any]:
        """The arguments in a request, by name or as `{"Text": …}`. Raises `Refused` with a sentence."""
        given = {key: value for key, value in body.items() if not (value is None and key.lower() == "text")}
        named = {name.lower(): name for name in self.parameters}
        given = {named.get(key.lower(), key): value for key, value in given.items()}
        text = next((key for key in given if key.lower() == "text"), None)
        if text is not None and text not in self.parameters:
            value = given.pop(text)
            if self.single:
                given.setdefault(self.single, value)
            elif value != "" or self.parameters:
                raise Refused(self._misfit("it takes no single text"))
        try:
            converted = convert(given, self.schema)
            filled = msgspec.convert(converted, self.struct)
        except ArgumentError as error:
            raise Refused(self._misfit(" ".join(map(str, error.problems)))) from None
        except msgspec.ValidationError as error:
            raise Refused(self._misfit(str(error))) from None
        return {name: getattr(filled, name) for name in self.parameters}

    def capability(self, app_class: str, version: str) -> dict[str, Any]:
        """The JSON of the document, and our additions to it."""
        return {
            "Action": self.phrase,
            "AppClass": app_class,
            "AppPath": None,
            "ActionType": HTTP,
            "Description": self.purpose or self.phrase.replace(PLACE, "").strip(),
            "Route": self.route,
            "Method": METHODS[self.method],
            "ContentType": "application/json" if self.method != "GET" else "",
            "Contract": self.contract,
            "Vector": None,
            "Name": self.name,
            "Schema": self.schema,
            "Effects": list(self.effects),
            "Repeat": self.repeat,
            "Returns": self.returns,
            "Examples": list(self.examples),
            "Version": version,
        }

    def _check(self) -> None:
        if not self.phrase:
            raise self._wrong("has no phrase.", 'Write @app.action("set email subject to []").')
        if not ROUTE.fullmatch(self.route) or self.route.split("/")[0] in RESERVED:
            hint = f"It is made of a-z, 0-9, - and /, and does not begin with {', '.join(RESERVED)}."
            raise self._wrong(f"cannot have the route {self.route!r}.", hint)
        if unknown := [effect for effect in self.effects if effect not in EFFECTS]:
            raise self._wrong(f"has no effect {unknown[0]!r}.", f"There are {', '.join(EFFECTS)}.")
        places = self.phrase.count(PLACE)
        if places > len(self.parameters):
            raise self._wrong(f"has {places} places [] and {len(self.parameters)} parameters.")
        if missing := [name for name in self.required if name not in self.parameters[:places]]:
            hint = "Give it a place [] or a default; places are filled in the order of the parameters."
            raise self._wrong(f"needs {missing[0]!r}, for which its phrase has no place.", hint)

    def _wrong(self, what: str, hint: str = "") -> UseError:
        return UseError(f"The action {self.name!r} ({self.phrase!r}) {what}", hint)

    def _misfit(self, what: str) -> str:
        return f"“{self.phrase}”: {what.rstrip('.')}."


def _read(
    function: Callable[..., Any], wrong: Callable[..., UseError]
) -> tuple[type[msgspec.Struct], Returns]:
    """The parameters as a struct, and what the function returns: text, data, image."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise wrong(f"takes {parameter}; only named parameters can be registered.")
        if name not in hints:
            raise wrong(f"does not say the type of {name!r}.", f"Write {name}: str.")
        has_default = parameter.default is not parameter.empty
        fields.append((name, hints[name], parameter.default) if has_default else (name, hints[name]))
    kind = hints.get("return")
    names = {get_origin(t) or t for t in (kind, *get_args(kind))}
    returns: Returns = "image" if Picture in names else "data" if names & {dict, list, Result} else "text"
    try:
        return msgspec.defstruct(function.__name__, fields, kw_only=True), returns
    except TypeError as error:
        raise wrong(f"cannot be registered: {error}.") from None


def _schema(struct: type[msgspec.Struct]) -> dict[str, Any]:
    (found,), components = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    schema: dict[str, Any] = components.pop(struct.__name__, found)
    schema = {key: value for key, value in schema.items() if key != "title"}
    schema.setdefault("required", [])
    schema["additionalProperties"] = False
    if components:
        schema["$defs"] = components
    return schema


def answer(value: Any, label: str) -> dict[str, Any]:
    """The JSON of what a function returned."""
    if isinstance(value, Picture):
        value = Result(image=value)
    elif isinstance(value, str) or value is None:
        value = Result(text=value or "")
    elif not isinstance(value, Result):
        value = Result(data=value)
    body: dict[str, Any] = {"text": value.text or ("" if value.data is not None else f"Done: {label}")}
    if value.data is not None:
        body["data"] = msgspec.to_builtins(value.data)
    if value.image is not None:
        body["image"] = value.image.json()
    return body
