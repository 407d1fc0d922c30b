"""What the tests of versions share: a repository of Textor's own source, and what is made of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import textor
from textor.capabilities.places import Judged
from textor.journal.blobs import MemoryBlobs
from textor.versions import Version, Versions
from textor.versions.images import build_version

BASE = "textor/base:test"
SOURCE = Path(textor.__file__).parent
ROOT = SOURCE.parent.parent
#: Tests that go along, so that there are some to be run.
TESTS = ("conftest.py", "dialects/test_xml.py", "dialects/script_machine.py")
#: Names of images are told apart by it: an engine may serve several runs of these tests.
MARK = f"t{os.getpid()}"
_FUTURE = "from __future__ import annotations\n"


class Desk:
    """The scope of an action of an agent."""

    session, agent, key = "s", "main", "k"

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.blobs = MemoryBlobs()
        self.judged: dict[str, Judged] = {}

    def value(self, handle: str) -> Any:
        raise KeyError(handle)

    def progress(self, text: str) -> None:
        raise AssertionError(text)


def git(place: Path, *arguments: str) -> str:
    who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", *who, "-C", str(place), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def own_repository(place: Path) -> Path:
    """Our own source as it stands, with some of its tests, in a repository of its own."""
    shutil.copytree(SOURCE, place / "src" / "textor", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    for name in TESTS:
        (place / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / name, place / "tests" / name)
    git(place, "init")
    git(place, "add", ".")
    git(place, "commit", "-m", "first")
    return place


@dataclass
class Workshop:
    """A repository and the versions that are made of it, with an engine for their images."""

    versions: Versions

    def tag(self, name: str, code: str = "", file: str = "guard.py", old: str = _FUTURE) -> str:
        """A tag in whose `file` `code` stands after `old`; its name, which no other run has."""
        place, tag = self.versions.repository, f"{MARK}-{name}"
        path = place / "src" / "textor" / file
        text = path.read_text("utf-8")
        path.write_text(text.replace(old, old + code, 1) if old in text else code + text)
        git(place, "commit", "--allow-empty", "-am", name)
        git(place, "tag", tag)
        git(place, "reset", "--hard", "HEAD~1")
        return tag

    def built(self, tag: str, base: str = BASE) -> Version:
        version, told = asyncio.run(build_version(self.versions, tag, base))
        assert bool(version.image) == bool(base), told
        return version
