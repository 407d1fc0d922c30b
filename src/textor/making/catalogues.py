"""Where modules of others are looked for: the catalogues that a person configured, and no others.

Folders hold `.py` modules, found by their docstrings. A registry speaks the interface of the MCP
registry (https://registry.modelcontextprotocol.io, `GET /v0/servers?search=`). A package index is only
asked for a package by its exact name (`GET /pypi/NAME/json`). Git addresses are told when their words
fit. What was found is told and neither fetched nor started.
"""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from textor.errors import CapabilityError
from textor.memory.bm25 import Bm25
from textor.settings import ModuleSettings
from textor.values import Labels, clean_text

MOST = 10  #: found in one catalogue
PATIENCE = 10.0  #: seconds for one answer
BIGGEST = 4 << 20  #: bytes of one answer
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")


class Hit(msgspec.Struct, frozen=True):
    """A module of others. `how` is the way to have it."""

    name: str
    purpose: str
    how: str
    catalogue: str

    def __str__(self) -> str:
        return f"{self.name}: {self.purpose or 'says nothing of itself'} ({self.how}; from {self.catalogue})"


class Found(msgspec.Struct, frozen=True):
    """`silent` says of each catalogue that did not answer why."""

    hits: tuple[Hit, ...] = ()
    silent: tuple[str, ...] = ()
    labels: Labels = ()


async def search(settings: ModuleSettings, query: str) -> Found:
    """What the configured catalogues have for a query. `CapabilityError` where there are none."""
    if not (settings.catalogues or settings.registries or settings.index or settings.git):
        raise CapabilityError(
            "No catalogue of modules is configured.",
            "A person names some under [modules] in the configuration; or write the module.",
        )
    hits = await asyncio.to_thread(_in_folders, settings.catalogues, query)
    labels: tuple[str, ...] = tuple(f"catalogue:{hit.catalogue}" for hit in hits)
    hits += _git(settings.git, query)
    silent: list[str] = []
    asked = [(base, _registry(base, query)) for base in settings.registries]
    if settings.index and _PACKAGE.fullmatch(query.strip()):
        asked.append((settings.index, _package(settings.index, query.strip())))
    answers = await asyncio.gather(*(answer for _, answer in asked), return_exceptions=True)
    for (base, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, CapabilityError):
            silent.append(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            hits += answer
            labels = (*labels, f"catalogue:{_host(base)}")
    return Found(tuple(hits), tuple(silent), tuple(dict.fromkeys(labels)))


def _host(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2] or address


def _in_folders(folders: tuple[str, ...], query: str) -> list[Hit]:
    known = [hit for folder in folders for hit in _listed(Path(folder).expanduser())]
    return [known[at] for at in Bm25(f"{hit.name} {hit.purpose}" for hit in known).best(query)[:MOST]]


def _listed(folder: Path) -> list[Hit]:
    hits: list[Hit] = []
    for path in sorted(folder.glob("*.py")):
        try:
            told = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue  # what cannot be read cannot be loaded either
        hits.append(Hit(path.stem, _short(told), f"modules.load with source {path}", str(folder)))
    return hits


def _git(addresses: tuple[str, ...], query: str) -> list[Hit]:
    words = [re.sub(r"[^A-Za-z0-9]+", " ", urlsplit(each).path.removesuffix(".git")) for each in addresses]
    return [
        Hit(
            words[at].split()[-1],
            "a git repository",
            f"git clone {addresses[at]}, then review it",
            _host(addresses[at]),
        )
        for at in Bm25(words).best(query)[:MOST]
    ]


async def _registry(base: str, query: str) -> list[Hit]:
    told = await _get(f"{base.rstrip('/')}/v0/servers?search={quote(query, safe='')}&limit={MOST}")
    servers = told.get("servers") if isinstance(told, dict) else None
    hits: list[Hit] = []
    for each in servers if isinstance(servers, list) else ():
        server = each.get("server", each) if isinstance(each, dict) else None
        if isinstance(server, dict) and isinstance(server.get("name"), str):
            purpose = _short(str(server.get("description") or ""))
            hits.append(Hit(_short(server["name"]), purpose, _ways(server), _host(base)))
    return hits[:MOST]


def _ways(server: dict[str, Any]) -> str:
    """How a server of a registry is had: at an address, or as a package."""
    for remote in server.get("remotes") or ():
        if isinstance(remote, dict) and isinstance(remote.get("url"), str):
            return f"modules.load with address {_short(remote['url'])}"
    for package in server.get("packages") or ():
        if isinstance(package, dict):
            kind = package.get("registryType") or package.get("registry_type") or "a registry"
            version = f" {package['version']}" if package.get("version") else ""
            return _short(
                f"the package {package.get('identifier') or package.get('name')}{version} of {kind}"
            )
    return "it does not say how it is reached"


async def _package(base: str, name: str) -> list[Hit]:
    told = await _get(f"{base.rstrip('/')}/pypi/{quote(name, safe='')}/json")
    info = told.get("info") if isinstance(told, dict) else None
    if not isinstance(info, dict):
        return []
    shown = _short(f"{info.get('name') or name} {info.get('version') or ''}".strip())
    how = f"a person adds it: textor modules add NAME -- uvx {name}"
    return [Hit(shown, _short(str(info.get("summary") or "")), how, _host(base))]


async def _get(address: str) -> Any:
    """The JSON at an address; None for what is not there. `CapabilityError` when nothing usable comes."""
    import httpx2

    host = _host(address)
    try:
        async with (
            asyncio.timeout(PATIENCE),
            httpx2.AsyncClient(timeout=PATIENCE) as client,
            client.stream("GET", address) as response,
        ):
            if response.status_code == 404:
                return None
            if response.status_code != 200:
                raise CapabilityError(f"The catalogue {host} answers with status {response.status_code}.")
            content = b""
            async for part in response.aiter_bytes():
                content += part
                if len(content) > BIGGEST:
                    raise CapabilityError(f"The catalogue {host} answers with more than {BIGGEST >> 20} MiB.")
        return msgspec.json.decode(content)
    except TimeoutError:
        raise CapabilityError(f"The catalogue {host} did not answer within {PATIENCE:g} seconds.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise CapabilityError(f"The catalogue {host} does not answer: {error}.") from None
    except msgspec.DecodeError:
        raise CapabilityError(f"The catalogue {host} does not answer with JSON.") from None


def _short(text: str) -> str:
    line = " ".join(clean_text(text).split())
    return line if len(line) <= 200 else f"{line[:199]}…"
