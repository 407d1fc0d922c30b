"""Every example in the documentation is run.

A block of `sh` is run by bash in an empty folder, one of `python` by Python, one of `toml` is read as
the configuration and holds for the blocks after it, and `agent NAME` becomes an agent type there. A
comment `<!-- test {…} -->` before a block says what it needs and does: `files` in the folder, the
`script` that the model follows (texts, or {"calls": [[name, arguments]]}), and what it `prints`.
`<!-- not run: reason -->` leaves a block out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from textor.config import load
from textor.testing import Call, Reply, ScriptedServer

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(?:<!-- (test|not run:)(.*?)-->\n)?^```(\w[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: A program whose statements may await, as in the documentation of the interface.
RUNNER = """
import ast, asyncio, inspect, sys
code = compile(sys.stdin.read(), "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


class Block(NamedTuple):
    language: str
    text: str
    needs: dict[str, Any]
    left_out: bool


def blocks(page: Path) -> list[Block]:
    found = []
    for kind, told, language, text in BLOCK.findall(page.read_text("utf-8")):
        needs = json.loads(told) if kind == "test" else {}
        found.append(Block(language, text, needs, kind == "not run:"))
    return found


def item(told: Any) -> Reply | str:
    if isinstance(told, str):
        return told
    return Reply(calls=tuple(Call(name, arguments) for name, arguments in told["calls"]))


class Reader:
    """Somebody who tries every example of a page, one after the other."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "work"
        self.folder.mkdir()
        self.config = home / "config.toml"
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "TEXTOR_CONFIG": str(self.config),
            "TEXTOR_DATA": str(home / "data"),
            "XDG_STATE_HOME": str(home / "state"),
        }

    def read(self, block: Block) -> None:
        kind, _, name = block.language.partition(" ")
        match kind:
            case "toml":
                self.config.write_text(block.text, "utf-8")
                self.config.chmod(0o600)
                assert load(self.config, {}).warnings == ()
            case "agent":
                folder = self.folder / ".textor" / "agents"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}.md").write_text(block.text, "utf-8")
            case "sh":
                self.run(["bash", "-eu"], block)
            case "python":
                self.run([sys.executable, "-c", RUNNER], block)
            case _:
                raise AssertionError(f"no test knows how to run {block.language!r}")

    def run(self, command: list[str], block: Block) -> None:
        for name, text in block.needs.get("files", {}).items():
            (self.folder / name).write_text(text, "utf-8")
        script = [item(told) for told in block.needs.get("script", [])]
        with ScriptedServer(script) as server:
            env = dict(self.env)
            if script:
                # The example's provider, at the address of the scripted server.
                env |= {"TEXTOR_PROVIDERS_OAI_BASE_URL": server.url, "TEXTOR_PROVIDERS_OAI_API_KEY": "key"}
                env |= {} if self.config.exists() else {"TEXTOR_MODEL": "oai:gpt-4o"}
            if command[0] == "bash":
                command = [*command, "-c", block.text]
            done = subprocess.run(
                command,
                input=block.text,
                env=env,
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=100,
            )
            asked = len(server.requests)
        assert done.returncode == 0, done.stderr
        assert block.needs.get("prints", "") in done.stdout
        assert asked == len(script), "the example and its script do not fit together"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for block in blocks(page):
        if not block.left_out:
            reader.read(block)


def test_the_examples_are_found() -> None:
    readme = blocks(ROOT / "README.md")
    assert [b.language for b in readme if not b.left_out] == ["toml", "sh", "python"]
    assert sum(b.left_out for b in readme) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
