"""What an agent may do with Textor's own source: read, propose, build, ask."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from version_parts import Desk

import textor
from textor.actions import Action, Outcome
from textor.errors import TextorError
from textor.versions import Versions
from textor.versions.provider import self_provider

PATCH = """\
--- a/src/textor/notes.py
+++ b/src/textor/notes.py
@@ -1 +1,2 @@
 NOTES: list[str] = []
+NOTES.append("{}")
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    (place / "src" / "textor").mkdir(parents=True)
    (place / "src" / "textor" / "notes.py").write_text("NOTES: list[str] = []\n")
    shutil.copy(Path(textor.__file__).parents[2] / "pyproject.toml", place)
    for command in ("init -b main", "add .", "-c user.name=T -c user.email=t@e.org commit -m first"):
        subprocess.run(["git", "-C", str(place), *command.split()], check=True, capture_output=True)
    return place


def perform(tmp: Path, repository: Path, *actions: tuple[str, dict[str, Any]]) -> list[Outcome]:
    async def run() -> list[Outcome]:
        provider = self_provider(Versions(tmp / "data", repository))
        found: list[Outcome] = []
        for name, arguments in actions:
            try:
                found.append(await provider.invoke(Action("a", f"self.{name}", arguments), Desk(tmp)))
            except TextorError as error:  # as the registry does
                found.append(Outcome.failed(str(error)))
        return found

    return asyncio.run(run())


def test_the_source_is_read_and_searched(tmp_path: Path, repository: Path) -> None:
    folder, file, found, outside = perform(
        tmp_path, repository,
        ("source.read", {}),
        ("source.read", {"path": "kernel/decide.py", "first": 3}),
        ("source.search", {"text": "def decide(state: State)"}),
        ("source.read", {"path": "../../pyproject.toml"}),
    )  # fmt: skip
    assert "kernel/" in folder.text and "events.py" in folder.text
    assert "[lines 3 to" in file.text and "class Step" in file.text
    assert found.text.startswith("kernel/decide.py:")
    assert outside.state == "failed"


def test_a_patch_is_proposed_on_a_branch_of_its_own(tmp_path: Path, repository: Path) -> None:
    def patch(text: str) -> tuple[str, dict[str, Any]]:
        return "propose", {"branch": "more", "patch": PATCH.format(text), "message": "A note"}

    done, again, built, twice, listed = perform(
        tmp_path, repository,
        patch("one"),
        patch("one"),
        ("build", {"branch": "more", "tag": "v1"}),
        ("build", {"branch": "more", "tag": "v1"}),
        ("versions", {}),
    )  # fmt: skip
    assert done.state == "done" and "agent/more" in done.text and "notes.py" in done.text
    assert again.state == "failed" and "does not fit" in again.text
    assert built.state == "done" and twice.state == "failed"
    assert "v1: built" in listed.text
    assert (repository / "src" / "textor" / "notes.py").read_text() == "NOTES: list[str] = []\n"
    versions = Versions(tmp_path / "data", repository)
    where = "from textor.notes import NOTES; print(NOTES)"
    shown = subprocess.run([versions.python("v1"), "-c", where], capture_output=True, text=True, check=False)
    assert shown.stdout == "['one']\n", shown.stderr


def test_a_tag_that_cannot_be_built_is_free_again(tmp_path: Path, repository: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=T", "-c", "user.email=t@e.org"]
        subprocess.run(["git", *who, "-C", str(repository), *arguments], check=True, capture_output=True)

    project = repository / "pyproject.toml"
    whole = project.read_text()
    git("checkout", "-b", "agent/b")
    project.write_text(whole.replace("dependencies = [", 'dependencies = ["x @ file:///x",', 1))
    git("commit", "-am", "wrong")
    (failed,) = perform(tmp_path, repository, ("build", {"branch": "b", "tag": "v1"}))
    project.write_text(whole)
    git("commit", "-am", "mended")
    (built,) = perform(tmp_path, repository, ("build", {"branch": "b", "tag": "v1"}))
    assert failed.state == "failed" and "no package of an index" in failed.text
    assert built.state == "done", built.text


def test_what_does_not_compile_is_not_taken(tmp_path: Path, repository: Path) -> None:
    broken = PATCH.format("x").replace('NOTES.append("x")', "NOTES.append(")
    told, after = perform(
        tmp_path, repository,
        ("propose", {"branch": "b", "patch": broken, "message": "m"}),
        ("propose", {"branch": "b", "patch": PATCH.format("y"), "message": "m"}),
    )  # fmt: skip
    assert told.state == "failed" and "compileall says" in told.text
    assert after.state == "done"


def test_names_that_could_leave_their_place_are_refused(tmp_path: Path, repository: Path) -> None:
    for name in ("../x", "-x", "a/b", "a..b", ""):
        arguments = {"branch": name, "patch": "", "message": "m"}
        assert perform(tmp_path, repository, ("propose", arguments))[0].state == "failed"


def test_a_version_is_asked_for_only_under_supervision(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "-C", str(repository), "tag", "v1"], check=True)
    (alone,) = perform(tmp_path, repository, ("update", {"tag": "v1"}))
    assert alone.state == "failed" and "textor self serve" in alone.text
    monkeypatch.setenv("TEXTOR_SUPERVISED", "1")
    asked, unknown = perform(tmp_path, repository, ("update", {"tag": "v1"}), ("update", {"tag": "v2"}))
    assert (asked.state, unknown.state) == ("done", "failed")
    assert Versions(tmp_path / "data", repository).read().wanted == "v1"
