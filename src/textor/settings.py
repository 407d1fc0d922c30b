"""Plain settings that more than one organ reads: they stand on the ground, next to the errors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
ADDRESS = r"^https?://[^\s/]+"
ADDRESS_OR_NONE = rf"^$|{ADDRESS}"


class SandboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which sandbox generated commands run in, and the hosts that may be reached out of it.

    `auto` is a container where an engine has `image`, else `local`: bubblewrap or sandbox-exec.
    """

    kind: Literal["auto", "docker", "podman", "local", "none"] = "auto"
    image: str = "textor-sandbox"
    network: tuple[str, ...] = ()


#: A pattern for commands begins with the program itself.
COMMAND = r"^(?:[A-Za-z0-9_./+-]+(?: \S.*)?)?$"


class RuleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of the gate: what holds for a capability ("shell.run", "files.*") whose arguments meet
    all conditions.

    `equals` wants exact values, `below` a path in a folder, `host` an address at a host; each by the
    name of an argument. `command` is a pattern for the argument of that name: literal words, and a
    last `*` for any that follow. `place` "" is both.
    """

    capability: Annotated[str, Meta(min_length=1)]
    verdict: Literal["allow", "ask", "deny"]
    equals: dict[str, Any] = {}
    below: dict[str, str] = {}
    host: dict[str, str] = {}
    command: Annotated[str, Meta(pattern=COMMAND)] = ""
    place: Literal["", "workspace", "host"] = ""


class ContainerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What agents may do with containers: images that need no asking, folders beside the workspace,
    and what each container may use (`memory` in MiB)."""

    images: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    memory: Annotated[int, Meta(ge=16)] = 2048
    cpus: Annotated[float, Meta(gt=0)] = 2.0
    processes: Count = 256


#: An image as an engine names it; "" for none.
IMAGE_OR_NONE = r"^$|^[a-z0-9][A-Za-z0-9._/:@-]*$"


class SelfSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What images of Textor itself are made over: a Debian with Python 3.11 or newer; "" for none."""

    base: Annotated[str, Meta(pattern=IMAGE_OR_NONE)] = ""


class ModuleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where modules of others are looked for: folders of Python modules, addresses of MCP registries,
    that of a package index (asked for exact names alone), and addresses of git repositories."""

    catalogues: tuple[str, ...] = ()
    registries: tuple[Annotated[str, Meta(pattern=ADDRESS)], ...] = ()
    index: Annotated[str, Meta(pattern=ADDRESS_OR_NONE)] = ""
    git: tuple[str, ...] = ()


class EmailSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The account that the app `email` sends from (`[apps.email]`).

    `sender` is an address, with a name if you like. `security` "tls" speaks TLS from the first byte
    (port 465), "starttls" begins it on a plain connection (587), "none" is for this machine. The
    server's certificate is checked against those of the system, and those in the PEM file
    `certificates` if one is named. Without `password` it is asked of the keyring.
    """

    host: str = ""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    certificates: str = ""
    user: str = ""
    password: str = ""
    sender: str = ""


class AppSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person sets for plans and for the apps in the box. `facts` stand before each request of
    a plan, beside the name of the account and the time; an empty text leaves one of these out."""

    facts: dict[str, str] = {}
    email: EmailSettings = EmailSettings()


Medium = Literal["image", "audio", "file"]


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one model of a provider; None means "as the provider says".

    Prices are US dollars for a million tokens.
    """

    context_window: int | None = None
    max_tokens: int | None = None
    system_as_user: bool | None = None
    temperature: float | None = None
    price_input: float | None = None
    price_output: float | None = None
    price_cached: float | None = None
    media: tuple[Medium, ...] | None = None
    args: dict[str, Any] = {}


class ProviderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person configured for one provider of models (`[providers.NAME]`).

    `base_url` is needed for a provider that Textor does not know and overrides that of a known
    one. `args` are further fields of the request's body, passed on as they are. `models` holds
    what differs for single models, by the name that the server knows them by. `gbnf` says that
    the server takes a grammar in the request (llama.cpp), `json_schema` that it takes
    `response_format`, `media` what it takes beside text; times are in seconds.
    """

    base_url: str = ""
    api_key: str = ""
    context_window: int | None = None
    max_tokens: int | None = None
    system_as_user: bool | None = None
    temperature: float | None = None
    native_tools: bool | None = None
    json_schema: bool | None = None
    gbnf: bool | None = None
    media: tuple[Medium, ...] | None = None
    request_timeout: float | None = None
    first_event_timeout: float | None = None
    args: dict[str, Any] = {}
    models: dict[str, ModelSettings] = {}
