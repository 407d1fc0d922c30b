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
