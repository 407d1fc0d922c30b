"""The module `files` through the same client as any other module: never outside, nothing half done."""

from __future__ import annotations

import asyncio
import codecs
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from module_parts import Desk

from textor.actions import Outcome
from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import ModuleSpec
from textor.modules.files import patching
from textor.modules.files.roots import Refused

Do = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def at_the_desk(root: Path, work: Callable[[Do], Awaitable[None]], *more: Path) -> None:
    roots = [word for folder in (root, *more) for word in ("--root", str(folder))]
    command = (sys.executable, "-m", "textor.modules.files", *roots)
    env = {"XDG_DATA_HOME": str(root.parent / "data")}

    async def main() -> None:
        provider = ModulesProvider([ModuleSpec("docs", command, env=env, trusted=True)])
        desk = Desk(root)

        async def do(tool: str, /, **arguments: Any) -> Outcome:
            return await desk.perform(provider, f"docs.{tool}", **arguments)

        try:
            await work(do)
        finally:
            await provider.close()

    asyncio.run(main())


def test_list_read_search_write(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "a.txt").write_text("one\ntwo TODO\nthree\n")
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\nxx")

    async def work(do: Do) -> None:
        listed = await do("list")
        assert listed.text.split("\n") == ["sub/", "a.txt  19 B", "picture.png  10 B"]
        assert (await do("read", path="a.txt")).text == "one\ntwo TODO\nthree\n"
        some = await do("read", path="a.txt", start_line=2, line_count=1)
        assert some.text.startswith("two TODO\n\n[more follows")
        image = await do("read", path="picture.png")
        assert [value.kind for value in image.values] == ["image"]
        assert "a.txt:2: two TODO" in (await do("search", query="todo")).text
        assert (await do("write", path="new/b.txt", text="grüße\n")).text.startswith("Made new/b.txt")
        assert (root / "new" / "b.txt").read_bytes() == "grüße\n".encode()
        missing = await do("read", path="a.tx")
        assert missing.state == "failed"
        assert "There is: a.txt" in missing.text or "a.txt" in missing.text

    at_the_desk(root, work)


def test_nothing_outside_of_the_roots_is_touched(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("the secret")
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret.txt")
    (root / "dangling").symlink_to(outside / "new.txt")
    second = tmp_path / "second"
    second.mkdir()
    (second / "fine.txt").write_text("fine")
    diff = "--- link/secret.txt\n+++ link/secret.txt\n@@ -1 +1 @@\n-the secret\n\\ No newline\n+x\n"

    async def work(do: Do) -> None:
        for path in (
            "../outside/secret.txt",
            str(outside / "secret.txt"),
            "link/secret.txt",
            "file",
            "~/x",
            "sub/../../x",
        ):
            for tool, arguments in (
                ("read", {"path": path}),
                ("read", {"path": path, "encoding": "utf-8"}),
                ("write", {"path": path, "text": "x"}),
                ("replace", {"path": path, "old": "secret", "new": "x"}),
            ):
                outcome = await do(tool, **arguments)
                assert outcome.state == "failed", (tool, path)
                assert "outside the folders" in outcome.text
        for tool, arguments in (
            ("list", {"folder": "link"}),
            ("search", {"query": "secret", "folder": "link"}),
            ("write", {"path": "dangling", "text": "x"}),
            ("make_folder", {"path": "link/made"}),
            ("move", {"source": "link/secret.txt", "target": "mine.txt"}),
            ("move", {"source": "file", "target": "../outside/other"}),
            ("remove", {"path": "link/secret.txt"}),
            ("remove", {"path": "../outside"}),
            ("patch", {"diff": diff}),
        ):
            outcome = await do(tool, **arguments)
            assert (outcome.state, "outside the folders" in outcome.text) == ("failed", True), (
                tool,
                outcome.text,
            )
        assert "is a root itself" in (await do("remove", path=".")).text
        # what only looks like outside, and the second root
        assert (await do("read", path=str(second / "fine.txt"))).text == "fine"
        # a search from the root does not follow links either
        assert "secret.txt" not in (await do("search", query="the secret")).text
        # the link itself may go; what it points to stays
        assert (await do("remove", path="file")).state == "done"

    at_the_desk(root, work, second)
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "the secret"


def test_replace_counts_before_it_changes(root: Path) -> None:
    file = root / "a.txt"
    file.write_bytes(b"x = 1\r\ny = 1\r\n")

    async def work(do: Do) -> None:
        twice = await do("replace", path="a.txt", old="= 1", new="= 2")
        assert "occurs 2 times" in twice.text
        assert file.read_bytes() == b"x = 1\r\ny = 1\r\n"
        assert (await do("replace", path="a.txt", old="x = 1\ny", new="a = 1\ny")).state == "done"
        assert file.read_bytes() == b"a = 1\r\ny = 1\r\n"
        assert (await do("replace", path="a.txt", old="= 1", new="= 2", expected=2)).state == "done"
        regex = await do("replace", path="a.txt", old=r"^(\w) = (\d)", new=r"\2 = \1", regex=True, expected=0)
        assert "in 2 places" in regex.text
        assert file.read_bytes() == b"2 = a\r\n2 = y\r\n"
        assert "occurs 0 times" in (await do("replace", path="a.txt", old="gone", new="x")).text
        assert (
            "no regular expression" in (await do("replace", path="a.txt", old="(", new="x", regex=True)).text
        )
        assert "cannot be used" in (await do("replace", path="a.txt", old="a", new=r"\7", regex=True)).text

    at_the_desk(root, work)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "latin-1"),
    ],
)
def test_encodings_stay_as_they_were(root: Path, mark: bytes, encoding: str) -> None:
    file = root / "a.txt"
    file.write_bytes(mark + "grün und blau\n".encode(encoding))

    async def work(do: Do) -> None:
        assert (await do("replace", path="a.txt", old="blau", new="weiß")).state == "done"
        assert file.read_bytes() == mark + "grün und weiß\n".encode(encoding)
        diff = "--- a.txt\n+++ a.txt\n@@ -1 +1,2 @@\n grün und weiß\n+schön\n"
        assert (await do("patch", diff=diff)).state == "done"
        assert file.read_bytes() == mark + "grün und weiß\nschön\n".encode(encoding)
        assert (await do("write", path="a.txt", text="neu: ä\n")).state == "done"
        assert file.read_bytes() == mark + "neu: ä\n".encode(encoding)
        told = await do("write", path="b.txt", text="€", encoding="latin-1")
        assert "'€' cannot be written in latin-1" in told.text
        assert not (root / "b.txt").exists()

    at_the_desk(root, work)


def test_a_patch_is_applied_whole_or_not_at_all(root: Path) -> None:
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    (root / "b.txt").write_text("alpha\nbeta\n")
    before = (root / "a.txt").read_text()
    good = (
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n"
        "@@ -4,3 +4,4 @@ where it is\n line 5\n-line 6\n+line six\n+and more\n line 7\n"
        "--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1,2 @@\n+c1\n+c2\n\\ No newline at end of file\n"
        "--- a/b.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-alpha\n-beta\n"
    )
    bad = good.replace("line 7\n", "line seven\n")

    async def work(do: Do) -> None:
        outcome = await do("patch", diff=bad)
        assert outcome.state == "failed"
        assert "Hunk 1 of a.txt does not fit" in outcome.text
        assert (root / "a.txt").read_text() == before
        assert (root / "b.txt").exists() and not (root / "new").exists()
        assert (await do("patch", diff=good)).text == "Changed: a.txt, new/c.txt, b.txt."
        assert (root / "a.txt").read_text() == before.replace("line 6\n", "line six\nand more\n")
        assert (root / "new" / "c.txt").read_text() == "c1\nc2"
        assert not (root / "b.txt").exists()
        assert (
            "exists already"
            in (await do("patch", diff=good[good.index("--- /dev/null") : good.index("--- a/b")])).text
        )
        assert "no unified diff" in (await do("patch", diff="change line 6 please")).text
        hook = "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+evil\n"
        outcome = await do("patch", diff="--- /dev/null\n+++ b/new/d.txt\n@@ -0,0 +1 @@\n+d\n" + hook)
        assert outcome.state == "failed" and "go by it, by themselves" in outcome.text
        assert not (root / ".git").exists() and not (root / "new" / "d.txt").exists()

    at_the_desk(root, work)


def test_move_remove_and_the_bin(root: Path) -> None:
    (root / "a b.txt").write_text("a")
    (root / "c.txt").write_text("c")
    (root / "sub").mkdir()

    async def work(do: Do) -> None:
        assert "c.txt exists" in (await do("move", source="a b.txt", target="c.txt")).text
        assert (await do("move", source="c.txt", target="sub")).text == "Moved c.txt to sub/c.txt."
        assert (await do("remove", path="a b.txt")).state == "done"
        (root / "a b.txt").write_text("another")
        assert (await do("remove", path="a b.txt")).state == "done"
        assert (await do("remove", path="sub")).state == "done"
        assert "There is no gone" in (await do("remove", path="gone")).text

    at_the_desk(root, work)
    assert list(root.iterdir()) == []
    trash = root.parent / "data" / "Trash"
    assert (trash / "files" / "a b.txt").read_text() == "a"
    assert (trash / "files" / "a b.2.txt").read_text() == "another"
    assert (trash / "files" / "sub" / "c.txt").read_text() == "c"
    note = (trash / "info" / "a b.txt.trashinfo").read_text().split("\n")
    assert note[0] == "[Trash Info]"
    assert unquote(note[1]) == f"Path={root / 'a b.txt'}"


lines = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "-e", "+f", "@@ g"]), max_size=14)


@pytest.mark.skipif(shutil.which("diff") is None, reason="there is no diff")
@given(lines, lines, st.booleans(), st.booleans(), st.integers(0, 3))
def test_what_diff_writes_is_applied(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], a: bool, b: bool, context: int
) -> None:
    """Any two texts, with and without a last line end: the diff of the real program leads from one to
    the other."""
    before = "\n".join(old) + ("\n" if a and old else "")
    after = "\n".join(new) + ("\n" if b and new else "")
    folder = tmp_path_factory.getbasetemp() / "diffs"
    folder.mkdir(exist_ok=True)
    (folder / "old").write_text(before)
    (folder / "new").write_text(after)
    made = subprocess.run(
        ["diff", f"-U{context}", "old", "new"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    ).stdout
    if not made:
        return
    (change,) = patching.parse(made)
    try:
        applied = patching.apply(before, change.hunks, "old", "\n")
    except Refused:
        assert context == 0  # without context a place may be ambiguous, never wrong
        return
    if context:
        assert applied == after


@given(st.text(max_size=200))
def test_any_text_is_a_diff_or_refused(text: str) -> None:
    for diff in (text, f"--- a\n+++ b\n@@ -1 +1 @@\n{text}"):
        try:
            patching.parse(diff)
        except Refused as error:
            assert str(error)
