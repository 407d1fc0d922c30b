"""Files of a workspace that programs of this machine run, or go by, without being told to.

`git status` runs what `core.fsmonitor` names, a commit runs hooks, an editor runs the tasks of a
folder that it opens. So who writes there runs code outside the sandbox, with all rights of the
person, a moment later. The gate asks before an action names such a place, and the sandboxes show
what is there read only. A whole repository stays writable but for these few files, so that commits
work inside; its settings and hooks do not.

This program is among them, with the environment that it runs in: it holds the gate, the supervisor and
the trials of its versions, which are to be outside the reach of those whom they judge.

What a name cannot protect, since it is not there yet (a new repository, a `commondir`), is looked for
after each command: `Standing.changes`.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import sysconfig
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from textor.capabilities.opening import opened_file, state_of

#: Folders and files that act by themselves, at any depth. Those of agents steer them.
NAMES = frozenset(
    {
        *(".git", ".hg", ".jj", ".textor", ".vscode", ".idea", ".zed", ".husky", ".githooks"),
        *(".claude", ".codex", ".cursor", ".gemini", ".mcp.json", ".envrc", ".exrc", ".nvim.lua"),
    }
)
#: Of these git itself must write a part.
GIT = ".git"
#: What in the folder of a repository says what is run, or where that is said.
SAYS = ("config", "config.worktree", "hooks", "commondir", "gitdir")
#: Of these git needs none in an ordinary repository: made by a command, they are moved aside.
UNWANTED = ("commondir", "config.worktree")
ASIDE = "from-sandbox"

#: Folders that are looked at in search of repositories, the nearest first.
MOST_FOLDERS = 4000
MOST_ENTRIES = 10_000  #: of one folder
LONGEST = 1_000_000  #: bytes of settings that are read
_PASSED = frozenset({"node_modules", "__pycache__", ".venv"})
_INNER = frozenset({"objects", "refs", "logs", "hooks"})  #: of a repository
_ELSEWHERE = re.compile(r"(?im)^[^#;\n]*?\b(hookspath|path)\s*=\s*\"?([^\"\n]+)")


def _own() -> tuple[Path, ...]:
    """The real places of this program: its package, and its environment or what packages are put into."""
    environment = sys.prefix if sys.prefix != sys.base_prefix else sysconfig.get_path("purelib")
    return Path(os.path.realpath(Path(__file__).parents[1])), Path(os.path.realpath(environment))


OWN = _own()


def holds_own(path: Path) -> bool:
    """Whether this program lies in a real place, so that who moves or removes that takes it along."""
    return any(own.is_relative_to(path) for own in OWN)


def is_live(path: Path, workspace: Path) -> bool:
    """Whether a real place, in the workspace or elsewhere, is or lies in what acts by itself."""
    root = Path(os.path.realpath(workspace))
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    if any(plain(part) in NAMES for part in inside.parts) or any(path.is_relative_to(own) for own in OWN):
        return True
    within = [folder for folder in path.parents if folder.is_relative_to(root)]
    return any(
        _is_repository(folder) or any(path.is_relative_to(named) for named in _named(folder / GIT, root))
        for folder in within
    )


def plain(name: str) -> str:
    """A name as a file system may take it that ignores case, forms of letters and what has no width."""
    if name.isascii():  # nearly all are, and a workspace has many
        return name.casefold().rstrip(" .")
    seen = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    return seen.casefold().rstrip(" .")


Mark = tuple[int, int]  #: device and inode


@dataclass(frozen=True)
class Standing:
    """What acts by itself in a workspace at one moment, by real places.

    `kept` are folders that stay writable and stay where they are, `fixed` what may only be read;
    outer ones first. `marks` are the repositories, each with what tells it from another in its place;
    `files` tells the same of `fixed`: whoever replaces a file takes away what is mounted over it.
    """

    kept: tuple[Path, ...]
    fixed: tuple[Path, ...]
    marks: tuple[tuple[Path, Mark], ...]
    files: tuple[Mark, ...]

    def changes(self, workspace: Path) -> list[str]:
        """After a command: moves aside what steers a repository and was not there, and tells what
        else is new; sentences for who ran it."""
        told: list[str] = []
        for place, _ in self.marks:
            for path in (place / name for name in UNWANTED):
                if path not in self.fixed and os.path.lexists(path):
                    with suppress(OSError):
                        path.rename(path.with_name(f"{path.name}.{ASIDE}"))
                    told.append(f"{_shown(path, workspace)} steers git outside the sandbox: moved aside.")
        now = standing(workspace)
        for place, mark in now.marks:
            within = any(place != known and place.is_relative_to(known) for known, _ in self.marks)
            if (place, mark) not in self.marks and not within:
                told.append(
                    f"{_shown(place, workspace)} is a new repository: its hooks and settings run on this "
                    "machine as soon as git is used there outside the sandbox."
                )
        known = {*self.fixed, *(place for place, _ in now.marks)}
        for path in now.fixed:
            if path not in known and not any(path.is_relative_to(place) for place, _ in now.marks):
                told.append(f"{_shown(path, workspace)} is new; programs of this machine go by it.")
        return told


def standing(workspace: Path) -> Standing:
    """Look around in a workspace. Makes a missing folder `hooks`, so that it can be kept as it is."""
    root = Path(os.path.realpath(workspace))
    marks: list[tuple[Path, Mark]] = []
    kept: list[Path] = []
    fixed: list[Path] = []
    for path in _found(root):
        if plain(path.name) in NAMES and plain(path.name) != GIT:
            fixed.append(path)
            continue
        marks.append((path, _mark(path)))
        if path.is_symlink():
            continue  # where it leads is found as well; nothing can be put over a link itself
        if path.is_dir():
            kept.append(path)
            fixed += _steering(path, root)
        else:
            fixed.append(path)  # the file by which a worktree or a submodule names its repository
    for own in OWN:
        if own != root and own.is_relative_to(root) and root != Path(root.anchor):
            fixed.append(own)
            kept += [folder for folder in own.parents if folder != root and folder.is_relative_to(root)]
    fixed = sorted(dict.fromkeys(fixed), key=lambda path: len(path.parts))
    kept = sorted(dict.fromkeys(kept), key=lambda path: len(path.parts))
    return Standing(tuple(kept), tuple(fixed), tuple(marks), tuple(map(_mark, fixed)))


def _mark(path: Path) -> Mark:
    try:
        status = path.lstat()
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _found(root: Path) -> Iterator[Path]:
    """Repositories and the other live places below a folder, the nearest first; links are none."""
    waiting = deque([root])
    if root == Path(root.anchor):
        return  # nothing is shut in there
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        folder = waiting.popleft()
        bare = _is_repository(folder)
        if bare:
            yield folder
        try:
            entries = sorted(islice(os.scandir(folder), MOST_ENTRIES), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = plain(entry.name)
            if name == GIT and (
                entry.is_symlink() or not entry.is_dir() or not _is_repository(Path(entry.path))
            ):
                yield Path(entry.path)
            elif name in NAMES and name != GIT and not entry.is_symlink():
                yield Path(entry.path)
                continue
            if entry.is_dir(follow_symlinks=False) and entry.name not in (_INNER if bare else _PASSED):
                waiting.append(Path(entry.path))


def _is_repository(folder: Path) -> bool:
    """Whether git takes a folder for one, whatever its name is."""

    def there(name: str) -> bool:
        return os.path.exists(f"{folder}/{name}")  # noqa: PTH110 - asked of each folder of a workspace

    return there("HEAD") and (there("commondir") or (there("objects") and there("refs")))


def _steering(place: Path, root: Path) -> Iterator[Path]:
    """The files of a repository that say what is run, with what its settings name in the workspace."""
    if _is_repository(place):
        with suppress(OSError):
            (place / "hooks").mkdir(exist_ok=True)
    for name in SAYS:
        path = place / name
        if (real := _within(path, root)) is not None and real.exists():
            yield real
    yield from (named for named in _named(place, root) if named.exists())


def _named(place: Path, root: Path) -> Iterator[Path]:
    """What the settings of a repository name in the workspace: folders of hooks, further settings."""
    for key, told in _ELSEWHERE.findall(_settings(place / "config")):
        base = place.parent if key.lower() == "hookspath" else place
        named = _within(base / os.path.expanduser(told.strip()), root)  # noqa: PTH111
        if named is not None and named not in (root, place) and not place.is_relative_to(named):
            yield named


def _settings(path: Path) -> str:
    """The text of a file of settings; "" for what is none (a pipe would never end)."""
    real = Path(os.path.realpath(path))
    try:
        if not stat.S_ISREG(state_of(real).st_mode):
            return ""
        with opened_file(real) as descriptor:
            return os.read(descriptor, LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _within(path: Path, root: Path) -> Path | None:
    real = Path(os.path.realpath(path))
    return real if real.is_relative_to(root) else None


def _shown(path: Path, workspace: Path) -> str:
    root = Path(os.path.realpath(workspace))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
