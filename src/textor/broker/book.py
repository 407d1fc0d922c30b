"""What is registered: apps, their capabilities and examples, profiles, and the running instances.

A fold over the `events.Stored` of the reserved session `machine` (law 1), and the rules of
registering: what a program may register becomes the events that say so, or an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from textor.actions import Capability, Catalogue, Effect
from textor.broker.forms import ExampleForm, Form
from textor.broker.names import area_of, verb_of
from textor.dialects.plan_lines import phrases_of
from textor.errors import UseError
from textor.events import Stored
from textor.near import did_you_mean, excerpt, nearest
from textor.values import Json, sha256_of

APP, EXAMPLE, PROFILE, PORT = "app", "example", "profile", "port"
AREAS = frozenset({APP, EXAMPLE, PROFILE, PORT})
PROVIDER = "apps"
START = "start"  #: the verb of LAUNCH

MOST_CAPABILITIES = 1_000  #: of one class
MOST_EXAMPLES = 20  #: of one class
EXAMPLE_TEXT = 20_000  #: characters of the examples of one class

_TEXT: dict[str, Json] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
_NOTHING: dict[str, Json] = {"type": "object", "properties": {}, "additionalProperties": False}

#: What the document calls the built-in UI action: a text for the person, which holds nothing up.
TELL = Capability(
    "user.tell",
    "Show the user a text.",
    _TEXT,
    effects=("read",),
    repeat="idempotent",
    phrases=("respond to user with []",),
    examples=("tell the user [hello]", "say to the user [it is done]"),
    provider=PROVIDER,
    returns=False,
)


class Conflict(UseError):
    """What is to be registered belongs to somebody else, or to nobody yet."""


class Entry(msgspec.Struct, frozen=True):
    """One capability as it is kept: what was sent, and the name that it was given."""

    form: Form
    name: str


class Launch(msgspec.Struct, frozen=True):
    """How a class is started, and the area of its names."""

    form: Form
    area: str


class Profile(msgspec.Struct, frozen=True):
    """A set of apps for a purpose; `active` is true for one at most."""

    apps: tuple[str, ...] = ()
    active: bool = False


class Record(msgspec.Struct, frozen=True):
    """A running instance, one row of the port map.

    `nonce` is what its launch token was made from; `born` tells its process from a later one of
    the same number; `started` in seconds since 1970; `speaks` is "sdk" when it can prove itself.
    `chosen` is when a person pointed at it, 0 for never.
    """

    id: str
    app_class: str
    port: int
    pid: int
    born: str
    started: float
    nonce: str
    speaks: str = "document"
    chosen: float = 0


class App:
    """One class: its launch and, by verb, its capabilities."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.entries: dict[str, Entry] = {}

    @property
    def name(self) -> str:
        return self.launch.form.app_class

    @property
    def owner(self) -> tuple[str, tuple[str, ...]]:
        """The program that may register for this class: path and fixed arguments."""
        return self.launch.form.path, self.launch.form.arguments


class Book:
    """The state. `reserved` gives the areas that other providers use."""

    def __init__(self) -> None:
        self.reserved: Callable[[], Collection[str]] = frozenset
        self.clear()

    def clear(self) -> None:
        """Know nothing, as before the first event."""
        self.apps: dict[str, App] = {}
        self.examples: dict[str, ExampleForm] = {}
        self.profiles: dict[str, Profile] = {}
        self.records: dict[str, Record] = {}
        self.capabilities: dict[str, Capability] = {TELL.name: TELL}
        self.owners: dict[str, tuple[App, Entry | None]] = {}  #: by name of capability; None: LAUNCH
        self._catalogues: dict[str, Catalogue] = {}

    # -- the fold --------------------------------------------------------------------------

    def apply(self, body: Stored) -> bool:
        """Take an event in; whether it changed what can be called. What cannot be read is left out:
        a newer program may have written it."""
        try:
            if body.area == PORT:
                _put(self.records, body.key, body.value, Record)
                return False
            if body.area == EXAMPLE:
                _put(self.examples, body.key, body.value, ExampleForm)
                return False
            if body.area == PROFILE:
                _put(self.profiles, body.key, body.value, Profile)
            elif body.area == APP:
                self._apply_app(body.key, body.value)
            else:
                return False
        except msgspec.ValidationError:
            return False
        self._catalogues.clear()
        return True

    def _apply_app(self, key: str, value: Json) -> None:
        app_class, _, verb = key.partition("/")
        app = self.apps.get(app_class)
        if verb:
            if app is not None:
                self._apply_entry(app, verb, value)
            return
        if app is not None:
            self._forget(f"{app.launch.area}.{START}")
        if value is None:
            if gone := self.apps.pop(app_class, None):
                for entry in gone.entries.values():
                    self._forget(entry.name)
            return
        launch = msgspec.convert(value, Launch)
        if app is None:
            app = self.apps[app_class] = App(launch)
        app.launch = launch
        self._know(launch_capability(launch), app, None)

    def _apply_entry(self, app: App, verb: str, value: Json) -> None:
        if (old := app.entries.pop(verb, None)) is not None:
            self._forget(old.name)
        if value is not None:
            entry = app.entries[verb] = msgspec.convert(value, Entry)
            self._know(capability_of(entry), app, entry)

    def _know(self, capability: Capability, app: App, entry: Entry | None) -> None:
        self.capabilities[capability.name] = capability
        self.owners[capability.name] = (app, entry)

    def _forget(self, name: str) -> None:
        self.capabilities.pop(name, None)
        self.owners.pop(name, None)

    # -- registering -----------------------------------------------------------------------

    def register(self, form: Form) -> list[Stored]:
        """The events of a registration. LAUNCH replaces all of its class. Raises `Conflict` when the
        class belongs to another program or to none, `UseError` for what cannot be called."""
        app = self.apps.get(form.app_class)
        if form.kind == "LAUNCH":
            return self._register_launch(form, app)
        if app is None:
            near = did_you_mean(nearest(form.app_class, self.apps))
            raise Conflict(
                f"There is no app of the class {excerpt(form.app_class)}.",
                f"Register its LAUNCH first. {near}".rstrip(),
            )
        if form.path and form.path != app.launch.form.path:
            raise _claimed(app)
        same = next((verb for verb, e in app.entries.items() if e.form.action == form.action), "")
        if not same and len(app.entries) >= MOST_CAPABILITIES:
            raise UseError(f"{form.app_class} has {MOST_CAPABILITIES} capabilities; more are not taken.")
        verb = same or verb_of(form.action, form.app_class, form.name, {START, *app.entries})
        entry = Entry(form, f"{app.launch.area}.{verb}")
        if not phrases_of(capability_of(entry)):
            raise UseError(
                f"The places of the Action {excerpt(form.action)} are not those of its parameters.",
                "There is one [] for each parameter that has to be given, in the order of the Schema.",
            )
        return [Stored(APP, f"{form.app_class}/{verb}", msgspec.to_builtins(entry))]

    def _register_launch(self, form: Form, app: App | None) -> list[Stored]:
        check_program(form)
        if app is not None and app.owner != (form.path, form.arguments):
            raise _claimed(app)
        taken = {a.launch.area for a in self.apps.values()} | set(self.reserved()) | {"user"}
        area = app.launch.area if app is not None else area_of(form.app_class, taken)
        events = list(self._clear(form.app_class))
        return [*events, Stored(APP, form.app_class, msgspec.to_builtins(Launch(form, area)))]

    def _clear(self, app_class: str) -> Iterator[Stored]:
        """Take back what a class has registered, but not that it is its program's."""
        if app := self.apps.get(app_class):
            yield from (Stored(APP, f"{app_class}/{verb}") for verb in app.entries)
            yield from (Stored(EXAMPLE, k) for k, x in self.examples.items() if x.app_class == app_class)

    def remove(self, app_class: str) -> list[Stored]:
        """The events that forget a class. Raises `UseError` when there is none."""
        self.app(app_class)
        return [*self._clear(app_class), Stored(APP, app_class)]

    def teach(self, form: ExampleForm) -> list[Stored]:
        """The event of an example. Raises `Conflict` without its class, `UseError` beyond the budget."""
        if form.app_class not in self.apps:
            raise Conflict(f"There is no app of the class {excerpt(form.app_class)}.", "Register it first.")
        key = f"{form.app_class}/{sha256_of(f'{form.profile}/{form.question}'.encode())[:12]}"
        others = [x for k, x in self.examples.items() if x.app_class == form.app_class and k != key]
        used = sum(size_of(x) for x in others)
        if len(others) >= MOST_EXAMPLES or used + size_of(form) > EXAMPLE_TEXT:
            raise UseError(
                f"The examples of {form.app_class} are more than are taken: {MOST_EXAMPLES} with "
                f"{EXAMPLE_TEXT} characters in all.",
                "Give fewer, or shorter ones.",
            )
        return [Stored(EXAMPLE, key, msgspec.to_builtins(form))]

    # -- profiles ----------------------------------------------------------------------------

    @property
    def active(self) -> str:
        """The name of the active profile; "" is all apps."""
        return next((name for name, profile in self.profiles.items() if profile.active), "")

    def set_profile(self, name: str, apps: Iterable[str] | None) -> list[Stored]:
        """Make or change a profile; None removes it. Raises `UseError` for an app that is not there."""
        if apps is None:
            self._profile(name)
            return [Stored(PROFILE, name)]
        if not name.strip() or len(name) > 80:
            raise UseError(f"{excerpt(name)} cannot be the name of a profile.", "Give it a word.")
        classes = tuple(dict.fromkeys(apps))
        for each in classes:
            self.app(each)
        profile = Profile(classes, name == self.active)
        return [Stored(PROFILE, name, msgspec.to_builtins(profile))]

    def activate(self, name: str) -> list[Stored]:
        """Work with one profile; "" with all apps."""
        if name:
            self._profile(name)
        changed = {n: p for n, p in self.profiles.items() if p.active != (n == name)}
        return [
            Stored(PROFILE, n, msgspec.to_builtins(Profile(p.apps, n == name))) for n, p in changed.items()
        ]

    def _profile(self, name: str) -> Profile:
        if name not in self.profiles:
            near = did_you_mean(nearest(name, self.profiles))
            raise UseError(
                f"There is no profile {excerpt(name)}.", near or "`textor apps profile` lists them."
            )
        return self.profiles[name]

    # -- reading ---------------------------------------------------------------------------

    def app(self, app_class: str) -> App:
        """The app of a class, or of the area of its names. Raises `UseError` with the nearest."""
        found = self.apps.get(app_class)
        found = found or next((a for a in self.apps.values() if a.launch.area == app_class), None)
        if found is None:
            near = did_you_mean(nearest(app_class, self.apps))
            raise UseError(f"There is no app {excerpt(app_class)}.", near or "`textor apps` lists them.")
        return found

    def in_profile(self, profile: str | None = None) -> list[App]:
        """The apps of a profile, by default of the active one."""
        name = self.active if profile is None else profile
        if not name or name not in self.profiles:
            return list(self.apps.values())
        return [self.apps[each] for each in self.profiles[name].apps if each in self.apps]

    def catalogue(self, profile: str | None = None) -> Catalogue:
        """What lines are compiled against; the same object until something changes."""
        name = self.active if profile is None else profile
        if name not in self._catalogues:
            found = [TELL]
            for app in self.in_profile(name):
                found.append(self.capabilities[f"{app.launch.area}.{START}"])
                found += [self.capabilities[entry.name] for entry in app.entries.values()]
            self._catalogues[name] = Catalogue(found)
        return self._catalogues[name]

    def examples_of(self, app: App, profile: str | None = None) -> list[ExampleForm]:
        name = self.active if profile is None else profile
        return [x for x in self.examples.values() if x.app_class == app.name and x.profile in ("", name)]


def _put(into: dict[str, Any], key: str, value: Json, type: Any) -> None:
    if value is None:
        into.pop(key, None)
    else:
        into[key] = msgspec.convert(value, type)


def _claimed(app: App) -> Conflict:
    path, arguments = app.owner
    return Conflict(
        f"The class {excerpt(app.name)} belongs to {' '.join((path, *arguments))}.",
        "Only that program may change it; `textor apps remove` gives the name free.",
    )


def size_of(form: ExampleForm) -> int:
    return len(form.question) + sum(map(len, form.answers))


def check_program(form: Form) -> None:
    """Raises `UseError` when a LAUNCH names nothing that can be started here."""
    path = Path(form.path)
    if not path.is_absolute():
        raise UseError(f"AppPath {excerpt(form.path)} is no whole path of this machine.", "Give all of it.")
    if not path.is_file():
        raise UseError(f"There is no program {form.path}.", "AppPath is where the program lies.")
    if not os.access(path, os.X_OK):
        raise UseError(f"{form.path} cannot be executed.", "Make it executable.")


def capability_of(entry: Entry) -> Capability:
    """The capability as every dialect sees it."""
    form = entry.form
    usual: tuple[Effect, ...] = ("read",) if form.method == "GET" or form.kind == "UI" else ("write",)
    schema = form.schema
    if schema is None:
        schema = _TEXT if form.contract or "[" in form.action else _NOTHING
        if schema is _TEXT and "[" not in form.action:
            schema = {**_TEXT, "required": []}
    return Capability(
        entry.name,
        form.description or form.action.replace("[]", "").strip(),
        schema,
        effects=usual if form.effects is None else form.effects,
        repeat="idempotent" if form.method == "GET" and form.repeat == "once" else form.repeat,
        phrases=(form.action,),
        examples=form.examples,
        provider=PROVIDER,
        cancellable=False,
    )


def launch_capability(launch: Launch) -> Capability:
    """`email.start`. The person said yes to the program when it was registered, so that opening
    its window is no more than a change of what is on the screen."""
    form = launch.form
    named = form.app_class
    return Capability(
        f"{launch.area}.{START}",
        form.description or f"Start {named}.",
        _NOTHING,
        effects=("write",) if form.effects is None else form.effects,
        phrases=(form.action,),
        examples=form.examples or (f"open {named}", f"launch the {named} app"),
        provider=PROVIDER,
        cancellable=True,
    )
