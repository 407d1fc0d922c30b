"""What an agent may ask of a container, read and checked: volumes, ports, images, environment."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textor.capabilities.live import is_live, standing
from textor.capabilities.sandbox import SECRETS
from textor.capabilities.shell import SECRET_NAME
from textor.containers.engine import Mount
from textor.errors import CapabilityError
from textor.values import Json, sha256_of

MASK = "********"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")


@dataclass(frozen=True)
class Port:
    """A port inside, reached on 127.0.0.1 of this machine. `outside` 0 takes a free one."""

    inside: int
    outside: int = 0


def checked_name(name: str) -> str:
    if not _NAME.match(name):
        raise CapabilityError(
            f"{name!r:.80} is no name for a container.", "Use letters, digits, and . _ - (at most 63)."
        )
    return name


def volume_of(wish: Json, workspace: Path, shared: Sequence[Path]) -> Mount:
    """`FOLDER:INSIDE` or `FOLDER:INSIDE:ro`. The folder's real place (every link followed) must lie
    in the workspace or in a shared folder. `CapabilityError` with what is wrong."""
    if not isinstance(wish, str):
        raise CapabilityError(f"A volume is a text like data:/data, not {wish!r:.80}.")
    words = wish.split(":")
    writable = words[-1] != "ro"
    if words[-1] in ("ro", "rw"):
        words.pop()
    if len(words) < 2 or not words[0] or not words[-1].startswith("/"):
        raise CapabilityError(
            f"The volume {wish!r:.200} cannot be read.", "Write FOLDER:/INSIDE or FOLDER:/INSIDE:ro."
        )
    target = os.path.normpath(words[-1])
    if target == "/":
        raise CapabilityError(f"The volume {wish!r:.200} would hide the whole container.")
    source = real_place(Path(":".join(words[:-1])), workspace)
    roots = [Path(os.path.realpath(root)) for root in (workspace, *shared)]
    if not any(source.is_relative_to(root) for root in roots):
        raise CapabilityError(
            f"The volume {wish!r:.200} lies outside: {source} is in no workspace or shared folder.",
            "Copy the files into the workspace first; a person can share a folder in the configuration.",
        )
    if not source.exists():
        raise CapabilityError(f"The volume {wish!r:.200} cannot be made: there is no {source}.")
    if writable and is_live(source, workspace):
        raise CapabilityError(
            f"The volume {wish!r:.200} holds what programs of this machine run by themselves.",
            "Ask for it with :ro at its end.",
        )
    return Mount(source, target, writable)


def real_place(path: Path, workspace: Path) -> Path:
    return Path(os.path.realpath(workspace / path))


def covered(mounts: Sequence[Mount]) -> tuple[list[str], list[Mount]]:
    """What hides the places of keys in mounted home folders: folders to cover, files to blank; and
    what keeps that steady which runs outside by itself."""
    folders: list[str] = []
    files = _steady(mounts)
    for mount in mounts:
        for name in SECRETS:
            path = mount.source / name
            if path.is_symlink() or not path.exists():  # a link leads to where nothing is
                continue
            inside = f"{mount.target}/{name}"
            if path.is_dir():
                folders.append(inside)
            else:
                files.append(Mount(Path(os.devnull), inside, writable=False))
    return folders, files


def _steady(mounts: Sequence[Mount]) -> list[Mount]:
    """What keeps that in its place in mounted folders which runs outside by itself: see
    `capabilities.live`. To be mounted over them."""
    over: list[Mount] = []
    for mount in mounts:
        if not mount.writable or not mount.source.is_dir():
            continue
        found = standing(mount.source)
        for path in (*found.kept, *found.fixed):
            if path != mount.source:
                inside = f"{mount.target.rstrip('/')}/{path.relative_to(mount.source).as_posix()}"
                over.append(Mount(path, inside, writable=path in found.kept and path not in found.fixed))
    return over


def port_of(wish: Json) -> Port:
    """`8080`, `"8080"` or `"18080:8080"` (on this machine : inside)."""
    outside, _, inside = str(wish).rpartition(":")
    if not inside.isdecimal() or (outside and not outside.isdecimal()):
        raise CapabilityError(f"The port {wish!r:.80} cannot be read.", "Write 8080 or 18080:8080.")
    port = Port(int(inside), int(outside or 0))
    if not 1 <= port.inside <= 65535 or (outside and not 1024 <= port.outside <= 65535):
        raise CapabilityError(
            f"The port {wish!r:.80} is out of range.", "On this machine from 1024 to 65535."
        )
    return port


def environment_of(wish: Json) -> dict[str, str]:
    """Names and texts. `CapabilityError` for what no environment can hold."""
    if not isinstance(wish, dict):
        raise CapabilityError(f"The environment is an object of names and texts, not {wish!r:.80}.")
    for name, text in wish.items():
        if not name or "=" in name or "\0" in f"{name}{text}":
            raise CapabilityError(f"{name!r:.80} is no name of an environment variable.")
    return {name: text if isinstance(text, str) else str(text) for name, text in wish.items()}


def masked(environment: dict[str, str]) -> dict[str, str]:
    """The environment as it may be shown: what a name calls a secret is masked."""
    return {name: MASK if SECRET_NAME.search(name) else text for name, text in environment.items()}


def secrets_in(environment: dict[str, str]) -> list[str]:
    """The texts that must not be shown, the longest first. Short ones would hide half of any output."""
    found = {text for name, text in environment.items() if SECRET_NAME.search(name) and len(text) >= 6}
    return sorted(found, key=len, reverse=True)


def allowed_image(image: str, patterns: Sequence[str]) -> bool:
    """Whether a list of patterns (`python:3.*`) allows an image. An empty list allows none."""
    return any(fnmatch.fnmatchcase(image, pattern) for pattern in patterns)


def texts_of(wish: Json, what: str) -> list[str]:
    """A list of texts; one text counts as a list of one."""
    wishes = [wish] if isinstance(wish, str) else wish
    if not isinstance(wishes, list) or not all(isinstance(w, str | int | float) for w in wishes):
        raise CapabilityError(f"{what} is a list of texts, not {wish!r:.80}.")
    return [str(w) for w in wishes]


def made_name(key: str) -> str:
    """A name for a container whose maker gave none: that of the action, as far as it can be one."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", key).lstrip("_.-")[-63:] or "it"


def engine_name(session: str, key: str) -> str:
    """The name of an action's container in the engine, which allows few characters."""
    wanted = f"textor-{session}-{key}"
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted)
    return name if name == wanted else f"{name}-{sha256_of(wanted.encode())[:8]}"


def user_for(workspace: Path, mounted: bool) -> str:
    """Who runs inside: who owns the workspace when it is mounted, so that files stay theirs, else
    nobody. Root only where the workspace is root's, and then without any capability."""
    if not mounted:
        return "65534:65534"
    owner = workspace.stat()
    return f"{owner.st_uid}:{owner.st_gid}"
