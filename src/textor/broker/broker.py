"""The broker of one machine: its apps, its plans, and the registrations that wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from textor.broker.book import Conflict
from textor.broker.compiler import Compiler
from textor.broker.forms import ExampleForm, Form
from textor.broker.plans import Make, Plans
from textor.broker.provider import AppsProvider
from textor.broker.waiting import Waiting, events_of
from textor.embedding import Embedder
from textor.errors import UseError
from textor.kernel.services import Services


class Broker:
    """`make`, `model` and `facts` as for `Plans`; `compiler` is shared with the kernel."""

    def __init__(
        self,
        services: Services,
        apps: AppsProvider,
        compiler: Compiler,
        make: Make,
        model: Callable[[str], str],
        facts: Mapping[str, str],
    ) -> None:
        self.apps = apps
        self.compiler = compiler
        self.waiting = Waiting()
        self.plans = Plans(services, apps.book, compiler, make, model, facts)

    @property
    def embedder(self) -> Embedder | None:
        return self.compiler.embedder

    async def decide(self, name: str, allow: bool) -> int:
        """A person's answer about what waits of a class; returns how much was registered. Raises
        `UseError` when nothing waits, `Conflict` when something of it cannot be: then none of it is."""
        forms = self.waiting.get(name)
        if not allow:
            self.waiting.drop(name)
            return 0
        try:
            await self.register(forms)
        except UseError as error:
            raise Conflict(error.message, error.hint) from None
        self.waiting.drop(name)
        return len(forms)

    async def register(self, forms: Sequence[Form | ExampleForm]) -> None:
        """Registrations in their order, all of them or none."""
        book = self.apps.book
        await self.apps.store.write(*(partial(events_of, book, form) for form in forms))

    async def close(self) -> None:
        await self.plans.close()
