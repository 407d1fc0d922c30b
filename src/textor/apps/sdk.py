"""Make an app: a program with a page of its own whose functions an intelligence can call.

    app = App("note", Note)

    @app.action("write note []")
    def write(text: str) -> None:
        "Write the note anew."
        app.state.text = text

    app.main()

The function becomes a route (`POST /write` with `{"text": …}`, or `{"Text": …}` as the document on the
AI enabled operating system has it), a JSON Schema, and a capability that `--install` registers. The
state is one typed document that the page shows and edits; a person and the AI share it.

A plain function runs as one change: what it does to `app.state` is kept, versioned and shown when
it returns, and undone when it raises. An `async` one may wait (for a mail server, say) and puts each
change into `with app.change(label):`, without waiting inside.
"""

from __future__ import annotations

import contextvars
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
from starlette.applications import Starlette

from textor.actions import Effect, Repeat
from textor.apps.action import Action, Method, Picture, Result, Returns, answer
from textor.apps.files import data_folder
from textor.apps.store import By, Refused, S, Store
from textor.errors import UseError

__all__ = ["App", "Picture", "Refused", "Result", "State"]

F = TypeVar("F", bound=Callable[..., Any])


class State(msgspec.Struct, kw_only=True):
    """What an app keeps: a struct with typed fields, each with a default."""


class Example(msgspec.Struct, frozen=True):
    """A question of a person and the action lines that answer it."""

    question: str
    answers: tuple[str, ...]


class Saved(msgspec.Struct, frozen=True):
    """A document that is kept. `changed` is a Unix time."""

    id: str
    title: str
    changed: float


class App(Generic[S]):
    """One program.

    `name` is its class ("column chart"), by which it registers and keeps its data. `page` is the
    folder of its page (see `textor.apps.frame`); without one, a page is made from the fields of the
    state. With `documents`, which gives the title of a state, the app keeps many
    documents and each window begins a new one; otherwise all windows share one. `window` makes
    what belongs to one process and is not kept, such as a form that is being filled in. `draw` gives
    the picture of a state as SVG, for the page and for saving. `may_edit` says which fields a page
    may set directly; by default all.
    """

    def __init__(
        self,
        name: str,
        state: Callable[[], S],
        *,
        title: str = "",
        page: Path | None = None,
        documents: Callable[[S], str] | None = None,
        window: Callable[[], msgspec.Struct] | None = None,
        draw: Callable[[S], str] | None = None,
        may_edit: Callable[[S, str], bool] | None = None,
        start: str = "",
        purpose: str = "",
        version: str = "1.0",
        icon: str = "",
    ) -> None:
        if not name.strip() or "/" in name or name.strip(".") == "":
            raise UseError(f"{name!r} cannot be the name of an app.", "Give it a plain word or two.")
        self.name = name
        self.title = title or name.capitalize()
        self.page = page
        self.documents = documents
        self.draw = draw
        self.may_edit = may_edit
        self.start = start or f"start {name} application"
        self.purpose = purpose or f"open {self.title} with a new window"
        self.version = version
        self.icon = icon or (page_icon(page) if page else "")
        self.actions: dict[str, Action] = {}  #: by method and route, "POST subject"
        self.examples: list[Example] = []
        self.store: Store[S] = Store(state, window)
        self._by: contextvars.ContextVar[By] = contextvars.ContextVar("by", default="ai")

    # -- defining ----------------------------------------------------------------------------

    def action(
        self,
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
    ) -> Callable[[F], F]:
        """Make a function a capability.

        `phrase` has `[]` where a parameter stands, in the order of the parameters. `route` is by
        default the name of the function. `effects` are what it does to the world beyond the app's
        own document ("outward" for sending); `examples` further ways to say it. `returns` is read from
        the type; a `Result` that holds a picture says "image" here. `hidden` is for
        what only the page uses.
        """

        def register(function: F) -> F:
            made = Action(
                function,
                phrase,
                route=route,
                method=method,
                effects=effects,
                repeat=repeat,
                examples=examples,
                max_body=max_body,
                returns=returns,
                hidden=hidden,
            )
            key = f"{made.method} {made.route}"
            if key in self.actions:
                raise UseError(f"{self.actions[key].name!r} has the route {key!r} already.", "Give another.")
            self.actions[key] = made
            return function

        return register

    def example(self, question: str, *answers: str) -> None:
        """Teach by a conversation: what a person says, and the action lines to write."""
        self.examples.append(Example(question, answers))

    # -- the state ---------------------------------------------------------------------------

    @property
    def state(self) -> S:
        return self.store.state

    @property
    def by(self) -> By:
        """Who asked for the action that runs: "person" from the page, "ai" from elsewhere."""
        return self._by.get()

    @contextmanager
    def change(self, label: str, *, final: bool = False) -> Iterator[None]:
        """One change, for `async` actions; a `final` one cannot be taken back, nor what came before."""
        with self.store.change(self.by, label, final=final):
            yield

    async def run(self, action: Action, arguments: dict[str, Any], by: By) -> dict[str, Any]:
        """Carry out one action: the JSON of its result. Raises `TextorError`."""
        token = self._by.set(by)
        try:
            if action.is_async:
                value = await action.function(**arguments)
            else:
                with self.store.change(by, action.label):
                    value = action.function(**arguments)
        finally:
            self._by.reset(token)
        return answer(value, action.label) | {"version": self.store.version}

    # -- where things are kept ---------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """Where this app keeps its documents."""
        return data_folder() / "apps" / self.name.replace(" ", "-")

    @property
    def files(self) -> Path:
        """The folder beside the open document, for what belongs to it."""
        return self.folder / f"{self.store.id}.files"

    def open(self, id: str) -> None:
        """Show another document. Raises `Refused` when there is none of that id."""
        path = self.folder / f"{id}.json"
        if id not in {saved.id for saved in self.saved()}:
            raise Refused(f"There is no document {id[:80]!r}.", status=404)
        self.store.open(path)

    def new(self) -> None:
        """Begin a new document; a file is written with its first change."""
        self.store.open(self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}.json")

    def begin(self) -> None:
        """The document and the window of a new process."""
        if self.store.fresh_window:
            self.store.window = self.store.fresh_window()
        if self.documents is None:
            self.store.open(self.folder / "document.json")
        else:
            self.new()

    def saved(self) -> list[Saved]:
        """The kept documents, the last changed first; a file that cannot be read is left out."""
        found: list[Saved] = []
        for path in self.folder.glob("*.json"):
            try:
                state = msgspec.convert(msgspec.json.decode(path.read_bytes())["state"], type(self.state))
                title = self.documents(state) if self.documents else self.title
                found.append(Saved(path.stem, title, path.stat().st_mtime))
            except (OSError, KeyError, TypeError, msgspec.MsgspecError):
                continue
        return sorted(found, key=lambda saved: -saved.changed)

    # -- running -----------------------------------------------------------------------------

    def asgi(self, token: str = "") -> Starlette:
        """The web application; with a token, whoever calls it has to bring it."""
        from textor.apps.web import create_app

        return create_app(self, token)

    def capabilities(self) -> list[dict[str, Any]]:
        """What `--install` registers, LAUNCH first, in the JSON of the document."""
        from textor.apps.register import capabilities

        return capabilities(self)

    def main(self, argv: Sequence[str] | None = None) -> NoReturn:
        """The command line: `[PORT] [--install|--uninstall]`; ends the process."""
        from textor.apps.run import main

        sys.exit(main(self, sys.argv[1:] if argv is None else argv))


def page_icon(page: Path) -> str:
    """The icon beside a page, as SVG text."""
    path = page / "icon.svg"
    return path.read_text("utf-8") if path.exists() else ""
