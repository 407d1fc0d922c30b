"""One action as the gate looks at it: where it acts, what it depends on, what it names.

The arguments are looked at as the provider will get them (converted by the schema), so that a path
inside a JSON text is seen as the path that it will be.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from textor import addresses
from textor.actions import Action, Capability
from textor.arguments import ArgumentError, convert
from textor.capabilities.live import holds_own, is_live, plain
from textor.capabilities.opening import opened_file, state_of
from textor.capabilities.places import Judged, Place, map_paths, place, resolve
from textor.errors import CapabilityError
from textor.kernel.state import AgentState, State
from textor.values import Json, Labels, merge_labels, sha256_of

#: Labels of data of the person, which must not get out; all others are of data from outside.
PRIVATE = "private:"

#: Bytes of a program whose content an approval is bound to; a bigger one by its size and time.
LONGEST_PROGRAM = 8_000_000

#: Arguments of a capability with the effect `network` that say where it goes, by name or format.
_ADDRESS_NAMES = frozenset(
    {"url", "uri", "href", "link", "address", "host", "hostname", "domain", "endpoint"}
)
_ADDRESS_FORMATS = frozenset({"uri", "url", "iri", "hostname", "idn-hostname", "uri-reference"})
#: Arguments that go along with a request, beyond its address.
_SENT = frozenset(
    {"body", "data", "payload", "content", "headers", "json", "form", "params", "cookies", "files"}
)


@dataclass(frozen=True)
class Look:
    action: Action  #: with converted arguments
    capability: Capability
    workspace: Path
    place: Place
    digest: str
    judged: dict[str, Judged]  #: where its paths lead
    labels: Labels  #: of data from outside that the arguments or the turn depend on
    private: bool  #: the agent has read data of the person
    own: bool  #: the arguments are a person's own
    guarded: tuple[Path, ...]  #: Textor's own files that it would touch
    live: bool  #: it would change what runs by itself
    addresses: tuple[str, ...]  #: where it goes, as far as the arguments say
    sends: bool  #: it sends something along beyond the address
    given: frozenset[str]
    read: frozenset[str]

    def named(self, address: str) -> bool:
        """Whether a person named the host of an address, or a page read the address itself."""
        if "://" not in address:
            host = addresses.host_of(address)
            if host is None or address.lower().rstrip(".") != host:  # it says more than a host
                return self.named(f"https://{address}") or self.named(f"http://{address}")
            known = self.given if addresses.is_local(host) else self.given | self.read
            return host in {addresses.host_of(each) for each in known}
        full, root = addresses.normal(address), addresses.origin(address)
        if full is None or root is None:
            return False
        roots = {addresses.origin(each) for each in self.given}
        if root in roots or (root.startswith("https://") and f"http://{root[8:]}" in roots):
            return True
        host = addresses.host_of(address) or ""
        # who looks a name up sees its capitals as well, so they are letters like others
        exact = address.partition("://")[2].startswith(host)
        return full in self.read and exact and not self.sends and not addresses.is_local(host)


def look(
    action: Action, capability: Capability, state: State, agent: AgentState, guarded: Sequence[Path] = ()
) -> Look:
    """Reads the file system (links), changes nothing."""
    assert state.created is not None
    workspace = Path(state.created.workspace)
    seen = replace(action, arguments=arguments_of(action, capability))
    judged = _judged(seen, capability, workspace)
    paths = tuple(each.place for each in judged.values())
    touched = _touched(paths, workspace, capability, guarded)
    where: Place = "host" if touched else place(seen, capability, workspace)
    labels = merge_labels(action.labels, agent.turn.labels if agent.turn else agent.labels)
    network = "network" in capability.effects
    return Look(
        seen,
        capability,
        workspace,
        where,
        digest_of(action, where, judged, workspace),
        judged,
        outside(labels),
        any(label.startswith(PRIVATE) for label in labels),
        any(work.own for work in agent.work if work.action.id == action.id),
        touched,
        "write" in capability.effects and any(is_live(path, workspace) or holds_own(path) for path in paths),
        tuple(dict.fromkeys(_addresses(seen.arguments, capability.parameters))) if network else (),
        any(value and name.lower() in _SENT for name, value in seen.arguments.items()),
        state.given,
        state.read,
    )


def digest_of(action: Action, place: Place, judged: Mapping[str, Judged], workspace: Path) -> str:
    """What an approval is bound to: capability, arguments and place; where links lead, and what a
    program holds that is run on the host."""
    root = os.path.realpath(workspace)
    more: list[tuple[str, str, str]] = []
    for path, found in judged.items():
        straight = str(found.place) == os.path.normpath(Path(root, os.path.expanduser(path)))  # noqa: PTH111
        if found.content or not straight:
            within = found.place.is_relative_to(root)
            shown = found.place.relative_to(root) if within else found.place
            more.append((path, "" if straight else str(shown), found.content))
    told = (action.capability, action.arguments, place, *sorted(more))
    return sha256_of(msgspec.json.encode(told, order="sorted"))


def arguments_of(action: Action, capability: Capability) -> dict[str, Json]:
    """The arguments as the provider gets them; as they are where they do not fit and never run."""
    try:
        return convert(action.arguments, capability.parameters)
    except ArgumentError:
        return action.arguments


def outside(labels: Labels) -> Labels:
    """The labels of data from outside."""
    return tuple(label for label in labels if not label.startswith(PRIVATE))


def names_paths(action: Action, capability: Capability) -> bool:
    """Whether there is a path among the arguments."""
    found: list[str] = []

    def note(path: str) -> str:
        found.append(path)
        return path

    map_paths(action.arguments, capability.parameters, note)
    return bool(found)


def _judged(action: Action, capability: Capability, workspace: Path) -> dict[str, Judged]:
    """The real places that the arguments name by path; of programs for the host, what they hold."""
    found: dict[str, Judged] = {}
    runs = "execute" in capability.effects and not capability.sandboxed

    def note(path: str) -> str:
        try:
            place = resolve(path, workspace)
        except CapabilityError:
            return path  # no file system can hold it, so nothing happens there
        found[path] = Judged(place, _content(place) if runs else "")
        return path

    map_paths(action.arguments, capability.parameters, note)
    return found


def _content(place: Path) -> str:
    """The hash of a file; "" for what is none."""
    try:
        status = state_of(place)
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size > LONGEST_PROGRAM:
            return f"{status.st_size} {status.st_mtime_ns}"
        with opened_file(place) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            return sha256_of(file.read())
    except (OSError, ValueError):
        return ""


def _touched(
    paths: Sequence[Path], workspace: Path, capability: Capability, guarded: Sequence[Path]
) -> tuple[Path, ...]:
    """Those of Textor's own files that lie at, below or (if it changes something) above a path."""
    changes = capability.effects != ("read",)
    if "execute" in capability.effects:
        paths = (*paths, Path(os.path.realpath(workspace)))
    if not paths:
        return ()
    real = [Path(os.path.realpath(path)) for path in guarded]
    return tuple(
        own
        for own in real
        for path in map(folded, paths)
        if path.is_relative_to(folded(own)) or (changes and folded(own).is_relative_to(path))
    )


def folded(path: Path) -> Path:
    """A place as a file system names it that ignores case and forms of letters, for what forbids."""
    return Path(*(plain(part) or part for part in path.parts))


def _addresses(value: Json, schema: Any, name: str = "") -> Iterator[str]:
    """All that looks like an address among arguments, by its form or by what the schema says."""
    schema = schema if isinstance(schema, dict) else {}
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for key, item in value.items():
            yield from _addresses(item, properties.get(key), key)
    elif isinstance(value, list):
        for item in value:
            yield from _addresses(item, schema.get("items"), name)
    elif isinstance(value, str) and value.strip():
        word = value.strip()
        told = schema.get("format") in _ADDRESS_FORMATS or name.lower() in _ADDRESS_NAMES
        if told or addresses.is_bare(word):
            yield word
        else:
            yield from addresses.urls_in(value)
