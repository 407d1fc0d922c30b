"""The versions on this machine: what is built, what became of its trial, which one is in use."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import site
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

import textor
from textor.errors import UseError
from textor.journal.lock import FileLock
from textor.values import sha256_of

State = Literal["built", "passed", "failed"]
#: A package by its name, with extras, versions and a condition. Nothing that names a place to get it
#: from, since getting it from there could run what lies there.
_NEED = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[A-Za-z0-9._, -]*\])?\s*([<>=!~][^@;/]*)?(;[^@]*)?$")
_TAG = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$")
#: Seconds that a version's source may take to be compiled.
COMPILING = 120
#: The version that was installed, whatever it is.
INSTALLED = ""


class Version(msgspec.Struct, frozen=True):
    """A version that was built. `why` says why its trial or its use failed, `image` is the image of
    it ("": there is none), `tried` says where its trial ran."""

    tag: str
    commit: str
    state: State = "built"
    why: str = ""
    image: str = ""
    tried: str = ""


class Ledger(msgspec.Struct, frozen=True):
    """What the supervisor knows. `current` and `previous` are tags, "" the installed version;
    `wanted` is a tag that somebody asked for and that was not looked at yet; `doing` says what the
    supervisor is about just now, "" when nothing is under way."""

    current: str = INSTALLED
    previous: str = INSTALLED
    wanted: str | None = None
    doing: str = ""
    versions: dict[str, Version] = {}
    log: tuple[str, ...] = ()


class Versions:
    """The folder `versions` of the data folder, and the repository that tags come from."""

    def __init__(self, data: Path, repository: Path | None = None) -> None:
        self.data = data
        self.folder = data / "versions"
        self._repository = repository

    @property
    def repository(self) -> Path:
        """Raises `UseError` when there is none."""
        found = self._repository or repository()
        if found is None:
            raise UseError(
                "There is no repository of Textor's source.", "Set TEXTOR_REPOSITORY to a checkout of it."
            )
        return found

    # -- the ledger ------------------------------------------------------------------------

    def read(self) -> Ledger:
        try:
            return msgspec.json.decode((self.folder / "ledger.json").read_bytes(), type=Ledger)
        except FileNotFoundError:
            return Ledger()
        except (OSError, msgspec.DecodeError) as error:
            raise UseError(f"{self.folder / 'ledger.json'} cannot be read: {error}.") from None

    @contextlib.contextmanager
    def change(self) -> Iterator[dict[str, object]]:
        """Fields of the ledger to be changed: put them into the mapping that is given."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(self.folder / "lock")
        try:
            if not lock.take(10):
                raise UseError("The versions are being changed by another process.", "Try again.")
            fields: dict[str, object] = {}
            ledger = self.read()
            yield fields
            draft = self.folder / "ledger.draft"
            draft.write_bytes(
                msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(ledger, **fields)))
            )
            draft.replace(self.folder / "ledger.json")
        finally:
            lock.close()

    def note(self, version: Version) -> None:
        """Keep what is known of a version."""
        with self.change() as fields:  # read under the lock, or what another one notes now would be lost
            fields["versions"] = {**self.read().versions, version.tag: version}

    def say(self, sentence: str) -> None:
        """A line of the supervisor's log, the last hundred of which are kept."""
        with self.change() as fields:
            fields["log"] = (*self.read().log[-99:], sentence)

    def want(self, tag: str) -> None:
        """Leave a wish for the supervisor. Raises `UseError` when others hold the ledger for long."""
        with self.change() as fields:
            fields["wanted"] = tag

    # -- building --------------------------------------------------------------------------

    def tags(self) -> list[str]:
        """The tags of the repository, the newest first."""
        told = self._git("for-each-ref", "--sort=-creatordate", "--format=%(refname:short)", "refs/tags")
        return told.decode().split()

    def commit(self, tag: str) -> str:
        """The commit of a tag. Raises `UseError` with the known tags."""
        if _TAG.match(tag) and ".." not in tag:
            with contextlib.suppress(UseError):
                return (
                    self._git("rev-parse", "--verify", "--quiet", f"refs/tags/{tag}^{{commit}}")
                    .decode()
                    .strip()
                )
        raise UseError(f"There is no tag {tag!r:.100}.", f"Tags: {', '.join(self.tags()[:10]) or 'none'}.")

    def python(self, tag: str) -> Path:
        """The interpreter that runs a version."""
        if tag == INSTALLED:
            return Path(sys.executable)
        return self.home(self.read().versions[tag].commit) / "venv" / "bin" / "python"

    def build(self, tag: str) -> Version:
        """Build a tag, unless it is: its source, and an environment that runs it.

        Where it needs the packages that this version needs, it borrows ours; else they are
        installed, as wheels. Nothing of it is run. Raises `UseError` with the end of what the
        installer said.
        """
        commit = self.commit(tag)
        known = self.read().versions.get(tag)
        home = self.home(commit)
        if known is not None and known.commit == commit and (home / "done").exists():
            return known
        shutil.rmtree(home, ignore_errors=True)
        source = home / "source"
        source.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(self._git("archive", "--format=tar", commit))) as archive:
            archive.extractall(source, filter="data")
        if not (source / "src" / "textor").is_dir():
            raise UseError(f"The tag {tag} holds no src/textor.")
        self._environment(home / "venv", source)
        # where it is tried it may not write, and would compile itself at each start; this only reads it
        compiled = [sys.executable, "-I", "-S", "-m", "compileall", "-q", "-j", "0", str(source / "src")]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(compiled, capture_output=True, check=False, timeout=COMPILING)
        (home / "done").touch()
        version = Version(tag, commit)
        self.note(version)
        return version

    def home(self, commit: str) -> Path:
        """Where a build lies: `source` and `venv`."""
        return self.folder / "builds" / commit[:16]

    def _environment(self, place: Path, source: Path) -> None:
        wanted = needs(source)
        try:
            same = wanted == needs(self._ours())
        except UseError:  # this program was installed without its source
            same = False
        made = [
            sys.executable,
            "-P",
            "-m",
            "venv",
            "--clear",
            *(["--without-pip"] if same else []),
            str(place),
        ]
        _run(made, "The environment cannot be made")
        packages = Path(_packages_of(place))
        paths = [str(source / "src")]
        if same:
            paths += [*site.getsitepackages(), sysconfig.get_paths()["purelib"]]
        else:
            install = [str(place / "bin" / "python"), "-P", "-m", "pip", "install", "--quiet"]
            _run([*install, "--only-binary", ":all:", *wanted], "Its packages cannot be installed")
        (packages / "textor-source.pth").write_text("\n".join(dict.fromkeys(paths)) + "\n")

    def _ours(self) -> Path:
        """The source of the version that runs this, for what it needs."""
        return Path(textor.__file__).parent.parent.parent

    def _git(self, *arguments: str) -> bytes:
        return _run(["git", "-C", str(self.repository), *arguments], "git failed")

    # -- the state -------------------------------------------------------------------------

    def copy_state(self, to: Path) -> None:
        """A copy of all that a version reads and writes, taken while another one runs. Raises
        `UseError` where it cannot be taken (the disk is full)."""
        shutil.rmtree(to, ignore_errors=True)
        journal = self.data / "journal.db"
        blobs = self.data / f"{journal.name}-blobs"
        try:
            to.mkdir(parents=True, mode=0o700)
            if journal.exists():
                with (
                    contextlib.closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as ours,
                    contextlib.closing(sqlite3.connect(to / journal.name)) as theirs,
                ):
                    ours.backup(theirs)
            if blobs.is_dir():
                shutil.copytree(blobs, to / blobs.name)
        except (OSError, sqlite3.Error) as error:
            raise UseError(f"The state cannot be copied to {to}: {error}.", "Free some space.") from None


def repository() -> Path | None:
    """The checkout of Textor's source: TEXTOR_REPOSITORY, else where this program lies in one."""
    if named := os.environ.get("TEXTOR_REPOSITORY"):
        return Path(named)
    place = Path(textor.__file__).resolve().parent.parent.parent
    return place if (place / ".git").exists() else None


def needs(source: Path, extra: str = "") -> tuple[str, ...]:
    """The packages that a source tree asks for, or those of one of its extras; sorted.

    Raises `UseError` when it does not say, or asks for what is no package of an index by its name.
    """
    try:
        project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
        told = project["optional-dependencies"][extra] if extra else project["dependencies"]
        wanted = tuple(sorted(str(need) for need in told))
    except (OSError, ValueError, KeyError, TypeError):
        what = f"the extra {extra}" if extra else "it"
        raise UseError(f"pyproject.toml does not say which packages {what} needs.") from None
    for need in wanted:
        if not _NEED.match(need):
            raise UseError(f"It needs {need!r:.100}, which is no package of an index by its name.")
    return wanted


def wheels(wanted: Sequence[str], folder: Path) -> Path:
    """Wheels of packages for the Python that runs here, with that of pip, in a folder of their own
    below `folder`; fetched once. Raises `UseError` with the end of what pip said."""
    name = sha256_of("\n".join([*wanted, sys.version]).encode())[:16]
    place, draft = folder / name, folder / f"{name}.{os.getpid()}"
    if not place.exists():
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        fetch = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--only-binary", ":all:"]
        try:
            _run([*fetch, "--dest", str(draft), "pip", *wanted], "Packages cannot be fetched")
            with contextlib.suppress(OSError):  # another process was quicker
                draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return place


def _packages_of(place: Path) -> str:
    """The folder of packages of an environment, as Python computes it."""
    variables = {"base": str(place), "platbase": str(place)}
    return sysconfig.get_path("purelib", "venv", variables)


def _run(command: list[str], what: str) -> bytes:
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UseError(f"{what}: {' '.join(told[-3:]) or f'exit status {done.returncode}'}")
    return done.stdout
