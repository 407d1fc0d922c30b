"""The document of an app: whole changes, versions, its file, two processes, and taking back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.apps.store import Refused, Store, merged, write_atomically


class Page(msgspec.Struct):
    text: str = ""
    number: int = 0
    items: list[str] = msgspec.field(default_factory=list)


def store(path: Path) -> Store[Page]:
    made: Store[Page] = Store(Page)
    made.open(path)
    return made


def write(made: Store[Page], text: str, by: Any = "ai") -> None:
    with made.change(by, f"wrote {text}"):
        made.state.text = text


def test_a_change_is_kept_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "page.json"
    first = store(path)
    assert not path.exists()
    write(first, "beans")
    write(first, "beans")  # changes nothing
    assert first.version == 1
    again = store(path)
    assert (again.state.text, again.version) == ("beans", 1)
    assert path.stat().st_mode & 0o077 == 0


def test_a_change_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    made = store(tmp_path / "page.json")
    write(made, "old")

    def half(then: Any) -> None:
        with made.change("ai", "half"):
            made.state.text = "new"
            made.state.items.append("x")
            then()

    with pytest.raises(ZeroDivisionError):
        half(lambda: 1 / 0)
    with pytest.raises(Refused, match="does not fit"):
        half(lambda: setattr(made.state, "number", "many"))
    assert (made.state, made.version) == (Page("old"), 1)


def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = store(tmp_path / "page.json")
    write(made, "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("textor.apps.store.os.fsync", full)
    with pytest.raises(Refused, match="No space left") as raised:
        write(made, "new")
    assert raised.value.status == 507
    assert (made.state.text, made.version) == ("old", 1)
    assert json.loads((tmp_path / "page.json").read_text())["state"]["text"] == "old"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".page")] == []


def test_two_processes_do_not_overwrite_each_other(tmp_path: Path) -> None:
    one, two = store(tmp_path / "page.json"), store(tmp_path / "page.json")
    with one.change("ai", "one"):
        one.state.items.append("one")
    with two.change("ai", "two"):
        two.state.items.append("two")
    one.reload()
    assert one.state.items == ["one", "two"]
    assert one.last is not None and one.last.by == "elsewhere"
    assert one.version == two.version == 2


def test_a_file_that_is_none_of_ours_is_told_and_left_alone(tmp_path: Path) -> None:
    made = store(tmp_path / "good.json")
    write(made, "good")
    for content in ("", "[]", '{"version": 1}', '{"version": 1, "state": {"number": "x"}}'):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(Refused, match="cannot be read"):
            made.open(tmp_path / "bad.json")
        assert (made.id, made.state.text) == ("good", "good")
        assert (tmp_path / "bad.json").read_text() == content


# -- taking back -----------------------------------------------------------------------------


def test_the_last_change_of_the_ai_is_taken_back_and_what_a_person_did_stays(tmp_path: Path) -> None:
    made = store(tmp_path / "page.json")
    write(made, "by hand", "person")
    write(made, "first")
    write(made, "second")
    made.edit("number", 7, 0)
    assert made.undo() == "wrote second"
    assert (made.state.text, made.state.number) == ("first", 7)
    assert made.undo() == "wrote first"
    assert made.state.text == "by hand"
    with pytest.raises(Refused, match="nothing of the AI"):
        made.undo()
    assert made.version == 6


def test_nothing_is_taken_back_behind_a_final_change(tmp_path: Path) -> None:
    made = store(tmp_path / "page.json")
    write(made, "letter")
    with made.change("ai", "sent", final=True):
        made.state.number = 1
    with pytest.raises(Refused, match="nothing of the AI"):
        made.undo()


def test_what_a_person_wrote_over_it_is_not_taken_back(tmp_path: Path) -> None:
    made = store(tmp_path / "page.json")
    write(made, "by the AI")
    made.edit("text", "by hand", "by the AI")
    with pytest.raises(Refused, match="text was changed since"):
        made.undo()
    assert made.state.text == "by hand"


# -- editing ---------------------------------------------------------------------------------


def test_an_edit_reaches_one_place(tmp_path: Path) -> None:
    made = store(tmp_path / "page.json")
    with made.change("ai", "items"):
        made.state.items += ["a", "b"]
    made.edit("items.1", "B", "b")
    assert made.state.items == ["a", "B"]
    for path in ("nothing", "items.9", "items.x", "text.0.a", "", "items.-3"):
        with pytest.raises(Refused, match="There is no"):
            made.edit(path, "x", None)
    with pytest.raises(Refused, match="number does not take that"):
        made.edit("number", "many", None)
    assert (made.state.items, made.state.number) == (["a", "B"], 0)


def test_what_the_ai_added_meanwhile_is_kept(tmp_path: Path) -> None:
    made = store(tmp_path / "page.json")
    write(made, "Hello")
    write(made, "Hello\nfrom the AI")
    made.edit("text", "Hello Bob", "Hello")  # the person typed on, and has not seen the second line
    assert made.state.text == "Hello Bob\nfrom the AI"
    made.edit("text", "Hello Bobby", "Hello Bob")  # and types on
    assert made.state.text == "Hello Bobby\nfrom the AI"


@given(st.text(), st.text(), st.text())
def test_nothing_that_was_added_is_lost(base: str, typed: str, added: str) -> None:
    found = merged(typed, base, base + added)
    assert typed in found and added in found
    assert merged(typed, base, base) == typed


def test_pages_are_told_the_latest(tmp_path: Path) -> None:
    async def run() -> None:
        made = store(tmp_path / "page.json")
        stream = made.follow()
        assert (await anext(stream))["version"] == 0
        for n in range(5):
            write(made, str(n))
        latest = await anext(stream)
        assert (latest["version"], latest["state"]["text"], latest["undoable"]) == (5, "4", True)
        assert latest["change"] == {"version": 5, "by": "ai", "label": "wrote 4"}
        write(store(tmp_path / "page.json"), "from another process")
        assert (await anext(stream))["state"]["text"] == "from another process"
        await stream.aclose()

    asyncio.run(run())


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.bin"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["a.bin"]
