"""What the environment says of the configuration.

`TEXTOR_MODEL` is the default model, `TEXTOR_DATA` the data folder and `TEXTOR_<SECTION>_<KEY>` any
other key (`TEXTOR_SERVER_PORT`, `TEXTOR_PROVIDERS_LM_STUDIO_BASE_URL`); tables and lists are given as
JSON. The variables that other programs use for a provider's key fill in what is not said. An
empty variable counts as not set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from textor import explain
from textor.errors import ConfigError
from textor.settings import (
    AppSettings,
    ContainerSettings,
    EmailSettings,
    ModuleSettings,
    ProviderSettings,
    SandboxSettings,
    SelfSettings,
)

#: Provider -> the variables that hold its key and its address by custom.
USUAL: dict[str, tuple[str, str]] = {
    "oai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "mistral": ("MISTRAL_API_KEY", ""),
    "groq": ("GROQ_API_KEY", "GROQ_BASE_URL"),
    "deepseek": ("DEEPSEEK_API_KEY", ""),
    "openrouter": ("OPENROUTER_API_KEY", ""),
    "apipie": ("APIPIE_API_KEY", ""),
    "ollama": ("OLLAMA_API_KEY", ""),
}

#: Providers whose name holds a "-", which no variable's name can.
DASHED = ("lm-studio",)

_SHORT = {"TEXTOR_MODEL": ("models", "default"), "TEXTOR_DATA": ("data",)}


def apply(tree: dict[str, Any], env: Mapping[str, str], sources: dict[str, str]) -> Iterator[str]:
    """Lay the environment over `tree`, note in `sources` what it set, and yield warnings."""
    for name in sorted(env):
        text = env[name]
        if not name.startswith("TEXTOR_") or name == "TEXTOR_CONFIG" or not text:
            continue
        path = _SHORT.get(name) or _path(name, tree)
        if path:
            put(tree, path, _value(name, text, path))
            sources[explain.dotted(path)] = f"the environment variable {name}"
        elif guess := _guess(name):
            yield f"The environment variable {name} is not known{guess}"
    _usual(tree, env, sources)


def put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a key in nested tables, making those on the way."""
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _sections() -> dict[str, type[msgspec.Struct]]:
    from textor import config

    return {
        "limits": config.LimitSettings,
        "server": config.ServerSettings,
        "gate": config.GateSettings,
        "context": config.ContextSettings,
        "sandbox": SandboxSettings,
        "containers": ContainerSettings,
        "modules": ModuleSettings,
        "self": SelfSettings,
        "apps.email": EmailSettings,
        "apps": AppSettings,
    }


def _path(name: str, tree: dict[str, Any]) -> tuple[str, ...] | None:
    """The key that a variable names; None when its section is none of ours."""
    section, _, key = name.removeprefix("TEXTOR_").lower().partition("_")
    if not key:
        return None
    if section == "models":
        return "models", _same_name(key, tree.get("models", {}))
    if section == "providers":
        fields = ProviderSettings.__struct_fields__
        # The longest field first, so that a provider's name may itself end in one.
        for field in sorted(fields, key=len, reverse=True):
            if key.endswith(f"_{field}"):
                provider = key[: -len(field) - 1]
                return "providers", _same_name(provider, [*tree.get("providers", {}), *DASHED]), field
        raise ConfigError(
            f"The environment variable {name} ends in no key of a provider"
            f"{explain.known(key.rpartition('_')[2], fields)}."
        )
    for section, struct in _sections().items():
        begin = f"TEXTOR_{section.replace('.', '_')}_".upper()
        if not name.startswith(begin):
            continue
        key = name.removeprefix(begin).lower()
        if key not in struct.__struct_fields__:
            raise ConfigError(
                f"The environment variable {name} names no key of [{section}]"
                f"{explain.known(key, struct.__struct_fields__)}."
            )
        return *section.split("."), key
    return None


def _same_name(key: str, names: Any) -> str:
    """The name that is written `key` in a variable."""
    return next((n for n in names if n.replace("-", "_").lower() == key), key)


def _value(name: str, text: str, path: tuple[str, ...]) -> Any:
    """The text of a variable as the type of its key. What does not fit stays text, so that the
    check tells what would."""
    if path[0] in ("models", "data"):
        return text
    struct = ProviderSettings if path[0] == "providers" else _sections()[".".join(path[:-1])]
    field = next(f for f in msgspec.structs.fields(struct) if f.name == path[-1])
    try:
        if text.lstrip()[:1] in ("{", "["):
            return msgspec.json.decode(text)
        return msgspec.to_builtins(msgspec.convert(text, field.type, strict=False))
    except msgspec.ValidationError:
        return text
    except msgspec.DecodeError:
        raise ConfigError(f"The environment variable {name} holds no valid JSON.") from None


def _guess(name: str) -> str:
    known = [*_SHORT, "TEXTOR_CONFIG"]
    for section, struct in _sections().items():
        known += [f"TEXTOR_{section.replace('.', '_')}_{key}".upper() for key in struct.__struct_fields__]
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return f"; did you mean {close[0]}?" if close else ""


def _usual(tree: dict[str, Any], env: Mapping[str, str], sources: dict[str, str]) -> None:
    """Keys from the variables that other programs use too.

    Such a key is only sent to the provider that it belongs to: where a person gave that provider
    another address, the key must be given along with it.
    """
    providers = tree.get("providers", {})
    if not isinstance(providers, dict):
        return
    for provider, (key, address) in USUAL.items():
        settings = providers.get(provider, {})
        if not isinstance(settings, dict) or settings.get("base_url") or settings.get("api_key"):
            continue
        for field, name in (("api_key", key), ("base_url", address)):
            if name and (text := env.get(name, "").strip()):
                put(tree, ("providers", provider, field), text)
                sources[f"providers.{provider}.{field}"] = f"the environment variable {name}"
