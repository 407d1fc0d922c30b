"""What runs outside by itself cannot be changed from inside: real git, the real sandboxes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from textor.capabilities import live
from textor.capabilities.live import is_live, standing
from textor.capabilities.sandbox import Sandbox, Seatbelt
from textor.capabilities.shell import ShellProvider

Desk = Any  # the fixture of this folder

TAKEN = "core.fsmonitor"
EVIL = "printf '[core]\\n\\tfsmonitor = \"touch /tmp/taken\"\\n'"


def git(folder: Path, *words: str) -> str:
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    argv = ["git", "-C", str(folder), *words]
    done = subprocess.run(argv, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(desk: Desk) -> Path:
    """A repository with a nested one, a submodule, a worktree and hooks in a folder of their own."""
    work = desk.workspace
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.name", "A")
    git(work, "config", "user.email", "a@example.org")
    (work / "a.txt").write_text("a\n")
    git(work, "add", "a.txt")
    git(work, "commit", "-q", "-m", "first")
    git(work, "init", "-q", "lib/nested")
    part = work.parent / "part"
    git(work.parent, "clone", "-q", str(work), str(part))
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "sub")
    git(work, "commit", "-q", "-m", "part")
    git(work, "worktree", "add", "-q", "tree")
    (work / ".vscode").mkdir()
    (work / ".vscode" / "tasks.json").write_text("{}")
    (work / "own-hooks").mkdir()
    git(work, "config", "core.hooksPath", "own-hooks")
    return work


def run(desk: Desk, sandbox: Sandbox, command: str) -> str:
    return desk.do(ShellProvider(sandbox), "shell.run", command=command).text


ATTACKS = {
    "a setting": f"{EVIL} >> .git/config",
    "a setting by git": f"git config {TAKEN} evil",
    "an alias": "git config alias.st '!evil'",
    "a hook": "echo evil > .git/hooks/pre-commit",
    "a hook of its own folder": "echo evil > own-hooks/pre-commit",
    "another settings file": f"{EVIL} > x && mv x .git/config",
    "the whole repository put aside": f"mv .git old && mkdir .git && {EVIL} > .git/config",
    "the hooks put aside": "mv .git/hooks .git/old && mkdir .git/hooks",
    "a nested repository": f"{EVIL} > lib/nested/.git/config",
    "a submodule": f"{EVIL} > .git/modules/sub/config",
    "the file of a submodule": "echo 'gitdir: ../evil' > sub/.git",
    "the file of a worktree": "rm -f tree/.git && echo 'gitdir: ../evil' > tree/.git",
    "where a worktree has its settings": "echo /tmp > .git/worktrees/tree/commondir",
    "tasks of an editor": "echo evil > .vscode/tasks.json",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_command_cannot_change_what_runs_outside(
    desk: Desk, sandbox: Sandbox, repository: Path, attack: str
) -> None:
    before = fingerprint(repository)
    text = run(desk, sandbox, ATTACKS[attack])
    assert not text.startswith("exit status 0"), text
    assert fingerprint(repository) == before
    assert git(repository, "status", "--porcelain", "--untracked-files=no") == ""


def fingerprint(folder: Path) -> dict[str, bytes]:
    """All files that say what is run, by their path."""
    names = ("config", "commondir", "gitdir", ".git", "tasks.json")
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and (path.name in names or "hooks" in str(path.parent.name))
    }


def test_a_commit_works_inside(desk: Desk, sandbox: Sandbox, repository: Path) -> None:
    text = run(
        desk,
        sandbox,
        "echo b > b.txt && git add b.txt && git commit -q -m second && git checkout -q -b other && "
        "git reset -q --hard HEAD~1 && git checkout -q main && git gc -q && git tag done && "
        "git log --format=%s",
    )
    assert text == "exit status 0\nsecond\npart\nfirst"
    assert git(repository, "log", "--format=%s", "done") == "second\npart\nfirst"
    inner = run(
        desk, sandbox, "cd lib/nested && git init -q ../new && cd ../new && git status -s && echo fine"
    )
    assert inner.startswith("exit status 0\nfine\n[lib/new/.git is a new repository")


def test_what_steers_a_repository_and_was_not_there_is_moved_aside(
    desk: Desk, sandbox: Sandbox, repository: Path
) -> None:
    made = f"mkdir evil && {EVIL} > evil/config && cp -r .git/objects .git/refs evil"
    command = f"{made} && echo ../evil > .git/commondir"
    text = run(desk, sandbox, command)
    assert "[.git/commondir steers git outside the sandbox: moved aside.]" in text
    assert git(repository, "config", "--get", "core.hooksPath") == "own-hooks"
    assert "is new; programs of this machine go by it" in run(desk, sandbox, "echo evil > .envrc")
    assert run(desk, sandbox, "echo fine > ordinary") == "exit status 0"


def test_a_repository_in_the_place_of_another_is_told(desk: Desk, sandbox: Sandbox, repository: Path) -> None:
    text = run(desk, sandbox, "mv lib old && mkdir -p lib/nested && git init -q lib/nested")
    assert "[lib/nested/.git is a new repository" in text


def test_a_link_and_a_bare_repository(desk: Desk, sandbox: Sandbox) -> None:
    git(desk.workspace, "init", "-q", "--bare", "store.git")
    (desk.workspace / "sub").mkdir()
    (desk.workspace / "sub" / ".git").symlink_to("../store.git")
    assert not run(desk, sandbox, f"{EVIL} >> sub/.git/config").startswith("exit status 0")
    assert "[sub/.git is a new repository" in run(
        desk, sandbox, "rm sub/.git; git init -q --bare o; ln -s ../o sub/.git"
    )


@pytest.mark.parametrize(
    ("path", "live"),
    [
        (".git/hooks/pre-commit", True),
        ("sub/.GIT/config", True),
        (".gi\u200dt/config", True),
        ("\uff0egit/config", True),
        (".git./config", True),
        (".vscode/tasks.json", True),
        (".envrc", True),
        ("tree/.git", True),
        ("bare/config", True),
        ("bare/hooks/update", True),
        ("own/hooks/update", True),
        ("shared.config", True),
        ("own/other", False),
        (".gitignore", False),
        (".github/workflows/test.yml", False),
        ("config", False),
        ("git/config", False),
    ],
)
def test_names(desk: Desk, path: str, live: bool) -> None:
    git(desk.workspace, "init", "-q", "--bare", "bare")
    git(desk.workspace, "init", "-q")
    git(desk.workspace, "config", "core.hooksPath", "own/hooks")
    git(desk.workspace, "config", "include.path", "../shared.config")
    assert is_live(Path(os.path.realpath(desk.workspace)) / path, desk.workspace) is live


def test_the_profile_of_a_mac_names_them(desk: Desk, repository: Path) -> None:
    profile = Seatbelt("/usr/bin/sandbox-exec").profile(repository)
    assert f'(deny file-write* (subpath "{repository}/.git/hooks"))' in profile
    assert f'(deny file-write* (literal "{repository}/.git/commondir"))' in profile
    assert f'(deny file-write-unlink (literal "{repository}/.git"))' in profile
    assert f'(deny file-write* (subpath "{repository}/own-hooks"))' in profile


def test_a_look_changes_nothing(desk: Desk, repository: Path) -> None:
    assert standing(repository) == standing(repository)
    assert standing(repository).changes(repository) == []


@pytest.mark.parametrize(
    "made", ["mkfifo .git/config", "ln -s /dev/zero .git/config", "truncate -s 1T .git/config"]
)
def test_settings_that_never_end_hold_nothing_up(desk: Desk, sandbox: Sandbox, made: str) -> None:
    run(desk, sandbox, f"mkdir -p .git/objects .git/refs && echo x > .git/HEAD && {made}")
    assert run(desk, sandbox, "echo fine").startswith("exit status 0\nfine")
    assert is_live(desk.workspace / "a" / "b", desk.workspace) is False


def test_this_program_is_out_of_reach(
    desk: Desk, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The gate, the supervisor and the trials, also in a workspace that holds the program itself."""
    for own in live.OWN:
        assert is_live(own / "supervisor" / "trial.py", desk.workspace) and live.holds_own(own.parent)
    assert not is_live(tmp_path / "trial.py", desk.workspace) and not live.holds_own(desk.workspace)
    program = desk.workspace / "src" / "textor"
    program.mkdir(parents=True)
    (program / "trial.py").write_text("strict\n")
    monkeypatch.setattr(live, "OWN", (program,))
    for attack in (
        "echo lax > src/textor/trial.py",
        "rm -f src/textor/trial.py",
        "mv src/textor src/old",
        "mv src old && mkdir -p src/textor",
    ):
        assert not run(desk, sandbox, attack).startswith("exit status 0"), attack
        assert (program / "trial.py").read_text() == "strict\n"
    assert run(desk, sandbox, "cat src/textor/trial.py && echo x > src/other.py") == "exit status 0\nstrict"
