"""Registrations that came without the token: kept in memory until a person says yes or no.

Bounded, because anybody on this machine may send them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from textor.broker.book import Book
from textor.broker.forms import ExampleForm, Form
from textor.errors import UseError
from textor.events import Stored
from textor.near import excerpt

MOST_CLASSES = 20
MOST_FORMS = 200  #: of one class
MOST_TEXT = 500_000  #: bytes of one class


class Waiting:
    """By class, in the order in which they came."""

    def __init__(self) -> None:
        self._forms: dict[str, list[Form | ExampleForm]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, form: Form | ExampleForm) -> None:
        """Keep one. LAUNCH begins its class anew. Raises `UseError` beyond the bounds."""
        name = form.app_class
        if isinstance(form, Form) and form.kind == "LAUNCH":
            self.drop(name)
        if name not in self._forms and len(self._forms) >= MOST_CLASSES:
            raise UseError("Too many apps wait for a yes of the person already.", "Ask them to answer.")
        size = self._sizes.get(name, 0) + len(msgspec.json.encode(form))
        if len(self._forms.get(name, ())) >= MOST_FORMS or size > MOST_TEXT:
            raise UseError(f"{name} has sent more than can wait.", f"{MOST_FORMS} registrations can.")
        self._forms.setdefault(name, []).append(form)
        self._sizes[name] = size

    def drop(self, name: str) -> None:
        self._forms.pop(name, None)
        self._sizes.pop(name, None)

    def get(self, name: str) -> Sequence[Form | ExampleForm]:
        """What waits of a class. Raises `UseError` when nothing does."""
        if name not in self._forms:
            known = ", ".join(self._forms) or "nothing"
            raise UseError(f"No app {excerpt(name)} waits for an answer.", f"Waiting: {known}.")
        return tuple(self._forms[name])

    def listed(self, book: Book) -> list[dict[str, Any]]:
        """What a person decides about: the program, and all that it would register."""
        return [self._one(name, book) for name in self._forms]

    def _one(self, name: str, book: Book) -> dict[str, Any]:
        forms = [form for form in self._forms[name] if isinstance(form, Form)]
        launch = next((form for form in forms if form.kind == "LAUNCH"), None)
        known = book.apps.get(name)
        owner = known.owner if known else ("", ())
        path, arguments = (launch.path, launch.arguments) if launch else owner
        taken = known is not None and launch is not None and known.owner != (launch.path, launch.arguments)
        return {
            "class": name,
            "title": (launch.title if launch else "") or name,
            "program": [path, *arguments] if path else [],
            "known": known is not None,
            "conflict": f"{name} belongs to {' '.join((owner[0], *owner[1]))}" if taken else "",
            "capabilities": [
                {"phrase": f.action, "purpose": f.description, "kind": f.kind, "effects": f.effects}
                for f in forms
            ],
            "examples": [
                {"question": x.question, "answers": list(x.answers)}
                for x in self._forms[name]
                if isinstance(x, ExampleForm)
            ],
        }


def events_of(book: Book, form: Form | ExampleForm) -> list[Stored]:
    """The events of either kind of registration."""
    return book.register(form) if isinstance(form, Form) else book.teach(form)
