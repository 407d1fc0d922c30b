"""From a model id and the configuration to a `Server`: what is missing or wrong is said here.

A model id is "provider:name". Providers are the known ones and any other that the configuration
gives a `base_url`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from textor.errors import ConfigError, UseError
from textor.models.known import KNOWN, Provider
from textor.models.server import (
    FIRST_EVENT_TIMEOUT,
    FREE,
    REQUEST_TIMEOUT,
    TAKEN,
    Prices,
    Server,
    SystemRole,
)
from textor.near import did_you_mean, nearest
from textor.settings import ModelSettings, ProviderSettings

T = TypeVar("T")

_NOTHING = ProviderSettings()
_AS_THE_PROVIDER = ModelSettings()


def resolve(
    model_id: str, providers: Mapping[str, ProviderSettings], env: Mapping[str, str] | None = None
) -> Server:
    """The server behind a model id.

    Raises `UseError` for an id that is none or whose provider is not known, and `ConfigError` for a
    missing key or a temperature out of range. Asks no server.
    """
    environment = os.environ if env is None else env
    provider_name, colon, name = model_id.partition(":")
    if not colon or not provider_name or not name:
        raise UseError(
            f'"{model_id}" is no model id.',
            'It is written provider:name, for example "oai:gpt-4o" or "ollama:llama3.2".',
        )
    settings = providers.get(provider_name, _NOTHING)
    known = KNOWN.get(provider_name)
    if known is None and not settings.base_url:
        raise UseError(
            f'There is no provider "{provider_name}" (in "{model_id}").',
            _others(provider_name, providers),
        )
    provider = known or Provider(provider_name, provider_name, settings.base_url)
    model = settings.models.get(name, _AS_THE_PROVIDER)
    server = _server(provider, name, settings, model)
    return _with_key(server, provider, settings, environment)


def _server(provider: Provider, name: str, settings: ProviderSettings, model: ModelSettings) -> Server:
    own_address = bool(settings.base_url)
    temperature = model.temperature if model.temperature is not None else settings.temperature
    if temperature is not None and not 0 <= temperature <= provider.temperature:
        where = f"providers.{provider.name}"
        if model.temperature is not None:
            where += f'.models."{name}"'
        raise ConfigError(
            f"{where}.temperature is {temperature:g}, which {provider.title} does not take.",
            f"It is a number from 0 to {provider.temperature:g}; the file is told by `textor config path`.",
        )
    return Server(
        provider.name,
        name,
        (settings.base_url or provider.base_url).rstrip("/"),
        protocol=provider.protocol,
        context_window=_first(model.context_window, settings.context_window),
        assumed_window=provider.window,
        max_tokens=_first(model.max_tokens, settings.max_tokens),
        system_role=_system_role(provider, settings, model),
        temperature=temperature,
        native_tools=settings.native_tools is not False,
        json_schema=provider.json_schema if settings.json_schema is None else settings.json_schema,
        gbnf=bool(settings.gbnf),
        media=TAKEN if (media := _first(model.media, settings.media)) is None else media,
        completion_tokens=provider.completion_tokens,
        reasoning_field=provider.reasoning_field,
        args={**settings.args, **model.args},
        request_timeout=settings.request_timeout or REQUEST_TIMEOUT,
        first_event_timeout=settings.first_event_timeout or FIRST_EVENT_TIMEOUT,
        prices=_prices(model) or (FREE if provider.free and not own_address else None),
        # At another address the same name may cost something else.
        price_id="" if own_address else provider.price_id,
    )


def _with_key(
    server: Server, provider: Provider, settings: ProviderSettings, env: Mapping[str, str]
) -> Server:
    key = settings.api_key or (env.get(provider.key, "") if provider.key else "")
    if not key and provider.key and not settings.base_url:
        raise ConfigError(
            f"{provider.title} ({server.id}) needs a key, and there is none.",
            f"Set the environment variable {provider.key}, or api_key under [providers.{provider.name}] "
            "in the configuration file (see `textor config path`).",
        )
    return msgspec.structs.replace(server, api_key=key)


def _system_role(provider: Provider, settings: ProviderSettings, model: ModelSettings) -> SystemRole:
    as_user = model.system_as_user if model.system_as_user is not None else settings.system_as_user
    if as_user is None:
        return provider.system_role
    return "first" if as_user else "all"


def _prices(model: ModelSettings) -> Prices | None:
    if model.price_input is None or model.price_output is None:
        return None
    return Prices(model.price_input, model.price_output, model.price_cached)


def _first(one: T | None, two: T | None) -> T | None:
    return one if one is not None else two


def _others(name: str, providers: Mapping[str, ProviderSettings]) -> str:
    """What the provider may have been meant to be, and how to add one."""
    names = [*KNOWN, *(n for n in providers if n not in KNOWN), "embedded"]
    meant = did_you_mean(nearest(name, names)) or f"Known are: {', '.join(names)}."
    return f"{meant} Another one is added by base_url under [providers.{name}] in the configuration file."
