"""The configuration: flags over environment over one TOML file over the defaults.

The file is `config.toml` in the platform's configuration folder, or where TEXTOR_CONFIG says.
Everything is checked when it is loaded; the first thing wrong is told in one sentence with its
file, line and key, and with what would be allowed. Secrets are never shown.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from textor import explain
from textor.errors import ConfigError
from textor.events import Limits
from textor.explain import dotted
from textor.settings import (
    ADDRESS,
    ADDRESS_OR_NONE,
    COMMAND,
    IMAGE_OR_NONE,
    AppSettings,
    ContainerSettings,
    EmailSettings,
    ModelSettings,
    ModuleSettings,
    ProviderSettings,
    RuleSettings,
    SandboxSettings,
    SelfSettings,
)

Policy = Literal["ask", "yes", "edits", "deny"]
Count = Annotated[int, Meta(ge=1)]
Steps = tuple[str | int, ...]

#: The options of the command line that lie over the configuration, for sentences.
OPTIONS = {"models.default": "--model", "server.host": "--host", "server.port": "--port"}

#: Iterations of a turn where the person set no limit: enough for long work, and an end.
ITERATIONS = 100
#: Agents of one session, the first included: what calls itself ends here.
AGENTS = 50


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the page is served. `port` 0 takes a free one. `embedding_port` is where programs of the
    AIE document ask for vectors (7770 there); 0: nowhere."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 7771
    embedding_port: Annotated[int, Meta(ge=0, le=65535)] = 0


class GateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the gate decides (see `textor.policy`): the policy of new sessions, rules of which the
    first that fits counts, and the files of a workspace that count as data from outside."""

    policy: Policy = "ask"
    rules: tuple[RuleSettings, ...] = ()
    outside: tuple[str, ...] = ()


class ContextSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`ratio` is the share of a model's window that a context may fill."""

    ratio: Annotated[float, Meta(gt=0, le=1)] = 0.6


#: Iterations of a turn that an agent type may have by its own word.
GRANTED = 1000


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`events.Limits` as it may be written in the file."""

    iterations: Count | None = ITERATIONS
    tokens: Count | None = None
    money: Annotated[float, Meta(ge=0)] | None = None
    seconds: Annotated[float, Meta(gt=0)] | None = None
    agents: Count | None = AGENTS


explain.PATTERNS[COMMAND] = "a command that begins with its program, such as git status *"
explain.PATTERNS[ADDRESS] = "an address that begins with http:// or https://"
explain.PATTERNS[ADDRESS_OR_NONE] = explain.PATTERNS[ADDRESS]
_MODEL_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]*:\S*$"
explain.PATTERNS[IMAGE_OR_NONE] = "an image, such as python:3.12-slim"
explain.PATTERNS[_MODEL_ID] = "a model id of the form provider:name (such as oai:gpt-4o)"
ModelId = Annotated[str, Meta(pattern=_MODEL_ID)]


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of a configuration file; each key may be left out."""

    data: str = ""
    models: dict[str, ModelId] = {}
    providers: dict[str, ProviderSettings] = {}
    limits: LimitSettings = LimitSettings()
    server: ServerSettings = ServerSettings()
    gate: GateSettings = GateSettings()
    context: ContextSettings = ContextSettings()
    sandbox: SandboxSettings = SandboxSettings()
    containers: ContainerSettings = ContainerSettings()
    modules: ModuleSettings = ModuleSettings()
    own: SelfSettings = msgspec.field(default=SelfSettings(), name="self")
    apps: AppSettings = AppSettings()


class Config(msgspec.Struct, frozen=True):
    """A checked configuration.

    `models` maps "default" and agent types to model ids; `data` is the folder of journals and
    blobs; `path` the file, whether or not it exists; `sources` says by dotted key what set it;
    `warnings` are sentences that a face shows once.
    """

    path: Path
    data: Path
    models: dict[str, str] = {}
    providers: dict[str, ProviderSettings] = {}
    limits: Limits = Limits(iterations=ITERATIONS, agents=AGENTS)
    server: ServerSettings = ServerSettings()
    gate: GateSettings = GateSettings()
    context: ContextSettings = ContextSettings()
    sandbox: SandboxSettings = SandboxSettings()
    containers: ContainerSettings = ContainerSettings()
    modules: ModuleSettings = ModuleSettings()
    own: SelfSettings = SelfSettings()
    apps: AppSettings = AppSettings()
    sources: dict[str, str] = {}
    warnings: tuple[str, ...] = ()

    def limits_of(self, own: Limits) -> Limits:
        """The limits of a session whose agent type asks for `own`: more iterations than the default are
        granted where no person has set them, up to `GRANTED`: the file of a type may be a stranger's."""
        asked = min(own.iterations or 0, GRANTED)
        if "limits.iterations" in self.sources or asked <= (self.limits.iterations or asked):
            return self.limits
        return msgspec.structs.replace(self.limits, iterations=asked)

    def model_for(self, agent: str) -> str:
        """The configured model id for an agent type; "" where none is configured."""
        return self.models.get(agent) or self.models.get("default", "")

    @property
    def agents(self) -> Path:
        """The person's own agent types."""
        return self.path.parent / "agents"

    def where(self, key: str) -> str:
        """What set a key, for a sentence: "models.default in /…/config.toml"."""
        source = self.sources.get(key, "the defaults")
        return f"{key} ({source})"

    def show(self) -> str:
        """The configuration as it is in force, as TOML, with every secret masked."""
        from textor.config.text import write

        return write(_masked(self), self.sources)

    def __repr__(self) -> str:  # so that a log or a traceback holds no key
        return f"Config({str(self.path)!r})"


# -- loading -------------------------------------------------------------------------------


def config_path(env: Mapping[str, str] | None = None) -> Path:
    """Where the configuration file is, or would be."""
    env = os.environ if env is None else env
    if named := env.get("TEXTOR_CONFIG"):
        return Path(named).expanduser().absolute()
    from platformdirs import user_config_path

    return user_config_path("textor", appauthor=False) / "config.toml"


def load(
    path: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Read and check the configuration.

    `env` is `os.environ` by default; `overrides` come from flags, by dotted key
    (`{"models.default": "oai:gpt-4o"}`), and None means "not given". Raises `ConfigError`.
    """
    from textor.config import env as config_env

    env = os.environ if env is None else env
    named = path is not None or bool(env.get("TEXTOR_CONFIG"))
    path = (path or config_path(env)).absolute()
    text = _read(path)
    tree = _parse(text or "", path)
    sources = {dotted(key): str(path) for key in _leaves(tree)}
    lines = {"text": text or "", "path": str(path)}
    # The file is checked before anything lies over it: a fault in it stays its own.
    _check(tree, sources, lines)
    warnings = list(config_env.apply(tree, env, sources))
    for key, value in (overrides or {}).items():
        if value is not None:
            config_env.put(tree, tuple(key.split(".")), value)
            sources[key] = OPTIONS.get(key, f"the option for {key}")
    _check(tree, sources, lines)
    file = msgspec.convert(tree, File)
    if text is None and named:
        warnings.append(f"There is no configuration file {path}; `textor config init` writes one.")
    secrets = [*(p.api_key for p in file.providers.values()), file.apps.email.password]
    if text is not None and _open_to_others(path) and any(secrets):
        warnings.append(f"Others can read the keys in {path}; `chmod 600 {path}` keeps them yours.")
    warnings += _strange_models(file.models, path)
    limits = Limits(**{f: getattr(file.limits, f) for f in LimitSettings.__struct_fields__})
    return Config(
        path=path,
        data=_data_folder(file.data),
        models=file.models,
        providers=file.providers,
        limits=limits,
        server=file.server,
        gate=file.gate,
        context=file.context,
        sandbox=file.sandbox,
        containers=file.containers,
        modules=file.modules,
        own=file.own,
        apps=file.apps,
        sources=sources,
        warnings=tuple(warnings),
    )


def _strange_models(models: dict[str, str], path: Path) -> list[str]:
    """Keys of [models] that look misspelt: any agent type may stand there, so a name that is none of
    those known here is only a warning. Raises `ConfigError` for a misspelt `default`."""
    here = {file.stem for file in (path.parent / "agents").glob("*.md")}
    box = {file.stem for file in (Path(__file__).parents[1] / "agents").glob("*.md")}
    told = []
    for key in models.keys() - here - box - {"default"}:
        from textor.near import did_you_mean, nearest

        near = nearest(key, ["default", *sorted(here | box)], 1)
        sentence = f"{path}: models.{key} is neither default nor an agent type of the box or beside this file"
        if near == ("default",):
            raise ConfigError(f"{sentence}.", did_you_mean(near))
        if near:
            told.append(f"{sentence}. {did_you_mean(near)}")
    return told


def _read(path: Path) -> str | None:
    """The text of the file; None when there is none."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None


def _data_folder(named: str) -> Path:
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("textor", appauthor=False)


def _open_to_others(path: Path) -> bool:
    return os.name == "posix" and bool(path.stat().st_mode & 0o044)


def _leaves(tree: dict[str, Any], path: Steps = ()) -> list[Steps]:
    found: list[Steps] = []
    for key, value in tree.items():
        here = (*path, key)
        found += _leaves(value, here) if isinstance(value, dict) and value else [here]
    return found


# -- checking ------------------------------------------------------------------------------

#: Ranges of the numbers in `[providers.NAME]` and its models; the structs are plain settings.
RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "context_window": (256, 100_000_000),
    "max_tokens": (1, 100_000_000),
    "request_timeout": (0.001, 86_400),
    "first_event_timeout": (0.001, 86_400),
    "price_input": (0, 1_000_000),
    "price_output": (0, 1_000_000),
    "price_cached": (0, 1_000_000),
}

_ADDRESS = re.compile(r"^https?://[^\s/]+")


def _check(tree: dict[str, Any], sources: dict[str, str], lines: dict[str, str]) -> None:
    fault = explain.find_fault(tree, File) or _provider_fault(tree.get("providers", {}))
    if fault is None:
        return
    key = dotted(fault.path)
    problem = fault.problem
    if fault.shown and any(_is_secret(str(step)) for step in fault.path):
        problem = problem.replace(fault.shown, MASK)
    source = next((s for k, s in sources.items() if k == key or k.startswith(f"{key}.")), lines["path"])
    if source == lines["path"]:
        line = line_of(lines["text"], fault.path)
        raise ConfigError(f"{source}{f', line {line}' if line else ''}: {key} {problem}")
    raise ConfigError(f"{source}: {key} {problem}")


def _provider_fault(providers: dict[str, Any]) -> explain.Fault | None:
    for name, settings in providers.items():
        if ":" in name or not name.strip():
            return explain.Fault(("providers", name), "is no name of a provider: it may hold no colon.")
        address = settings.get("base_url", "")
        if address and not _ADDRESS.match(address):
            return explain.Fault(
                ("providers", name, "base_url"), "must be an address that begins with http:// or https://."
            )
        if fault := _range_fault(settings, ("providers", name)):
            return fault
        for model, known in settings.get("models", {}).items():
            if fault := _range_fault(known, ("providers", name, "models", model)):
                return fault
    return None


def _range_fault(settings: dict[str, Any], path: Steps) -> explain.Fault | None:
    for key, (low, high) in RANGES.items():
        value = settings.get(key)
        if value is not None and not low <= value <= high:
            return explain.Fault((*path, key), f"is {value}; it must be from {low} to {high}.")
    return None


def line_of(text: str, path: Steps) -> int:
    """The line (from 1) of a TOML text where the thing at `path` is set; 0 where none is found.

    It reads headers and keys line by line, which is enough to point a person at the place.
    """
    table: Steps = ()
    best = (0, 0)
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?(.+?)\]\]?\s*(#.*)?$", line)
        if header:
            here = table = _split(header[1])
        else:
            here = (*table, *_split(line.partition("=")[0])) if "=" in line else ()
        if here and here == path[: len(here)] and len(here) > best[0]:
            best = (len(here), number)
    return best[1]


def _split(key: str) -> Steps:
    """A dotted TOML key, with its quotings, as steps."""
    try:
        node: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    steps: list[str] = []
    while isinstance(node, dict):
        ((step, node),) = node.items()
        steps.append(step)
    return tuple(steps)


# -- secrets -------------------------------------------------------------------------------

MASK = "********"
_SECRET = re.compile(r"(^|[_-])(api_?key|key|token|secret|password|authorization|auth)s?$", re.IGNORECASE)


def _is_secret(key: str) -> bool:
    return bool(_SECRET.search(key))


def mask(data: Any, key: str = "") -> Any:
    """`data` with everything masked that a key calls a secret, and passwords in addresses."""
    if isinstance(data, dict):
        return {k: mask(v, str(k)) for k, v in data.items()}
    if _is_secret(key) and data not in ("", None):
        return MASK
    if isinstance(data, list | tuple):
        return [mask(item, key) for item in data]
    if isinstance(data, str) and "://" in data:
        return re.sub(r"(://)[^/@\s]+@", rf"\1{MASK}@", data)
    return data


def _masked(config: Config) -> dict[str, Any]:
    tree = {
        "data": str(config.data),
        "models": dict(config.models),
        "limits": msgspec.to_builtins(config.limits),
        "server": msgspec.to_builtins(config.server),
        "gate": msgspec.to_builtins(config.gate),
        "context": msgspec.to_builtins(config.context),
        "sandbox": msgspec.to_builtins(config.sandbox),
        "containers": msgspec.to_builtins(config.containers),
        "modules": msgspec.to_builtins(config.modules),
        "self": msgspec.to_builtins(config.own),
        "apps": _apps_given(config.apps),
        "providers": {name: _given(p) for name, p in config.providers.items()},
    }
    masked: dict[str, Any] = mask(tree)
    return masked


def _apps_given(apps: AppSettings) -> dict[str, Any]:
    given: dict[str, Any] = {"facts": dict(apps.facts)} if apps.facts else {}
    return given | ({"email": _given(apps.email)} if apps.email != EmailSettings() else {})


def _given(settings: ProviderSettings | ModelSettings | EmailSettings) -> dict[str, Any]:
    """Only what differs from "as the provider says"."""
    given: dict[str, Any] = {}
    for key in settings.__struct_fields__:
        value = getattr(settings, key)
        if key == "models":
            value = {name: _given(model) for name, model in value.items()}
        if value not in (None, "", {}):
            given[key] = value
    return given
