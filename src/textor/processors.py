"""The models of a machine: made once each, by id, as the configuration says."""

from __future__ import annotations

import msgspec

from textor.config import Config
from textor.events import Definition
from textor.models.port import Model

BOX_MODEL = "embedded:smollm2"  #: the model in the box
#: What writes down the lines that a person wrote or accepted (see `textor.broker.typed`).
TYPED_LINES = "typed:lines"


class ModelInfo(msgspec.Struct, frozen=True):
    """One row of the list of models. Prices in US dollars per million tokens, None if unknown."""

    id: str
    window: int
    price_input: float | None
    price_output: float | None
    available: bool
    note: str = ""


class Models:
    """Models by id, each made once."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._made: dict[str, Model] = {}

    def add(self, model: Model) -> None:
        self._made[model.id] = model

    def __call__(self, id: str) -> Model:
        if id not in self._made:
            self._made[id] = self._make(id)
        return self._made[id]

    def _make(self, id: str) -> Model:
        if id.startswith("embedded:"):
            from textor.models.box import BoxModel

            return BoxModel(id, self._config.data)
        if id == TYPED_LINES:
            from textor.broker.typed import Typed

            return Typed()
        from textor.models.registry import resolve
        from textor.models.remote import RemoteModel

        return RemoteModel(resolve(id, self._config.providers))

    async def close(self) -> None:
        for model in self._made.values():
            close = getattr(model, "close", None) or getattr(model, "aclose", None)
            if close is not None:
                await close()


def model_for(config: Config, definition: Definition, model: str = "") -> str:
    """The model an agent of this type uses: named, configured, its own, the default, or the box."""
    configured = config.models.get(definition.type, "")
    return model or configured or definition.model or config.models.get("default", "") or BOX_MODEL


def named_models(config: Config) -> list[str]:
    """The models that the configuration names, and the one in the box."""
    named = [BOX_MODEL, *config.models.values()]
    for provider, settings in config.providers.items():
        named += [f"{provider}:{name}" for name in settings.models]
    return [*dict.fromkeys(named)]
