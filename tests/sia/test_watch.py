"""What is shown of monitored files and folders."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from textor.capabilities.system import Nvidia, System
from textor.capabilities.watch import MOST_LINES, MOST_OF_ONE, Watched, entry_line, signature, view, views


def seen(path: Path, most: int = MOST_OF_ONE) -> tuple[str, str, str]:
    found = view(Watched(path.name, Path(os.path.realpath(path)), 0), most)
    return found.kind, found.text, found.note


def test_a_file_is_shown_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    assert seen(path) == ("gone", "", "[deleted: there is no such file now]")
    path.write_text("one\n")
    assert seen(path) == ("file", "one\n", "")
    path.write_text("two\n")
    assert seen(path)[1] == "two\n"


@pytest.mark.parametrize("shift", range(4))
def test_a_long_file_is_shown_by_head_and_tail_of_whole_characters(tmp_path: Path, shift: int) -> None:
    path = tmp_path / "long.txt"
    text = "x" * shift + "🐈" * 1000
    path.write_text(text)
    kind, shown, note = seen(path, 101)
    first, _, rest = shown.partition("\n[… ")
    left_out, _, last = rest.partition(" bytes left out …]\n")
    assert kind == "file"
    assert text.startswith(first) and text.endswith(last)
    assert len(first.encode()) + len(last.encode()) + int(left_out) == len(text.encode())
    assert note == f"[{left_out} of {len(text.encode())} bytes left out in the middle]"


def test_what_is_no_text_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b"\x7fELF\0\1")
    assert seen(path) == ("file", "", "[binary, 6 bytes]")
    path.write_bytes(b"\xff\xfe" * 10_000)
    assert seen(path) == ("file", "", "[binary, 20000 bytes]")


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    assert seen(tmp_path / "p")[2] == "[neither a file nor a folder]"


def test_a_link_that_leads_elsewhere_later_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    path = tmp_path / "a.txt"
    path.write_text("one")
    watched = Watched("a.txt", path, 0)
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    assert "elsewhere" in view(watched).note
    assert view(watched).text == ""


def test_a_folder_is_shown_as_ls_writes_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 71)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "odd\nname").write_text("")
    told = subprocess.run(
        ["ls", "-l", "--full-time", "-p", "--quoting-style=escape", str(tmp_path)],
        capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"},
    ).stdout.splitlines()[1:]  # fmt: skip
    ours = seen(tmp_path)[1].splitlines()
    assert [line.split() for line in ours] == [line.split() for line in told]


def test_a_big_folder_is_cut_with_a_note(tmp_path: Path) -> None:
    for number in range(MOST_LINES + 5):
        (tmp_path / f"{number:03}").touch()
    kind, text, note = seen(tmp_path, 100_000)
    assert (kind, len(text.splitlines()), note) == (
        "dir",
        MOST_LINES,
        f"[5 of {MOST_LINES + 5} entries left out]",
    )
    assert text.splitlines()[0] == entry_line(tmp_path / "000")


def test_all_together_have_a_limit(tmp_path: Path) -> None:
    watched = []
    for number in range(4):
        path = tmp_path / str(number)
        path.write_text("x" * 90)
        watched.append(Watched(str(number), path, number))
    found = views(watched, 250)
    assert [len(v.text) for v in found[:2]] == [90, 90]
    assert found[2].note.startswith("[")  # cut to what was left
    assert found[3].note.startswith("[not shown: what is monitored has more than 250 bytes")


def test_a_signature_tells_changes_apart(tmp_path: Path) -> None:
    folder = signature(tmp_path)
    (tmp_path / "a").write_text("1")
    assert signature(tmp_path) != folder
    assert signature(tmp_path / "none") == ()


def test_the_load_of_this_machine(tmp_path: Path) -> None:
    load = System(gpu=lambda: 26).load(tmp_path)
    assert 0 < load.memory_used < load.memory_total
    assert 0 < load.disk_used <= load.disk_total
    assert 0 <= load.cpu <= 100 and load.gpu == 26


def test_the_busiest_graphics_processor_counts(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '3\\n41\\n'\n")
    program.chmod(0o755)
    gpu = Nvidia(str(program))
    gpu.ask()
    assert gpu._last == 41
    program.write_text("#!/bin/sh\necho '[N/A]'\n")
    gpu.ask()
    assert gpu._last == 41
