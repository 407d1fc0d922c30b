"""The provider `apps`: what programs have registered, as capabilities of every dialect.

LAUNCH starts an instance (`email.start`), an HTTP action is sent to the newest instance of its class
or to the one a person pointed at, a UI action shows its text. What is running stands in the journal
of `machine`, so that it is found again when this process ends and another one takes over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from textor.actions import Action, Capability, Outcome
from textor.broker.book import PORT, PROVIDER, TELL, App, Book, Entry, Record
from textor.broker.calls import TIMEOUT, Unsure, call, outcome_of
from textor.broker.launch import PATIENCE, Launcher
from textor.broker.names import in_words
from textor.broker.store import Store
from textor.capabilities.port import Scope
from textor.capabilities.registry import Registry
from textor.errors import CapabilityError, UseError
from textor.events import Stored
from textor.journal.port import Journal


class AppsProvider:
    """Apps over one journal. `data` is where their files are, None keeps none; `patience` are the
    seconds in which an app has to be ready, `timeout` those of one call."""

    name = PROVIDER

    def __init__(
        self,
        journal: Journal,
        data: Path | None = None,
        *,
        patience: float = PATIENCE,
        timeout: float = TIMEOUT,
    ) -> None:
        self.book = Book()
        self.store = Store(journal, self.book)
        self.launcher = Launcher(data, patience=patience)
        self._timeout = timeout

    async def connect(self, registry: Registry) -> None:
        """Be up to date from now on, and have the registry know what is offered."""
        self.book.reserved = lambda: registry.areas(but=PROVIDER)
        self.store.changed = lambda: registry.refresh(self)
        await self.store.load()
        self.store.follow()

    async def capabilities(self) -> Sequence[Capability]:
        return list(self.book.capabilities.values())

    async def adopt(self, sessions: Sequence[str] = ()) -> None:
        """This process is the host now: what an earlier one started is found again or forgotten."""
        await self.store.load()
        await self.prune(proof=True)

    async def close(self) -> None:
        """Let go; the apps go on, for their windows are the person's."""
        await self.store.close()

    # -- instances ---------------------------------------------------------------------------

    async def prune(self, *, proof: bool = False) -> list[Record]:
        """Forget the instances that are gone, or are not what they were; the others, oldest first."""
        records = list(self.book.records.values())
        there = await asyncio.gather(*(self.launcher.is_there(each, proof=proof) for each in records))
        gone = [each for each, lives in zip(records, there, strict=True) if not lives]
        if gone:
            await self._forget(gone)
        return [each for each, lives in zip(records, there, strict=True) if lives]

    async def start(self, app_class: str) -> Record:
        """Start an instance and wait until it is ready. Raises `CapabilityError`, `UseError`."""
        app = self.book.app(app_class)
        record = await self.launcher.launch(app)
        try:
            await self._keep(record)
        except BaseException:  # nobody would ever find it again
            await asyncio.shield(self.launcher.stop(record))
            raise
        return record

    async def stop(self, id: str) -> Record:
        """End one instance by its id, or the newest of a class. Raises `UseError`."""
        record = self.book.records.get(id) or self._newest(self.book.app(id))
        if record is None:
            raise UseError(f"{id} is not running.", "`textor apps` shows what is.")
        await self.launcher.stop(record)
        await self._forget([record])
        return record

    def address(self, record: Record) -> str:
        """Where a person opens this window in a browser. For apps of our SDK its token is in the
        fragment, which browsers send to nobody."""
        token = f"#token={self.launcher.token(record)}" if record.speaks == "sdk" else ""
        return f"http://127.0.0.1:{record.port}/{token}"

    async def point_at(self, id: str) -> Record:
        """From now on this instance gets the calls of its class. Raises `UseError`."""
        if id not in self.book.records:
            known = ", ".join(self.book.records) or "none"
            raise UseError(f"There is no instance {id!r}.", f"There is: {known}.")
        record = msgspec.structs.replace(self.book.records[id], chosen=time.time())
        await self._keep(record)
        return record

    async def _keep(self, record: Record) -> None:
        await self.store.write(lambda: [Stored(PORT, record.id, msgspec.to_builtins(record))])

    async def _forget(self, records: Sequence[Record]) -> None:
        await self.store.write(lambda: [Stored(PORT, record.id) for record in records])

    def _newest(self, app: App) -> Record | None:
        of_class = [r for r in self.book.records.values() if r.app_class == app.name]
        return max(of_class, key=lambda r: max(r.started, r.chosen), default=None)

    async def _instance(self, app: App) -> Record:
        """The instance that a call goes to. Raises `CapabilityError` when none is there: the port of
        one that has gone may be another program's by now, so nothing is sent there."""
        lost: list[Record] = []
        while (record := self._newest(app)) is not None:
            if await self.launcher.is_there(record):
                return record
            lost.append(record)
            await self._forget([record])
        hint = f"Start it first: {app.launch.form.action}."
        if lost:
            raise CapabilityError(f"{app.name} has ended; its window is gone.", hint)
        raise CapabilityError(f"{app.name} is not running.", hint)

    # -- actions -----------------------------------------------------------------------------

    async def invoke(self, action: Action, scope: Scope) -> Outcome:
        if action.capability == TELL.name:
            return _shown(str(action.arguments.get("text", "")), scope)
        found = self.book.owners.get(action.capability)
        if found is None:
            return Outcome.failed(f"No app offers {action.capability!r} now.")
        app, entry = found
        if entry is None:
            record = await self.start(app.name)
            text = f"{app.launch.form.title or app.name} is open (port {record.port})."
            return Outcome("done", text, data={"instance": record.id, "port": record.port})
        if entry.form.kind == "UI":
            return _shown(_words(action), scope)
        return await self._call(app, entry, action, scope)

    async def _call(self, app: App, entry: Entry, action: Action, scope: Scope) -> Outcome:
        record = await self._instance(app)
        form, what = entry.form, in_words(entry.form.action)
        token = self.launcher.token(record) if record.speaks == "sdk" else ""
        try:
            answer = await call(form, record.port, token, action.arguments, self._timeout)
        except Unsure as error:
            if self.book.capabilities[action.capability].repeat != "once":
                return Outcome.failed(f"{app.name}: {error}")
            return Outcome(
                "unknown", f"{app.name}: {error} It may have done it or not; look before you repeat it."
            )
        except CapabilityError as error:
            return Outcome.failed(f"{app.name}: {error}")
        return outcome_of(answer, what, app.name, scope.blobs)


def _shown(text: str, scope: Scope) -> Outcome:
    """A text for the person: at once as a delta, and as the outcome for good."""
    scope.progress(text)
    return Outcome("done", text)


def _words(action: Action) -> str:
    return "\n".join(
        v if isinstance(v, str) else msgspec.json.encode(v).decode() for v in action.arguments.values()
    )
