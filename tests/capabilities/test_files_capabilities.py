import codecs
import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.capabilities import files
from textor.capabilities.files import FilesProvider
from textor.capabilities.opening import write_whole
from textor.capabilities.places import Judged, resolve
from textor.values import content_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture
def provider():
    return FilesProvider()


@pytest.fixture(params=["walker", "ripgrep"])
def searcher(request):
    program = shutil.which("rg")
    if request.param == "walker":
        return FilesProvider(ripgrep="")
    if program is None:
        pytest.skip("needs_data: ripgrep is not installed")
    return FilesProvider(ripgrep=program)


# -- list ----------------------------------------------------------------------------------


def test_list_shows_folders_first_then_files_with_sizes(desk, provider):
    (desk.workspace / "src").mkdir()
    (desk.workspace / "b.txt").write_text("x" * 1500)
    (desk.workspace / "A.md").write_text("hello")
    (desk.workspace / "broken").symlink_to("nowhere")
    outcome = desk.do(provider, "files.list")
    assert outcome.text == "src/\nA.md  5 B\nb.txt  1.5 kB\nbroken  7 B"
    assert [entry["name"] for entry in outcome.data] == ["src", "A.md", "b.txt", "broken"]
    assert desk.do(provider, "files.list", folder="src").text == "The folder is empty."


def test_list_is_bounded_and_takes_any_name(desk, provider):
    (desk.workspace / os.fsdecode(b"caf\xe9")).touch()
    assert desk.do(provider, "files.list").text == "caf�  0 B"
    for number in range(files.MOST_ENTRIES):
        (desk.workspace / f"{number:04}").touch()
    outcome = desk.do(provider, "files.list")
    assert outcome.text.endswith("[and 1 more]")
    assert len(outcome.data) == files.MOST_ENTRIES


# -- read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "Grüße 🙂\r\nzwei\n".encode(),
        codecs.BOM_UTF8 + "Grüße 🙂\r\nzwei\n".encode(),
        "Grüße 🙂\r\nzwei\n".encode("utf-16"),
        codecs.BOM_UTF16_BE + "Grüße 🙂\r\nzwei\n".encode("utf-16-be"),
        "Grüße 🙂\r\nzwei\n".encode("utf-32"),
    ],
)
def test_read_knows_encodings_and_keeps_line_ends(desk, provider, content):
    (desk.workspace / "a.txt").write_bytes(content)
    assert desk.do(provider, "files.read", path="a.txt").text == "Grüße 🙂\r\nzwei\n"


def test_read_falls_back_to_latin_1_wherever_the_first_odd_byte_is(desk, provider):
    (desk.workspace / "a.txt").write_bytes(b"x" * 7000 + "é".encode("latin-1"))
    assert desk.do(provider, "files.read", path="a.txt").text == "x" * 7000 + "é"


def test_read_some_lines(desk, provider):
    (desk.workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    some = desk.do(provider, "files.read", path="a.txt", start_line=2, line_count=2)
    assert some.text == "line 2\nline 3\n\n[more follows; go on with start_line=4]"
    assert (
        desk.do(provider, "files.read", path="a.txt", start_line=4, line_count=2).text == "line 4\nline 5\n"
    )
    beyond = desk.do(provider, "files.read", path="a.txt", start_line=7)
    assert (beyond.state, beyond.text) == ("failed", "The file has 5 lines; there is no line 7.")
    assert desk.do(provider, "files.read", path="a.txt", start_line=0).state == "failed"


def test_read_gives_a_big_text_as_a_value(desk, provider):
    text = "".join(f"line {n}\n" for n in range(10_000))
    (desk.workspace / "a.txt").write_text(text)
    outcome = desk.do(provider, "files.read", path="a.txt")
    [value] = outcome.values
    assert content_of(value, desk.blobs).decode() == text
    assert value.handle in outcome.text


def test_read_stops_in_a_file_without_end(desk, provider):
    with (desk.workspace / "a.txt").open("w") as file:
        for _ in range(5):
            file.write("x" * 999_999 + "\n")
    outcome = desk.do(provider, "files.read", path="a.txt")
    assert outcome.values[0].size < files.MOST_TEXT + 100
    assert outcome.text.endswith("[cut; go on with start_line=5]")


def test_read_shows_an_image_and_describes_other_bytes(desk, provider):
    (desk.workspace / "a.dat").write_bytes(PNG)
    outcome = desk.do(provider, "files.read", path="a.dat")
    assert outcome.text == "[a.dat: image/png, 48 B]"
    assert (outcome.values[0].kind, outcome.values[0].media_type) == ("image", "image/png")
    assert desk.blobs.get(outcome.values[0].blob) == PNG
    (desk.workspace / "a.pdf").write_bytes(b"%PDF-\0\0")
    assert desk.do(provider, "files.read", path="a.pdf").text == "[a.pdf is no text: application/pdf, 7 B]"


def test_faults_are_said_as_a_person_would(desk, provider):
    (desk.workspace / "README.md").write_text("x")
    (desk.workspace / "src").mkdir()
    os.mkfifo(desk.workspace / "pipe")
    missing = desk.do(provider, "files.read", path="readme.txt")
    assert missing.text == "There is no readme.txt. In the workspace there is: README.md."
    assert "nothing of a name like" in desk.do(provider, "files.read", path="zzzzzz/a/b").text
    assert desk.do(provider, "files.read", path="src").text == "src is a folder. Use files.list."
    assert desk.do(provider, "files.list", folder="README.md").text.startswith("README.md is a file")
    assert "is no regular file" in desk.do(provider, "files.read", path="pipe").text
    assert "is no path" in desk.do(provider, "files.read", path="a\0b").text
    assert "A part of README.md/x is a file" in desk.do(provider, "files.read", path="README.md/x").text
    assert desk.do(provider, "files.write", text="x", path="src").text.startswith("src is a folder")
    assert desk.do(provider, "files.write", text="x", path="README.md/x").state == "failed"


def test_no_permission_is_said(desk, provider):
    (desk.workspace / "a.txt").touch(0o000)
    root = os.geteuid() == 0
    if root:  # who may read everything: look as somebody else
        for folder in (desk.workspace, *desk.workspace.parents):
            if folder.stat().st_uid == 0 and folder.is_relative_to(desk.workspace.parents[2]):
                folder.chmod(0o755)
        os.seteuid(65534)
    try:
        assert desk.do(provider, "files.read", path="a.txt").text == "No permission for a.txt."
    finally:
        if root:
            os.seteuid(0)


# -- write ---------------------------------------------------------------------------------


def test_write_makes_folders_and_keeps_every_byte(desk, provider):
    text = 'tab\t "quotes" \\n 🙂\r\nno end'
    outcome = desk.do(provider, "files.write", text=text, path="new/deep/a.txt")
    assert outcome.text == f"Made new/deep/a.txt ({len(text.encode())} B)."
    assert (desk.workspace / "new/deep/a.txt").read_bytes() == text.encode()


def test_write_keeps_mode_and_links_and_leaves_no_draft(desk, provider):
    script = desk.workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    (desk.workspace / "link").symlink_to("run.sh")
    assert desk.do(provider, "files.write", text="new", path="link").text == "Replaced run.sh (3 B)."
    assert script.read_text() == "new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert (desk.workspace / "link").is_symlink()
    assert sorted(p.name for p in desk.workspace.iterdir()) == ["link", "run.sh"]


def test_a_write_that_fails_leaves_the_old_text_and_no_draft(desk, monkeypatch):
    path = desk.workspace / "a.txt"
    path.write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    outcome = desk.do(FilesProvider(), "files.write", text="new", path="a.txt")
    assert outcome.text == "a.txt: No space left on device."
    assert path.read_text() == "old"
    assert [p.name for p in desk.workspace.iterdir()] == ["a.txt"]


def test_new_files_get_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        assert write_whole(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_lone_surrogate_is_refused(desk, provider):
    assert "half a character" in desk.do(provider, "files.write", text="\ud800", path="a").text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_was_written_is_read(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("round")
    write_whole(folder / "a", text.encode())
    content = (folder / "a").read_bytes()
    if text and not text.startswith("\ufeff") and "\0" not in text:
        with (folder / "a").open("rb") as file:
            assert files.read_lines(file, content, 1, None) == text


# -- links that come in between --------------------------------------------------------------


@pytest.fixture
def swapped(desk):
    """A folder of the workspace that was looked at, and has since become a link out of it."""
    outside = desk.workspace.parent / "outside"
    (desk.workspace / "sub" / "deep").mkdir(parents=True)
    (desk.workspace / "sub" / "deep" / "a.txt").write_text("mine")
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "a.txt").write_text("secret")

    def swap(*paths: str, what: str = "sub"):
        desk.judged = {path: Judged(resolve(path, desk.workspace)) for path in paths}
        (desk.workspace / what).rename(desk.workspace / "old")
        target = outside / Path(what).relative_to("sub")
        (desk.workspace / what).symlink_to(target)
        return outside

    return swap


USES = [
    ("files.read", {"path": "sub/deep/a.txt"}),
    ("files.write", {"path": "sub/deep/a.txt", "text": "evil"}),
    ("files.write", {"path": "sub/deep/new/b.txt", "text": "evil"}),
    ("files.list", {"folder": "sub/deep"}),
    ("files.search", {"folder": "sub/deep", "query": "secret"}),
]


@pytest.mark.parametrize(
    ("what", "name", "arguments"),
    [
        *[("sub", *use) for use in USES],
        *[("sub/deep", *use) for use in USES],
        *[("sub/deep/a.txt", *use) for use in USES[:2]],
    ],
)
def test_a_link_that_came_in_between_is_not_followed(desk, provider, swapped, what, name, arguments):
    given = str(arguments.get("path") or arguments["folder"])
    outside = swapped(given, what=what)
    outcome = desk.do(provider, name, **arguments)
    assert "secret" not in outcome.text
    assert (outcome.state, "a link was put there after it was looked at" in outcome.text) == ("failed", True)
    assert [p.name for p in (outside / "deep").iterdir()] == ["a.txt"]
    assert (outside / "deep" / "a.txt").read_text() == "secret"


def test_a_link_that_was_judged_is_followed(desk, provider):
    (desk.workspace / "real").mkdir()
    (desk.workspace / "link").symlink_to("real")
    desk.judged = {"link/a.txt": Judged(resolve("link/a.txt", desk.workspace))}
    assert desk.do(provider, "files.write", path="link/a.txt", text="x").state == "done"
    assert (desk.workspace / "real" / "a.txt").read_text() == "x"


def test_folders_that_can_only_be_passed_through(desk, provider):
    inner = desk.workspace / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "a.txt").write_text("here")
    (desk.workspace / "closed").chmod(0o111)
    try:
        assert desk.do(provider, "files.read", path="closed/inner/a.txt").text == "here"
        assert "a.txt" in desk.do(provider, "files.list", folder="closed/inner").text
    finally:
        (desk.workspace / "closed").chmod(0o755)


# -- search --------------------------------------------------------------------------------


@pytest.fixture
def library(desk):
    (desk.workspace / "src").mkdir()
    (desk.workspace / ".git").mkdir()
    (desk.workspace / "src" / "a.py").write_text("one\n  # TODO: a.b\r\ntwo\n")
    (desk.workspace / "src" / "b:1.txt").write_text("todo axb\n")
    (desk.workspace / "latin.txt").write_bytes("Grüße todo".encode("latin-1"))
    (desk.workspace / ".git" / "config").write_text("todo\n")
    (desk.workspace / "binary").write_bytes(b"\0\1todo\n")
    return desk


def test_search_finds_plain_text_with_place(library, searcher):
    outcome = library.do(searcher, "files.search", query="todo")
    assert outcome.text.split("\n") == [
        "latin.txt:1: Gr��e todo",
        "src/a.py:2:   # TODO: a.b",
        "src/b:1.txt:1: todo axb",
    ]
    assert outcome.data[1] == {"path": "src/a.py", "line": 2, "text": "  # TODO: a.b"}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"query": "TODO"}, ["src/a.py"]),  # capitals count when there are some
        ({"query": "a.b"}, ["src/a.py"]),
        ({"query": "a.b", "regex": True}, ["src/a.py", "src/b:1.txt"]),
        ({"query": "todo", "pattern": "*.py"}, ["src/a.py"]),
        ({"query": "todo", "folder": "src"}, ["src/a.py", "src/b:1.txt"]),
        ({"query": "todo", "folder": "src/a.py"}, ["src/a.py"]),
        ({"query": "-e"}, []),
        ({"query": "one\ntwo"}, []),
    ],
)
def test_search_narrowed(library, searcher, arguments, found):
    if searcher.ripgrep and "\n" in arguments["query"]:
        assert library.do(searcher, "files.search", **arguments).state == "failed"
        return
    assert [hit["path"] for hit in library.do(searcher, "files.search", **arguments).data] == found


def test_search_without_hits_and_with_faults(library, searcher):
    assert (
        library.do(searcher, "files.search", query="zebra").text == "'zebra' was not found in the workspace."
    )
    bad = library.do(searcher, "files.search", query="(", regex=True)
    assert bad.state == "failed"
    assert "cannot search for '('" in bad.text
    assert library.do(searcher, "files.search", query="").state == "failed"
    assert "There is no nope" in library.do(searcher, "files.search", query="x", folder="nope").text


def test_search_is_bounded(desk, searcher):
    for number in range(5):
        (desk.workspace / f"{number}.txt").write_text(("x" * 1000 + "\n") * 90)
    outcome = desk.do(searcher, "files.search", query="x")
    assert len(outcome.data) == files.MOST_HITS
    assert outcome.text.endswith("ask for something narrower]")
    assert all(len(hit["text"]) < 400 for hit in outcome.data)


def test_an_expression_that_takes_for_ever_is_stopped(desk, monkeypatch):
    monkeypatch.setattr(files, "SEARCH_TIME", 0.5)
    (desk.workspace / "a.txt").write_text("a" * 60)
    outcome = desk.do(FilesProvider(ripgrep=""), "files.search", query="(a+)+$b", regex=True)
    assert "[stopped after 0.5 seconds]" in outcome.text
