"""`select_llm`: an agent goes on with another model, one of those that its person has named."""

from __future__ import annotations

from collections.abc import Callable

from textor import events as e
from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope as PortScope
from textor.capabilities.table import Entry, TableProvider, parameters
from textor.errors import CapabilityError
from textor.kernel.services import Services
from textor.layouts import room_of
from textor.near import did_you_mean, nearest
from textor.tree.scope import Scope
from textor.values import Json

SELECT = Capability(
    "select_llm",
    "Go on with another language model from the next iteration on.",
    parameters(["name"], name={"type": "string", "description": "the model, as provider:name"}),
    effects=("write",),  # it changes who decides; so it passes the gate
    repeat="keyed",
    phrases=("go on with the model []",),
)


def select_provider(services: Services, named: Callable[[], list[str]]) -> TableProvider:
    """The provider `models`. `named` are the models that an agent may choose from."""

    async def select(arguments: dict[str, Json], scope: PortScope) -> Outcome:
        assert isinstance(scope, Scope)  # the kernel hands out no other
        name = str(arguments["name"])
        if name not in named():
            hint = did_you_mean(nearest(name, named())) or f"There are: {', '.join(named())}."
            raise CapabilityError(f"The configuration names no model {name!r}.", hint)
        window = services.model(name).window
        layout = scope.state.agents[scope.agent].definition.layout
        room = room_of(layout, window, services.context_ratio)
        await scope.post(e.ModelChanged(scope.agent, name, room), f"model {scope.key}")
        await scope.until(lambda state: state.agents[scope.agent].model == name or None)
        return Outcome("done", f"You go on with {name}.")

    return TableProvider("models", [Entry(SELECT, select)])
