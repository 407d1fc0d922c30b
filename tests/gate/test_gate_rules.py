"""Rules of the configuration: what they cover, in which order, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from textor.actions import Action, Capability
from textor.capabilities.table import parameters
from textor.config import load
from textor.errors import ConfigError
from textor.events import Definition, SessionCreated
from textor.kernel.state import AgentState, State, Turn
from textor.policy import Gate
from textor.settings import RuleSettings
from textor.values import Json

PATH: Json = {"type": "string", "format": "path"}
WRITE = Capability("files.write", "", parameters(path=PATH, text={"type": "string"}), effects=("write",))
SHELL = Capability(
    "shell.run",
    "",
    parameters(command={"type": "string"}, timeout={"type": "number"}, folder=PATH, env={"type": "object"}),
    effects=("execute",),
)
FETCH = Capability("web.read", "", parameters(url={"type": "string"}), effects=("network",))


def verdict(
    rules: list[RuleSettings],
    capability: Capability,
    workspace: Path,
    *,
    policy: str = "ask",
    labels: tuple[str, ...] = ("private:files",),
    **arguments: Json,
) -> str:
    state = State(created=SessionCreated(str(workspace)), policy=policy)
    agent = AgentState("main", Definition("t"), "m", turn=Turn(1, 0.0, labels=labels))
    return Gate(rules)(Action("a", capability.name, arguments), capability, state, agent).verdict


def rule(capability: str, verdict: str, **more: object) -> RuleSettings:
    return RuleSettings(capability, verdict, **more)  # type: ignore[arg-type]


def test_the_first_rule_that_fits_counts(tmp_path: Path) -> None:
    rules = [
        rule("files.write", "deny", below={"path": "secret"}),
        rule("files.*", "allow"),
        rule("files.write", "deny"),
    ]
    assert verdict(rules, WRITE, tmp_path, path="secret/a", text="") == "deny"
    assert verdict(rules, WRITE, tmp_path, path="open/../secret/a", text="") == "deny"
    assert verdict(rules, WRITE, tmp_path, path="open/a", text="") == "allow"
    assert verdict(rules, SHELL, tmp_path, command="ls") == "ask"


def test_a_path_below_a_folder_is_really_there(tmp_path: Path) -> None:
    rules = [rule("files.write", "allow", below={"path": "docs"})]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "out").symlink_to("/")
    assert verdict(rules, WRITE, tmp_path, path="docs/a", text="") == "allow"
    for path in ("docs/../a", "docsx/a", "docs/out/tmp/x", "/etc/x"):
        assert verdict(rules, WRITE, tmp_path, path=path, text="") == "ask", path


def test_a_host_is_the_whole_host(tmp_path: Path) -> None:
    rules = [rule("web.read", "allow", host={"url": "*.firm.example"})]
    assert verdict(rules, FETCH, tmp_path, url="https://api.firm.example/x?y") == "allow"
    for url in (
        "https://firm.example/",
        "https://api.firm.example.evil.example/",
        "https://api.firm.example@evil.example/",
        "https://evil.example/api.firm.example",
        "https://evilfirm.example/",
    ):
        assert verdict(rules, FETCH, tmp_path, url=url) == "ask", url


def test_a_rule_about_a_command_says_nothing_of_what_goes_along(tmp_path: Path) -> None:
    rules = [rule("shell.run", "allow", command="git status *")]
    assert verdict(rules, SHELL, tmp_path, command="git status -s", timeout=5) == "allow"
    assert verdict(rules, SHELL, tmp_path, command="git status", env={"GIT_PAGER": "x"}) == "ask"
    assert verdict(rules, SHELL, tmp_path, command="git status", folder="/tmp") == "ask"


def test_a_rule_that_forbids_holds_where_nobody_can_tell(tmp_path: Path) -> None:
    rules = [
        rule("shell.run", "deny", command="rm *"),
        rule("web.read", "deny", host={"url": "evil.example"}),
    ]
    for command in ("rm x", "ls && rm x", "sh -c 'rm x'", "$(x)"):
        assert verdict(rules, SHELL, tmp_path, policy="yes", command=command) == "deny", command
    assert verdict(rules, SHELL, tmp_path, policy="yes", command="ls") == "allow"
    assert verdict(rules, FETCH, tmp_path, policy="yes", url="https://EVIL.example/") == "deny"
    assert verdict(rules, FETCH, tmp_path, policy="yes", url="https://x@evil.example/") == "deny"


def test_exact_values_are_exact(tmp_path: Path) -> None:
    rules = [rule("shell.run", "allow", equals={"command": "make", "timeout": 5})]
    assert verdict(rules, SHELL, tmp_path, command="make", timeout=5) == "allow"
    assert verdict(rules, SHELL, tmp_path, command="make", timeout=6) == "ask"
    assert verdict(rules, SHELL, tmp_path, command="make") == "ask"


def test_only_a_rule_that_names_the_capability_lifts_the_gravest(tmp_path: Path) -> None:
    tainted = ("web:evil.example",)
    assert verdict([rule("shell.*", "allow")], SHELL, tmp_path, labels=tainted, command="make") == "ask"
    assert verdict([rule("shell.run", "allow")], SHELL, tmp_path, labels=tainted, command="make") == "allow"
    assert verdict([rule("shell.run", "ask")], SHELL, tmp_path, policy="yes", command="make") == "ask"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('capability = "x"\nverdict = "perhaps"', "one of allow, ask, deny"),
        ('capability = "x"\nverdict = "allow"\ncommand = "* x"', "begins with its program"),
        ('verdict = "allow"', "capability"),
        ('capability = "x"\nverdict = "allow"\nhosts = {}', "did you mean host"),
    ],
)
def test_what_is_wrong_with_a_rule_is_told(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[[gate.rules]]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert told in str(caught.value)


def test_rules_are_shown_as_they_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[[gate.rules]]\ncapability = "shell.run"\nverdict = "allow"\ncommand = "git log *"\n')
    shown = tmp_path / "shown.toml"
    shown.write_text(load(path, {}).show())
    assert load(shown, {}).gate == load(path, {}).gate
