"""The configuration as text: what `textor config show` prints and `textor config init` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textor.errors import ConfigError
from textor.explain import dotted

TEMPLATE = """\
# The configuration of Textor. Every key may be left out; what is commented out shows the form.
# The environment lies over this file (TEXTOR_MODEL, TEXTOR_SERVER_PORT, …), options over both.
# `textor config show` prints what is in force.

# Where journals and files are kept.
# data = "~/.local/share/textor"

[models]
# The model that is used when none is named, and one for single agent types.
# Without any, the small model in the box does what it can.
# default = "oai:gpt-4o"
# main = "anthropic:claude-sonnet-4-5"

# A provider that Textor knows needs its key, here or in its usual variable (OPENAI_API_KEY, …):
# oai, anthropic, mistral, groq, deepseek, openrouter, apipie; ollama and lm-studio need none.
# [providers.oai]
# api_key = "sk-…"

# Any other server that speaks the same language needs its address.
# [providers.mine]
# base_url = "http://127.0.0.1:8000/v1"
# api_key = ""
# context_window = 32768        # tokens
# system_as_user = false        # for servers that take no system message
# temperature = 0.2             # from 0 to 2
# args = { seed = 1 }           # further fields of the request
# [providers.mine.models."some-model"]
# context_window = 8192         # what differs for one model

[limits]
# What one turn (iterations, seconds) and one session (tokens, money in US dollars, agents) may use.
iterations = 100
agents = 50
# tokens = 200000
# money = 1.0
# seconds = 600

[server]
host = "127.0.0.1"
port = 7771

[gate]
# What may happen without being asked: "ask" asks for all that is more than reading, "edits"
# allows writing in the workspace, "yes" allows all, "deny" refuses what would be asked.
policy = "ask"
# outside = ["downloads", "*.eml"]   # files of the workspace that count as data from outside
# The first rule that fits counts; docs/gate.md tells what a rule can say.
# [[gate.rules]]
# capability = "shell.run"
# command = "git status *"
# verdict = "allow"

[context]
# The share of a model's window that a context may fill.
ratio = 0.6

[sandbox]
# Where generated commands run: "auto" takes Docker or Podman where the image is there, else
# "local" (bubblewrap or sandbox-exec); "none" asks before each command. `textor doctor` says what is in use.
kind = "auto"
# image = "textor-sandbox"
# network = ["pypi.org", "*.pythonhosted.org"]   # hosts that commands may reach; none by default

[containers]
# images = ["python:3.*"]       # images that agents may start without asking
# folders = []                  # folders beside the workspace that they may mount

# [self]
# base = "python:3.12-slim"     # what images of versions of Textor are made over; none by default

# The account that the app `email` sends from; `keyring set textor-email USER` keeps its password.
# [apps.email]
# host = "smtp.example.org"
# user = "anna"
# sender = "Anna Berg <anna@example.org>"
# security = "starttls"         # or "tls"; "none" on this machine only
"""


def create(path: Path) -> None:
    """Write the template, readable by its owner alone. An existing file is never touched."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(TEMPLATE, "utf-8")
    except FileExistsError:
        raise ConfigError(f"{path} exists already.", "It was left as it is.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from None


def write(tree: Mapping[str, Any], sources: Mapping[str, str], path: tuple[str, ...] = ()) -> str:
    """Nested tables as TOML; what was set somewhere carries a comment that says where."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in tree.items():
        here = (*path, key)
        if value is None:
            continue
        if isinstance(value, dict) and path[2:3] != ("args",) and key != "args":
            inner = write(value, sources, here)
            if any(not isinstance(v, dict) for v in value.values()):
                inner = f"[{dotted(here)}]\n{inner}"
            if inner.strip():
                tables.append(inner)
            continue
        source = sources.get(dotted(here))
        comment = f"  # {source}" if source else ""
        lines.append(f"{dotted((key,))} = {_toml(value)}{comment}")
    head = "\n".join(lines) + "\n" if lines else ""
    return "\n".join(part for part in (head, *tables) if part)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{dotted((k,))} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)
