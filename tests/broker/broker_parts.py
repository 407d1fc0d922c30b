"""What the tests of the broker share: a machine with apps, a stranger's program, one of our SDK."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from server_parts import machine as plain_machine

from textor.actions import Action, Outcome
from textor.assembly import Machine
from textor.broker.book import Book, Record
from textor.broker.forms import read_example, read_form
from textor.broker.launch import Launcher
from textor.broker.plans import Plans
from textor.broker.provider import AppsProvider
from textor.broker.view import plan_json
from textor.capabilities.places import Judged
from textor.errors import TextorError
from textor.events import Event, Stored
from textor.journal.blobs import MemoryBlobs
from textor.testing import ScriptedModel
from textor.values import Value

HERE = Path(__file__).parent

NOTE_APP = """\
import msgspec
from textor.apps.sdk import App, State

class Note(State):
    lines: list[str] = []

app = App("note", Note)

@app.action("write note []", effects=[])
def write(text: str) -> str:
    "Add a line to the note."
    app.state.lines.append(text)
    return f"{len(app.state.lines)} lines"

@app.action("read note", method="GET", effects=["read"])
def read() -> str:
    "The whole note."
    return "\\n".join(app.state.lines)

@app.action("set cell [] to []", effects=[])
def cell(row: int, text: str) -> str:
    "Set one line of the note."
    app.state.lines[row] = text
    return "set"

@app.action("publish note", effects=["outward"])
def publish() -> str:
    "Send the note to everybody."
    return "published"

app.example("note that milk is needed", "start note application", "write note [milk]")

if __name__ == "__main__":
    app.main()
"""


def foreign(folder: Path, name: str = "foreign_app.py") -> Path:
    """The program of a stranger, as an executable file."""
    path = folder / name
    path.write_text((HERE / "foreign_app.py").read_text().replace("#!PYTHON", f"#!{sys.executable}"))
    path.chmod(0o755)
    return path


def launch_form(path: Path, app_class: str = "email", **more: Any) -> dict[str, Any]:
    return {
        "Action": f"start {app_class} application",
        "AppClass": app_class,
        "AppPath": str(path),
        "ActionType": 0,
    } | more


def http_form(action: str, route: str, app_class: str = "email", **more: Any) -> dict[str, Any]:
    """A capability as the document's programs send it."""
    told = {"Action": action, "AppClass": app_class, "ActionType": 1, "Route": route, "Method": 1}
    return (
        told | {"ContentType": "application/json", "Contract": "SingleText" if "[" in action else ""} | more
    )


def note_app(folder: Path, name: str = "note_app.py") -> list[dict[str, Any]]:
    """An app of our SDK, with all that it registers."""
    path = folder / name
    path.write_text(NOTE_APP)
    scope: dict[str, Any] = {"__name__": "note_app"}
    exec(compile(NOTE_APP, str(path), "exec"), scope)
    forms: list[dict[str, Any]] = scope["app"].capabilities()
    return [forms[0] | {"AppPath": sys.executable, "AppArguments": [str(path), "--no-window"]}, *forms[1:]]


def fill(book: Book, forms: Sequence[dict[str, Any]], examples: Sequence[dict[str, Any]] = ()) -> None:
    """Registrations straight into a book, without a journal."""
    for form in forms:
        for body in book.register(read_form(form)):
            book.apply(body)
    for example in examples:
        for body in book.teach(read_example(example)):
            book.apply(body)


async def register(apps: AppsProvider, forms: Sequence[dict[str, Any]]) -> None:
    await apps.store.write(*(partial(apps.book.register, read_form(form)) for form in forms))


class Desk:
    """The scope of an action."""

    session, agent, key = "s1", "main", "a1"

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.blobs = MemoryBlobs()
        self.judged: dict[str, Judged] = {}
        self.shown: list[str] = []

    def value(self, handle: str) -> Value:
        raise KeyError(handle)

    def progress(self, text: str) -> None:
        self.shown.append(text)

    async def perform(self, apps: AppsProvider, name: str, **arguments: Any) -> Outcome:
        """As the registry does it, which makes an outcome of an error."""
        try:
            return await apps.invoke(Action("a1", name, arguments), self)
        except TextorError as error:
            return Outcome.failed(str(error))


@contextmanager
def ending(apps: AppsProvider) -> Iterator[None]:
    """Whatever was started is ended, also when the test fails."""
    try:
        yield
    finally:
        end_all(apps.book.records.values())


def end_all(records: Any) -> None:
    for record in list(records):
        try:
            os.kill(record.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


@asynccontextmanager
async def machine(
    replies: Sequence[str] = (), *, tmp: Path, forms: Sequence[dict[str, Any]] = (), **launcher: Any
) -> AsyncIterator[Machine]:
    """A machine with a scripted model (`scripted:model`), where `forms` are registered."""
    model = ScriptedModel(list(replies), grammars=False)
    async with plain_machine(model, tmp=tmp) as made:
        made.config.models["default"] = "scripted:model"
        apps = made.broker.apps
        if launcher:
            apps.launcher = Launcher(None, **launcher)
        await register(apps, forms)
        with ending(apps):
            yield made


async def begun(machine: Machine, request: str, tmp: Path, **more: Any) -> str:
    """A plan that the scripted model has written."""
    id = await machine.broker.plans.create(request, workspace=tmp, model="scripted:model", **more)
    await machine.broker.plans.written(id)
    return id


async def run_all(plans: Plans, id: str, *args: Any, **more: Any) -> dict[str, Any]:
    """The plan once its queue has ended."""
    await plans.run(id, *args, **more)
    await plans.finished(id)
    return await plan_json(plans, id)


def calls_in(path: Path) -> list[tuple[str, str]]:
    """Route and text of each call that the stranger's program received."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [(route, body.get("Text", "")) for _, route, body in map(json.loads, lines)]


def stored(area: str, key: str, value: Any) -> Event:
    return Event(Stored(area, key, value), f"{area}{key}", 0.0)


def record(port: int, pid: int, born: str, app_class: str = "email") -> Record:
    return Record("email-x", app_class, port, pid, born, 1.0, "nonce")
