"""What programs send when they are installed: the JSON of the document, read with patience.

Names of fields in any case (`Action`, `action`), numbers or names for the kinds. Fields that the
document does not know are ours, and fields that nobody knows are passed over; a given `Vector` is
ignored, because whoever chooses the vector chooses what the capability is taken for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from textor.actions import EFFECTS, Effect, Repeat
from textor.errors import UseError
from textor.near import did_you_mean, excerpt, nearest
from textor.values import Json

Kind = Literal["LAUNCH", "HTTP", "UI"]
Method = Literal["GET", "POST", "PUT", "DELETE", "NA"]
KINDS: tuple[Kind, ...] = ("LAUNCH", "HTTP", "UI")
METHODS: tuple[Method, ...] = ("GET", "POST", "PUT", "DELETE", "NA")
REPEATS: tuple[Repeat, ...] = ("idempotent", "keyed", "once")
CONTRACTS = ("", "SingleText", "JsonSchema")

T = TypeVar("T")

PLACE = "[]"
LONGEST_NAME = 80  #: characters of a class
LONGEST_PHRASE = 300
LONGEST_TEXT = 4_000  #: of a description, a path, one line of an example
MOST_SCHEMA = 64_000  #: characters of a JSON Schema
MOST_EXAMPLES = 20  #: further ways to say one capability
MOST_LINES = 60  #: lines of the answer of one example

_CLASS = re.compile(r"[^\W_](?:[\w .+&-]*[\w.+&)-])?")
_ROUTE = re.compile(r"(?:[A-Za-z0-9._~-]+/)*[A-Za-z0-9._~-]*")


class Form(msgspec.Struct, frozen=True, omit_defaults=True):
    """One registration, checked. `path` and `arguments` are those of LAUNCH; `schema` None means
    that the contract alone says what is taken."""

    app_class: str
    kind: Kind
    action: str
    description: str = ""
    path: str = ""
    arguments: tuple[str, ...] = ()
    route: str = ""
    method: Method = "NA"
    content_type: str = ""
    contract: str = ""
    name: str = ""
    schema: dict[str, Json] | None = None
    effects: tuple[Effect, ...] | None = None
    repeat: Repeat = "once"
    returns: str = ""
    examples: tuple[str, ...] = ()
    title: str = ""
    version: str = ""
    icon: str = ""


class ExampleForm(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question of a person and the lines that answer it; `profile` "" is for all of them."""

    app_class: str
    question: str
    answers: tuple[str, ...]
    profile: str = ""


def read_form(data: Json) -> Form:
    """One capability. Raises `UseError` with the field that is wrong."""
    fields = _Fields(data, "capability")
    kind = fields.choice("ActionType", KINDS, None)
    form = Form(
        app_class=fields.app_class(),
        kind=kind,
        action=" ".join(fields.text("Action", LONGEST_PHRASE, needed=True).split()),
        description=fields.text("Description", LONGEST_TEXT),
        path=fields.text("AppPath", LONGEST_TEXT, needed=kind == "LAUNCH"),
        arguments=fields.texts("AppArguments", MOST_LINES),
        route=fields.text("Route", 500).strip("/"),
        method=fields.choice("Method", METHODS, "POST" if kind == "HTTP" else "NA"),
        content_type=fields.text("ContentType", 200),
        contract=fields.contract(),
        name=fields.text("Name", LONGEST_NAME),
        schema=fields.schema(),
        effects=fields.effects(),
        repeat=fields.choice("Repeat", REPEATS, "once"),
        returns=fields.text("Returns", 200),
        examples=fields.texts("Examples", MOST_EXAMPLES),
        title=fields.text("Title", LONGEST_NAME),
        version=fields.text("Version", LONGEST_NAME),
        icon=fields.text("Icon", MOST_SCHEMA),
    )
    _check(form)
    return form


def read_example(data: Json) -> ExampleForm:
    """One example. Raises `UseError`."""
    fields = _Fields(data, "example")
    question = fields.text("Question", LONGEST_TEXT, needed=True)
    answers = fields.texts("Answers", MOST_LINES)
    if not answers:
        raise UseError("Answers of this example is empty.", "Give the action lines that answer the question.")
    # One answer is one line of the list; a line break would make two of it.
    lines = tuple(line for answer in answers for line in answer.splitlines() if line.strip())
    return ExampleForm(fields.app_class(), question, lines, fields.text("Profile", LONGEST_NAME))


class _Fields:
    """The fields of one object, whatever case their names have."""

    def __init__(self, data: Json, what: str) -> None:
        if not isinstance(data, dict):
            raise UseError(f"A {what} is one JSON object, not {excerpt(data, 40)}.")
        self._what = what
        self._given: Mapping[str, Json] = {str(key).replace("_", "").lower(): v for key, v in data.items()}

    def _get(self, name: str) -> Json:
        return self._given.get(name.lower())

    def _wrong(self, name: str, why: str, hint: str = "") -> UseError:
        return UseError(f"{name} of this {self._what} {why}.", hint)

    def text(self, name: str, longest: int, *, needed: bool = False) -> str:
        value = self._get(name)
        if value is None:
            value = ""
        if not isinstance(value, str):
            raise self._wrong(name, f"must be text, not {excerpt(value, 40)}")
        value = value.replace("\x00", "")
        if needed and not value.strip():
            raise self._wrong(name, "is missing")
        if len(value) > longest:
            raise self._wrong(name, f"has {len(value)} characters; {longest} are allowed")
        return value.strip()

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        value = self._get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(name, f"must be a list of texts, not {excerpt(value, 40)}")
        if len(value) > most or any(len(each) > LONGEST_TEXT for each in value):
            raise self._wrong(name, f"is too long: {most} texts of {LONGEST_TEXT} characters are allowed")
        return tuple(value)

    def app_class(self) -> str:
        name = " ".join(self.text("AppClass", LONGEST_NAME, needed=True).split())
        if not _CLASS.fullmatch(name):
            raise self._wrong("AppClass", f"cannot be {excerpt(name)}", "It is a plain word or two: email.")
        return name

    def choice(self, name: str, known: Sequence[T], usual: T | None) -> T:
        """A name of `known` in any case, or its number."""
        value = self._get(name)
        if (value is None or value == "") and usual is not None:
            return usual
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(known):
            return known[value]
        found = [k for k in known if isinstance(value, str) and value.strip().lower() == str(k).lower()]
        if not found:
            names = ", ".join(f"{number} or {k}" for number, k in enumerate(known))
            raise self._wrong(name, f"is {excerpt(value, 40)}; it must be {names}")
        return found[0]

    def contract(self) -> str:
        value = self.text("Contract", LONGEST_TEXT)
        found = next((known for known in CONTRACTS if known.lower() == value.lower()), None)
        if found is None and self._get("Schema") is None:
            near = did_you_mean(nearest(value, CONTRACTS[1:]))
            hint = f"{near or 'SingleText is known.'} A Schema (JSON Schema) can say anything else."
            raise self._wrong("Contract", f"is {excerpt(value)}, which nobody knows here", hint)
        return value if found is None else found

    def schema(self) -> dict[str, Json] | None:
        value = self._get("Schema")
        if isinstance(value, str) and value.strip():
            try:
                value = msgspec.json.decode(value)
            except msgspec.DecodeError:
                raise self._wrong("Schema", "is no JSON") from None
        if value is None or value == "":
            return None
        if not isinstance(value, dict) or value.get("type", "object") != "object":
            raise self._wrong("Schema", "must be a JSON Schema of type object")
        if len(msgspec.json.encode(value)) > MOST_SCHEMA:
            raise self._wrong("Schema", f"is longer than {MOST_SCHEMA} characters")
        _check_schema(value, self._wrong)
        return {"type": "object", **value}

    def effects(self) -> tuple[Effect, ...] | None:
        if self._get("Effects") is None:
            return None
        given = self.texts("Effects", len(EFFECTS))
        for effect in given:
            if effect not in EFFECTS:
                raise self._wrong("Effects", f"names {excerpt(effect)}", f"There are {', '.join(EFFECTS)}.")
        return tuple(each for each in EFFECTS if each in given)


def _check_schema(schema: dict[str, Any], wrong: Any) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise wrong("Schema", f"is no JSON Schema: {error.message}"[:300]) from None


def _check(form: Form) -> None:
    if not re.sub(r"[\[\]\W_]", "", form.action):
        raise UseError(f"The Action {excerpt(form.action)} holds no words.")
    places = form.action.count("[")
    if form.kind == "LAUNCH" and places:
        raise UseError("The Action of LAUNCH takes no parameter.", "Leave the [] out.")
    if form.kind != "LAUNCH" and form.schema is None and places > 1:
        raise UseError(
            f"The Action {excerpt(form.action)} has {places} places, and SingleText holds one.",
            "Give a Schema with a property for each place.",
        )
    if form.kind == "HTTP":
        bad = not _ROUTE.fullmatch(form.route) or any(p in (".", "..") for p in form.route.split("/"))
        if bad:
            raise UseError(
                f"The Route {excerpt(form.route)} is no path below the app's address.",
                "It is made of letters, digits and - . _ ~ between slashes: subject, mail/subject.",
            )
        if form.method == "NA":
            raise UseError("The Method of an HTTP action cannot be NA.", "There are GET, POST, PUT, DELETE.")
        kind = form.content_type.partition(";")[0].strip().lower()
        if kind not in ("", "application/json") and not kind.endswith("+json"):
            told = excerpt(form.content_type)
            raise UseError(f"The ContentType {told} cannot be sent.", "It is application/json.")
