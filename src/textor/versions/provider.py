"""The provider `self`: an agent reads Textor's own source, proposes changes, builds and asks for versions.

It works on branches in worktrees of the repository, and never on the program that runs. Whether a
version takes over is decided outside its reach, by the supervisor and its trial.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import textor
from textor.actions import Capability, Outcome
from textor.capabilities.port import Scope
from textor.capabilities.table import Entry, TableProvider, parameters, text_outcome
from textor.errors import CapabilityError, UseError
from textor.values import Json
from textor.versions import Version, Versions
from textor.versions.checks import Checks, checked_tests
from textor.versions.images import build_version

#: Lines of a file, and hits of a search, that are shown at once.
MOST_LINES = 400
MOST_HITS = 100
_BRANCH = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")

_TAG: Json = {"type": "string", "description": "the tag"}
_BRANCH_OF: Json = {"type": "string", "description": "a name of your choice; the same name goes on with it"}
READ = Capability(
    "self.source.read",
    "Read a file of Textor's own source, by lines; of a folder, its entries.",
    parameters(
        path={"type": "string", "default": ".", "description": "below src/textor, such as kernel/decide.py"},
        first={"type": "integer", "default": 1, "minimum": 1, "description": "the first line"},
    ),
    repeat="idempotent",
)
SEARCH = Capability(
    "self.source.search",
    "Find the lines of Textor's own source that contain a text.",
    parameters(["text"], text={"type": "string", "description": "what to look for"}),
    repeat="idempotent",
)
PROPOSE = Capability(
    "self.propose",
    "Apply a patch (unified diff, paths such as a/src/textor/x.py) to a branch of Textor's repository, check "
    "in a sandbox that it compiles, lints and passes tests, and commit it. Nothing that runs is changed.",
    parameters(
        ["branch", "patch", "message"],
        branch=_BRANCH_OF,
        patch={"type": "string", "description": "the unified diff"},
        message={"type": "string", "description": "what it does, in a sentence"},
        tests={
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "tests to run, such as tests/kernel/test_turn.py; without any, some quick ones",
        },
    ),
    effects=("write", "execute"),
    outside=True,
)
BUILD = Capability(
    "self.build",
    "Tag the head of a branch of Textor's repository and build that version: an environment and, where a "
    "container engine answers and a base is configured, an image.",
    parameters(["branch", "tag"], branch=_BRANCH_OF, tag={**_TAG, "description": "a new tag"}),
    effects=("write", "execute"),
    outside=True,
)
UPDATE = Capability(
    "self.update",
    "Ask for a version of Textor by its tag. It is tried on a copy of the state and takes over when all "
    "sessions rest; you then go on under it. If it fails, everything stays as it is.",
    parameters(["tag"], tag=_TAG),
    effects=("execute",),
    repeat="idempotent",
    outside=True,
)
VERSIONS = Capability(
    "self.versions",
    "List the versions of Textor: which runs, which were built, what became of their trials.",
    repeat="idempotent",
)


def self_provider(versions: Versions, base: str = "") -> TableProvider:
    """`base` is what images of versions are made over; "" for none."""
    made = _Own(versions, base)
    return TableProvider(
        "self",
        [
            Entry(READ, made.read),
            Entry(SEARCH, made.search),
            Entry(PROPOSE, made.propose),
            Entry(BUILD, made.build),
            Entry(UPDATE, made.update),
            Entry(VERSIONS, made.list),
        ],
    )


class _Own:
    def __init__(self, versions: Versions, base: str) -> None:
        self._versions = versions
        self._base = base
        self._checks = Checks(versions, base)
        self._source = Path(textor.__file__).resolve().parent
        self._lock = asyncio.Lock()  # one change of the repository at a time

    # -- reading ---------------------------------------------------------------------------

    async def read(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        path = (self._source / str(arguments["path"])).resolve()
        if not path.is_relative_to(self._source) or not path.exists():
            raise CapabilityError(
                f"There is no {arguments['path']!r:.200} in the source.", "`.` shows what is."
            )
        if path.is_dir():
            names = sorted(f"{p.name}/" if p.is_dir() else p.name for p in path.iterdir())
            return text_outcome("\n".join(n for n in names if not n.startswith("__pycache__")), scope)
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            raise CapabilityError(f"{path.name} is no text.") from None
        first = arguments["first"]
        shown = lines[first - 1 : first - 1 + MOST_LINES]
        last = first + len(shown) - 1
        note = f"[lines {first} to {last} of {len(lines)}]"
        return text_outcome("\n".join([*shown, note]), scope)

    async def search(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        text = str(arguments["text"])
        if not text.strip():
            raise CapabilityError("The text to look for is empty.")
        hits = await asyncio.to_thread(self._hits, text)
        more = [f"[only the first {MOST_HITS}]"] if len(hits) > MOST_HITS else []
        return text_outcome("\n".join([*hits[:MOST_HITS], *more]) or "It stands nowhere.", scope)

    def _hits(self, text: str) -> list[str]:
        found: list[str] = []
        for path in sorted(p for end in ("py", "md", "js") for p in self._source.rglob(f"*.{end}")):
            name = path.relative_to(self._source)
            for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
                if text in line:
                    found.append(f"{name}:{number}: {line.strip()[:160]}")
                    if len(found) > MOST_HITS:
                        return found
        return found

    # -- changing --------------------------------------------------------------------------

    async def propose(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        branch, tests = _branch(arguments["branch"]), checked_tests(arguments["tests"])
        async with self._lock:
            place = await asyncio.to_thread(self._applied, branch, arguments["patch"])
            try:
                report = await self._checks.check(place, tests)
                if report.fault:
                    raise CapabilityError(f"It was not taken: {report.fault}", "The branch is as it was.")
            except BaseException:
                _run(["git", "-C", str(place), "reset", "--hard", "--quiet"])
                raise
            text = await asyncio.to_thread(self._committed, branch, place, arguments["message"])
        return text_outcome(f"{text}\n{report.text}", scope)

    def _applied(self, branch: str, patch: str) -> Path:
        """The worktree of a branch with a patch in its index."""
        place = self._worktree(branch)
        apply = ["git", "-C", str(place), "apply", "--index", "-"]
        told = _run(apply, patch if patch.endswith("\n") else f"{patch}\n")
        if told.returncode:
            raise CapabilityError(f"The patch does not fit the branch {branch}: {_end(told)}")
        return place

    def _committed(self, branch: str, place: Path, message: str) -> str:
        who = ["-c", "user.name=Textor agent", "-c", "user.email=agent@textor.invalid"]
        told = _run(["git", *who, "-C", str(place), "commit", "--quiet", "--no-verify", "-m", message])
        if told.returncode:
            raise CapabilityError(f"It could not be committed: {_end(told)}")
        stat = _run(["git", "-C", str(place), "show", "--stat", "--format=%h %s", "HEAD"]).stdout.strip()
        return f"On the branch {self._name(branch)}:\n{stat}"

    def _worktree(self, branch: str) -> Path:
        """The folder of a branch, made from the head of the repository when it is new."""
        place = self._versions.folder / "worktrees" / branch
        repository = ["git", "-C", str(self._versions.repository)]
        if (place / ".git").exists():
            _run(["git", "-C", str(place), "reset", "--hard", "--quiet"])
            return place
        place.parent.mkdir(parents=True, exist_ok=True)
        _run([*repository, "worktree", "prune"])
        name = self._name(branch)
        known = _run([*repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}"]).returncode == 0
        how = [str(place), name] if known else ["-b", name, str(place), "HEAD"]
        told = _run([*repository, "worktree", "add", "--quiet", *how])
        if told.returncode:
            raise CapabilityError(f"No worktree can be made: {_end(told)}")
        return place

    def _name(self, branch: str) -> str:
        """Agents work under a prefix of their own, so no branch of a person is touched."""
        return f"agent/{branch}"

    async def build(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        branch, tag = _branch(arguments["branch"]), str(arguments["tag"])
        async with self._lock:
            await asyncio.to_thread(self._tag, self._name(branch), tag)
            try:
                _, told = await build_version(self._versions, tag, self._base)
            except UseError as error:  # the name is free again for the next try
                await asyncio.to_thread(_run, ["git", "-C", str(self._versions.repository), "tag", "-d", tag])
                raise CapabilityError(str(error)) from None
        return Outcome("done", f"{told} self.update asks for it.")

    def _tag(self, branch: str, tag: str) -> None:
        if not _BRANCH.match(tag):
            raise CapabilityError(
                f"{tag!r:.80} cannot be a tag.", "Use letters, digits, and . _ - (at most 60)."
            )
        repository = ["git", "-C", str(self._versions.repository)]
        told = _run([*repository, "tag", tag, f"refs/heads/{branch}"])
        if told.returncode:
            raise CapabilityError(f"{tag} cannot be made: {_end(told)}")

    async def update(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        if "TEXTOR_SUPERVISED" not in os.environ:
            raise CapabilityError(
                "This program does not run under supervision, so no version can take over.",
                "A person starts it with `textor self serve`.",
            )
        tag = str(arguments["tag"])
        try:
            await asyncio.to_thread(self._versions.commit, tag)
            await asyncio.to_thread(self._versions.want, tag)
        except UseError as error:
            raise CapabilityError(str(error)) from None
        return Outcome("done", f"{tag} is asked for; self.versions tells how it went.")

    async def list(self, arguments: dict[str, Json], scope: Scope) -> Outcome:
        ledger = self._versions.read()
        lines = [f"in use: {ledger.current or 'the installed version'}"]
        lines += [_line(version) for version in ledger.versions.values()]
        with contextlib.suppress(UseError):
            others = [tag for tag in self._versions.tags() if tag not in ledger.versions]
            lines += [f"not built: {', '.join(others[:20])}"] if others else []
        doing = [f"now: {ledger.doing}"] if ledger.doing else []
        return text_outcome("\n".join([*lines, *ledger.log[-5:], *doing]), scope)


def _line(version: Version) -> str:
    parts = [version.state, f"tried {version.tried}" if version.tried else "", version.why]
    return f"{version.tag}: {'; '.join(part for part in parts if part)}"


def _branch(name: Json) -> str:
    if not _BRANCH.match(str(name)) or ".." in str(name):
        raise CapabilityError(
            f"{name!r:.80} cannot be a branch.", "Use letters, digits, and . _ - (at most 60)."
        )
    return str(name)


def _run(command: Sequence[str], given: str | None = None) -> subprocess.CompletedProcess[str]:
    how = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)


def _end(told: subprocess.CompletedProcess[str]) -> str:
    return " ".join(told.stderr.strip().splitlines()[-3:]) or f"exit status {told.returncode}"
