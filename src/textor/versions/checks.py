"""What a proposed change is checked with, shut in: it must compile, lint, and pass tests.

A change comes from an agent, and its tests are code as well, so nothing of it runs on this machine
itself: it is copied, and checked in a container of an image with the tools, else in the sandbox of
this machine. Without either it is only read (compiled and linted), and that is said.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textor.capabilities.filling import unless_full
from textor.capabilities.processes import Ended, Limits, run
from textor.capabilities.sandbox import Sandbox, find_sandbox, why_no_sandbox
from textor.containers.client import EngineError
from textor.containers.labels import this_process
from textor.containers.sandbox import ContainerSandbox
from textor.errors import CapabilityError, UseError
from textor.values import clean_text
from textor.versions import Versions, needs
from textor.versions.images import images

#: Tests that take seconds and go through dialects, gate and kernel, where no others are named.
QUICK = (
    "tests/dialects/test_script.py",
    "tests/dialects/test_tools.py",
    "tests/dialects/test_xml.py",
    "tests/gate/test_gate_rules.py",
    "tests/kernel/test_turn.py",
)
#: Seconds for compiling and linting each, and for the tests.
READING = 120.0
TESTING = 600.0
#: Bytes that the copy and what is written beside it may take.
MOST_WRITTEN = 1 << 30
#: Characters of the end of an output that are told.
SHOWN = 3000
#: A file or folder of tests, and one test in it.
_TEST = re.compile(r"^tests/[A-Za-z0-9_./-]*(::\S+)?$")


@dataclass(frozen=True)
class Tools:
    """What a change is checked with: the sandbox (None: only reading, on this machine), how it is
    told, and the interpreter inside."""

    sandbox: Sandbox | None
    where: str
    python: str


@dataclass(frozen=True)
class Report:
    """What came of the checks, in words; `fault` says what speaks against the change."""

    fault: str
    text: str


class Checks:
    """Checks of worktrees of the repository. `base` is what images are made over; "" for none."""

    def __init__(self, versions: Versions, base: str) -> None:
        self._versions = versions
        self._base = base

    async def check(self, tree: Path, tests: Sequence[str]) -> Report:
        """Check what stands in the index of a worktree. Raises `CapabilityError` when the sandbox
        does not do its part."""
        tools = await self._tools()
        with tempfile.TemporaryDirectory(prefix="textor-check-", ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            if fault := await asyncio.to_thread(_copied, tree, place / "source"):
                return Report(fault, "")
            changed = await asyncio.to_thread(_changed, tree)
            try:
                check = _Check(tools, place, tests, changed)
                return await check.made(self._other_packages(place / "source"))
            finally:
                if tools.sandbox is not None:
                    await tools.sandbox.close()

    async def _tools(self) -> Tools:
        try:
            made = await images(self._versions, self._base)
            # the packages are those of the person's checkout: a patch fetches nothing by asking for it
            image = await made.tools(self._versions.repository)
        except (EngineError, UseError) as error:
            why = str(error)
        else:
            sandbox = ContainerSandbox(made.engine, image, this_process(self._versions.data))
            where = f"in a container of {image} ({made.engine.kind})"
            return Tools(sandbox, where, "/opt/textor/bin/python")
        local = await asyncio.to_thread(find_sandbox)
        if local is not None:
            return Tools(local, f"in {local.name}", sys.executable)
        return Tools(None, f"{why} {why_no_sandbox()}", sys.executable)

    def _other_packages(self, source: Path) -> str:
        try:
            same = needs(source) == needs(self._versions.repository)
        except UseError as error:
            return f"pyproject.toml cannot be used: {error}"
        return "" if same else "It asks for other packages than the repository; none was fetched for it."


class _Check:
    """One change, copied to `place/source`; `changed` are the files of Python in it."""

    def __init__(self, tools: Tools, place: Path, tests: Sequence[str], changed: Sequence[str]) -> None:
        self._tools = tools
        self._place = place
        self._tests = tests
        self._changed = changed

    async def made(self, remark: str) -> Report:
        told = [remark] if remark else []
        python = self._tools.python
        reading = [("compileall", [python, "-I", "-S", "-m", "compileall", "-q", "-f", "src/textor"])]
        if self._has("ruff"):
            lint = [python, "-P", "-m", "ruff", "check", "--quiet", "--no-cache", *self._changed]
            reading += [("ruff", lint)] if self._changed else []
        else:
            told.append("It was not linted: there is no ruff here.")
        for name, argv in reading:
            ended = await self._run(argv, READING)
            if ended.exit_status != 0:
                return Report(f"{name} says ({_how(ended)}): {_end(ended)}", "")
        tests = list(self._tests) or [path for path in QUICK if (self._place / "source" / path).exists()]
        why = self._no_tests(tests)
        if why:
            return Report("", " ".join([f"It compiles{self._linted()}.", *told, f"No tests were run: {why}"]))
        argv = [python, "-P", "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *tests]
        ended = await self._run(argv, TESTING)
        which = "" if self._tests else "the quick "
        begin = f"{which}tests were run {self._tools.where} without network: {_how(ended)}"
        text = f"{begin[0].upper()}{begin[1:]}\n{_end(ended)}"
        if ended.exit_status != 0:
            return Report(text, "")
        return Report("", "\n".join([" ".join([f"It compiles{self._linted()}.", *told]), text]))

    def _no_tests(self, tests: Sequence[str]) -> str:
        if self._tools.sandbox is None:
            return f"they are code, and there is no sandbox here ({self._tools.where.strip()})"
        if not self._has("pytest"):
            return "there is no pytest here; [self] base has an image made that has it."
        return "" if tests else "the repository has none of the quick ones."

    def _linted(self) -> str:
        return " and lints" if self._has("ruff") else ""

    def _has(self, module: str) -> bool:
        """Whether a tool is there; an image with the tools has all, the local sandbox has ours."""
        return (
            isinstance(self._tools.sandbox, ContainerSandbox) or importlib.util.find_spec(module) is not None
        )

    async def _run(self, argv: Sequence[str], timeout: float) -> Ended:
        source = self._place / "source"
        if self._tools.sandbox is None:
            env = {"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1"}
            return await run(argv, cwd=source, env=env, timeout=timeout, limits=Limits())
        words = [f"PYTHONPATH={source / 'src'}", "PYTHONDONTWRITEBYTECODE=1"]
        inside = ["sh", "-c", 'cd "$0" && exec env "$@"', str(source), *words, *argv]
        work = self._tools.sandbox.run(inside, self._place, timeout=timeout, limits=Limits())
        return await unless_full(work, self._place, MOST_WRITTEN)


def checked_tests(paths: Sequence[str]) -> list[str]:
    """Paths of tests as pytest takes them. `CapabilityError` for what is none."""
    for path in paths:
        if not _TEST.match(path) or ".." in path:
            raise CapabilityError(
                f"{path!r:.100} names no tests.", "Write paths such as tests/kernel/test_turn.py::test_x."
            )
    return list(paths)


def _copied(tree: Path, to: Path) -> str:
    """Copy what stands in the index; says what may not stand there."""
    listed = subprocess.run(
        ["git", "-C", str(tree), "ls-files", "--stage"], capture_output=True, text=True, check=True
    ).stdout
    for line in listed.splitlines():
        if line.startswith(("120000", "160000")):
            return f"{line.partition(chr(9))[2]} is a link; the source has none."
    shutil.rmtree(to, ignore_errors=True)
    copy = ["git", "-C", str(tree), "checkout-index", "--all", f"--prefix={to}/"]
    subprocess.run(copy, capture_output=True, check=True)
    return ""


def _changed(tree: Path) -> list[str]:
    """The files of Python that the index changes; what stood before was not this change's fault."""
    command = ["git", "-C", str(tree), "diff", "--cached", "--name-only", "-z", "--diff-filter=d", "HEAD"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [f"./{name}" for name in told.split("\0") if name.endswith(".py")]


def _how(ended: Ended) -> str:
    if ended.reason == "exit":
        return f"exit status {ended.exit_status}"
    words = {
        "timeout": "it did not end in time",
        "memory": "it used too much memory",
        "processes": "it started too many processes",
        "cancelled": "it wrote too much",
        "full": "it did not stop writing output",
    }
    return words[ended.reason]


def _end(ended: Ended) -> str:
    text = clean_text(ended.output.decode("utf-8", "replace")).strip()
    return text if len(text) <= SHOWN else f"[…]\n{text[-SHOWN:]}"
