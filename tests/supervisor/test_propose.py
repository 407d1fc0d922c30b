"""What an agent proposes is compiled, linted and tested shut in, and only then taken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from version_parts import BASE, Desk, Workshop, git, own_repository

from textor.actions import Action, Outcome
from textor.errors import TextorError, UseError
from textor.versions import Versions
from textor.versions import checks as self_checks
from textor.versions.provider import self_provider

#: A test that tries to get out, and tells what it could do; `conftest.py` would do it unasked.
REACHES = """\
# ruff: noqa
def _reached():
    import socket
    found = []
    try:
        open({place!r}, "w").write("harm")
        found.append("written")
    except OSError:
        pass
    try:
        socket.create_connection(("1.1.1.1", 80), 1)
        found.append("connected")
    except OSError:
        pass
    return found
"""
BOTH = pytest.mark.parametrize("base", [BASE, ""], ids=["container", "bubblewrap"])

#: The first test may have to make an image with all that Textor needs.
pytestmark = pytest.mark.timeout(600)


def added(path: str, text: str) -> str:
    """A patch that makes a file."""
    lines = text.splitlines()
    return "\n".join(
        [f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@", *(f"+{x}" for x in lines), ""]
    )


def changed(place: Path, name: str, old: str, new: str) -> str:
    """A patch that puts another text in the place of one."""
    path = place / name
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    patch = git(place, "diff")
    git(place, "checkout", ".")
    assert patch
    return patch


def propose(
    versions: Versions, base: str, branch: str, patch: str, tests: list[str] | None = None
) -> Outcome:
    async def run() -> Outcome:
        arguments = {"branch": branch, "patch": patch, "message": "A change", "tests": tests or []}
        try:
            provider = self_provider(versions, base)
            return await provider.invoke(Action("a", "self.propose", arguments), Desk(versions.data))
        except TextorError as error:  # as the registry does
            return Outcome.failed(str(error))

    return asyncio.run(run())


@pytest.fixture
def mine(workshop: Workshop) -> Versions:
    return workshop.versions


@BOTH
def test_a_change_whose_tests_pass_is_taken(mine: Versions, base: str) -> None:
    branch = f"good-{'c' if base else 'b'}"
    patch = added("src/textor/notes.py", "NOTES = 2\n")
    patch += added(
        "tests/test_notes.py",
        "from textor.notes import NOTES\n\n\ndef test_it() -> None:\n    assert NOTES == 2\n",
    )
    done = propose(mine, base, branch, patch, ["tests/test_notes.py"])
    assert done.state == "done", done.text
    assert f"On the branch agent/{branch}:" in done.text and "src/textor/notes.py" in done.text
    where = "a container of textor-needs:" if base else "bubblewrap"
    assert f"Tests were run in {where}" in done.text and "without network: exit status 0\n" in done.text
    assert done.text.rstrip().splitlines()[-1].startswith("1 passed") and "compiles and lints" in done.text
    assert git(mine.repository, "show", f"agent/{branch}:src/textor/notes.py") == "NOTES = 2\n"


@BOTH
def test_a_change_whose_tests_fail_is_not_taken_and_the_output_tells_why(mine: Versions, base: str) -> None:
    branch = f"bad-{'c' if base else 'b'}"
    broken = added("tests/test_notes.py", "def test_it() -> None:\n    assert 'ham' == 'eggs'\n")
    told = propose(mine, base, branch, broken, ["tests/test_notes.py"])
    assert told.state == "failed" and "exit status 1" in told.text and "The branch is as it was." in told.text
    assert "assert 'ham' == 'eggs'" in told.text and "1 failed" in told.text
    assert git(mine.repository, "rev-parse", f"agent/{branch}") == git(mine.repository, "rev-parse", "main")
    worktree = mine.folder / "worktrees" / branch
    assert git(worktree, "status", "--porcelain") == ""


@BOTH
def test_nothing_of_a_change_runs_on_this_machine(mine: Versions, tmp_path: Path, base: str) -> None:
    """Neither its tests nor what runs beside them gets out; the test says what it reached."""
    mark = tmp_path / "mark"
    code = REACHES.format(place=str(mark))
    patch = added("tests/xml_parts/conftest.py", f"{code}\n\n_reached()\n")
    test = f"{code}\n\ndef test_it() -> None:\n    assert 'connected' not in _reached()\n"
    patch += added("tests/xml_parts/test_reach.py", test) + added(
        "src/sitecustomize.py", f"{code}\n\n_reached()\n"
    )
    done = propose(mine, base, f"reach-{'c' if base else 'b'}", patch, ["tests/xml_parts"])
    assert done.state == "done", done.text
    assert not mark.exists()


def test_without_named_tests_quick_ones_are_run(mine: Versions) -> None:
    done = propose(mine, "", "quick", added("src/textor/notes.py", "NOTES = 1\n"))
    assert done.state == "done" and "The quick tests were run in bubblewrap" in done.text, done.text
    broken = changed(mine.repository, "src/textor/dialects/xml_write.py", "CDATA", "CDATE")
    told = propose(mine, "", "quick", broken)
    assert told.state == "failed" and "The quick tests" in told.text and "exit status 1" in told.text


def test_what_does_not_lint_and_what_is_a_link_is_not_taken(mine: Versions) -> None:
    told = propose(mine, "", "lint", added("src/textor/notes.py", "import os\n"))
    assert told.state == "failed" and "ruff says (exit status 1)" in told.text and "F401" in told.text
    link = (
        "--- /dev/null\n+++ b/src/textor/out.py\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
    )
    link = f"diff --git a/src/textor/out.py b/src/textor/out.py\nnew file mode 120000\n{link}"
    told = propose(mine, "", "lint", link)
    assert told.state == "failed" and "src/textor/out.py is a link" in told.text


def test_without_a_sandbox_no_test_runs_and_that_is_said(
    mine: Versions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").symlink_to("/usr/bin/git")
    monkeypatch.setenv("PATH", str(tmp_path))
    mark = tmp_path / "mark"
    patch = added("tests/test_notes.py", REACHES.format(place=str(mark)) + "\n\n_reached()\n")
    done = propose(mine, "", "bare", patch, ["tests/test_notes.py"])
    assert done.state == "done" and "No tests were run: they are code" in done.text
    assert "bwrap) is not installed" in done.text and "exit status" not in done.text
    assert not mark.exists()


def test_paths_that_are_no_tests_are_refused(mine: Versions) -> None:
    for path in ("-p evil", "../x", "tests/../../x", "src/textor", ""):
        told = propose(mine, "", "paths", added("src/textor/notes.py", "X = 1\n"), [path])
        assert told.state == "failed" and "names no tests" in told.text


def test_packages_that_a_change_asks_for_are_not_fetched(tmp_path: Path) -> None:
    place = own_repository(tmp_path / "own")
    patch = changed(place, "pyproject.toml", '"msgspec>=0.20",', '"msgspec>=0.20", "no-such-thing",')
    done = propose(Versions(tmp_path / "data", place), "", "more", patch, ["tests/dialects/test_xml.py"])
    assert done.state == "done" and "none was fetched for it" in done.text
    path = place / "pyproject.toml"
    path.write_text(path.read_text().replace('"msgspec>=0.20"', '"x @ https://e.org/x.tar.gz"'))
    git(place, "commit", "-am", "bad")
    git(place, "tag", "bad")
    with pytest.raises(UseError, match="no package of an index by its name"):
        Versions(tmp_path / "data", place).build("bad")


def test_a_test_that_fills_the_disk_is_ended(mine: Versions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_checks, "MOST_WRITTEN", 60 << 20)
    fills = "import time\n\n\ndef test_it() -> None:\n"
    fills += '    with open("full", "wb") as file:  # noqa: PTH123\n        file.write(bytes(90 << 20))\n'
    fills += "    time.sleep(1000)\n"
    told = propose(mine, "", "fills", added("tests/test_fills.py", fills), ["tests/test_fills.py"])
    assert told.state == "failed" and "it wrote too much" in told.text, told.text
