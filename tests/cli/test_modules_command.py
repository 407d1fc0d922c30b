"""`textor modules` as a person uses it, with real servers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from .conftest import Program

ODD = Path(__file__).parents[1] / "modules" / "odd_server.py"


def test_a_module_is_added_tried_shown_and_removed(textor: Program, tmp_path: Path) -> None:
    assert "There are no modules yet" in textor("modules").stdout
    done = textor(
        "modules", "add", "odd", "--env", "A_KEY=hidden", "--", sys.executable, str(ODD), str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    listed = textor("modules", "list").stdout
    assert re.search(r"^odd +local +\? +.*odd_server", listed, re.MULTILINE)

    tried = textor("modules", "test", "odd")
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.startswith("odd 1.2 works (protocol 2026-07-28)")
    assert re.search(r"^odd\.echo +write, network +once +Give the text back\.", tried.stdout, re.MULTILINE)
    assert re.search(r"^odd +local +\d+", textor("modules").stdout, re.MULTILINE)  # now they are known

    shown = textor("modules", "show", "odd").stdout
    assert "odd.look" in shown
    assert "hidden" not in shown
    assert "the odd server starts" in textor("modules", "logs", "odd").stdout

    assert textor("modules", "remove", "odd").returncode == 0
    assert "There are no modules yet" in textor("modules").stdout
    assert not list(textor.home.glob("data/modules/*"))


def test_a_module_starts_where_it_was_added(textor: Program, tmp_path: Path) -> None:
    """A file of its own is found from every folder, and a workspace cannot put another in its place."""
    (textor.folder / "server.py").write_text(ODD.read_text())
    assert textor("modules", "add", "near", "--", sys.executable, "server.py", ".").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "server.py").write_text("raise SystemExit('the wrong one')")
    textor.folder = elsewhere
    tried = textor("modules", "test", "near")
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.startswith("odd 1.2 works")


def test_a_module_that_does_not_work_says_why(textor: Program) -> None:
    textor("modules", "add", "bad", "--", sys.executable, "-c", "import library_that_is_missing")
    done = textor("modules", "test", "bad")
    assert done.returncode == 1
    assert "No module named 'library_that_is_missing'" in done.stderr


def test_several_implementations(textor: Program, tmp_path: Path) -> None:
    textor("modules", "add", "search", "--", "one")
    again = textor("modules", "add", "search", "--", "two")
    assert again.returncode == 2
    assert "--implementation" in again.stderr
    added = textor(
        "modules", "add", "search", "--implementation", "own", "--address", "http://127.0.0.1:1/mcp"
    )
    assert "default stays in use" in added.stdout
    assert re.search(r"search +local .*default of 2 +one", textor("modules").stdout)
    assert textor("modules", "use", "search", "nothing").returncode == 2
    assert textor("modules", "use", "search", "own").stdout == "search is now served by own.\n"
    assert re.search(r"search +remote .*own of 2 +http://127", textor("modules").stdout)
    assert textor("modules", "remove", "search", "own").returncode == 2  # it is in use
    assert textor("modules", "remove", "search", "default").returncode == 0
    assert "default" not in textor("modules", "show", "search").stdout


def test_wrong_words_are_told(textor: Program) -> None:
    for words, says in (
        (["add", "x y", "--", "c"], "is no name for a module"),
        (["add", "shell", "--", "c"], "a part of Textor"),
        (["add", "m"], "neither a command nor an address"),
        (["add", "m", "--address", "ftp://x"], "must begin with http"),
        (["add", "m", "--place", "moon", "--", "c"], "There is no placement 'moon'"),
        (["add", "m", "--place", "container:x", "--address", "http://x"], "a command alone"),
        (["add", "m", "--env", "A", "--", "c"], "--env takes NAME=TEXT"),
        (["add", "m", "--effects", "t=fly", "--", "c"], "There is no effect 'fly'"),
        (["add", "m", "--idle", "soon", "--", "c"], "--idle takes seconds"),
        (["add", "m", "--deadline", "-1", "--", "c"], "more than 0 seconds"),
        (["add", "m", "--protocol", "3", "--", "c"], "There is no protocol '3'"),
        (["add", "m", "--", "textor:nothing"], "textor:shell, textor:files"),
        (["show", "m"], "There is no module 'm'"),
        (["logs", "m"], "There is no module 'm'"),
    ):
        done = textor("modules", *words)
        assert (done.returncode, says in done.stderr) == (2, True), (words, done.stderr)


def test_the_modules_in_the_box(textor: Program) -> None:
    textor("modules", "add", "terminal", "--", "textor:shell")
    textor("modules", "add", "documents", "--", "textor:files", "--root", str(textor.folder))
    shown = textor("modules", "show", "terminal").stdout
    assert "idle: null" in shown
    assert "trusted: true" in shown
    for name, tool in (
        ("terminal", "terminal.run +execute +once"),
        ("documents", "documents.read +read +idem"),
    ):
        tried = textor("modules", "test", name)
        assert tried.returncode == 0, tried.stderr
        assert re.search(rf"^{tool}", tried.stdout, re.MULTILINE)


def test_what_is_kept_can_be_read_again(textor: Program) -> None:
    textor(
        *("modules", "add", "m", "--trusted", "--idempotent", "get_*", "--effects", "get_*=read,network"),
        *("--deadline", "5", "--idle", "never", "--cwd", str(textor.folder), "--", "prog", "--flag", "a b"),
    )
    shown = textor("modules", "show", "m").stdout
    assert "command: prog --flag 'a b'" in shown
    facts = dict(line.strip().split(": ", 1) for line in shown.splitlines() if line.startswith("  "))
    assert json.loads(facts["effects"]) == {"get_*": ["read", "network"]}
    assert json.loads(facts["deadline"]) == 5.0


def test_what_a_module_says_otherwise_is_shown_and_accepted(textor: Program, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"

    def list_tool(purpose: str) -> None:
        tool = {"name": "look", "description": purpose, "inputSchema": {"type": "object", "properties": {}}}
        tools.write_text(json.dumps([tool]))

    list_tool("Looks.")
    raw = str(ODD.with_name("raw_server.py"))
    assert textor("modules", "add", "raw", "--", sys.executable, raw, str(tools)).returncode == 0
    assert "Looks." in textor("modules", "test", "raw").stdout
    assert "the same" in textor("modules", "accept", "raw").stdout
    list_tool("Sends.")
    tried = textor("modules", "test", "raw").stdout
    assert "held: look" in tried and "Looks." in tried and "Sends." not in tried
    seen = textor("modules", "accept", "raw")
    assert seen.returncode == 1 and '+ "description": "Sends."' in seen.stdout  # nobody is asked here
    assert "Looks." in textor("modules", "show", "raw").stdout
    assert textor("modules", "accept", "raw", "--yes").returncode == 0
    assert "Sends." in textor("modules", "show", "raw").stdout
