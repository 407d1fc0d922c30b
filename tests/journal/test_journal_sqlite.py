from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from conformance import Conformance, event, ids, posted, soon

from textor.errors import JournalError
from textor.events import NoteSet
from textor.journal.lock import Gate
from textor.journal.port import Journal
from textor.journal.snapshots import Snapshots
from textor.journal.sqlite import SqliteJournal


class TestSqliteJournal(Conformance):
    def make(self, folder: Path) -> Journal:
        return SqliteJournal(folder / "new" / "journal.db")


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def test_all_is_there_when_opened_again(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        await journal.create("s", [event("a")])
        await journal.append("s", [event("b", NoteSet("main", "k", "x" * 70_000))], epoch=0)
        epoch = await journal.claim("s")
        before = [e async for e in journal.read("s")], await journal.sessions()
        await journal.close()
        again = SqliteJournal(tmp_path / "j.db")
        assert ([e async for e in again.read("s")], await again.sessions()) == before
        assert await again.claim("s") == epoch + 1
        await again.close()

    asyncio.run(run())


def test_only_big_contents_lie_in_the_blob_folder_and_each_once(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        small, big = NoteSet("m", "k", "x" * 60_000), NoteSet("m", "k", "x" * 70_000)
        await journal.create("s", [event("a", small), event("b", big), event("c", big)])
        [file] = files(tmp_path / "j.db-blobs")
        assert file.relative_to(tmp_path / "j.db-blobs").parts[:2] == (file.name[:2], file.name[2:4])
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        with pytest.raises(JournalError, match="damaged") as caught:
            await ids(journal)
        assert str(file) in str(caught.value)
        file.unlink()
        with pytest.raises(JournalError, match=r"event 2 of session s.*missing"):
            await ids(journal)
        await journal.append("s", [event("d", big)], epoch=0)  # writes it anew
        assert await ids(journal) == ["a", "b", "c", "d"]
        await journal.close()

    asyncio.run(run())


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_nobody_else_can_read_what_is_kept(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "new" / "j.db")
        await journal.create("s", [event("a", NoteSet("m", "k", "x" * 70_000))])
        for name in ("j.db", "j.db-wal", "j.db-shm", "j.db-lock"):
            assert (tmp_path / "new" / name).stat().st_mode & 0o777 == 0o600
        for folder in ("new", "new/j.db-blobs"):
            assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700
        await journal.close()

    asyncio.run(run())


def test_two_journals_in_one_process_notice_each_other(tmp_path: Path) -> None:
    async def run() -> None:
        one, two = SqliteJournal(tmp_path / "j.db"), SqliteJournal(tmp_path / "j.db")
        changes = two.changes()
        await one.create("s", [event("a")])
        events = two.follow("s")
        assert (await anext(events)).id == "a"
        await two.append("s", [event("b")], epoch=0)
        await one.append("s", [posted("c")], epoch=None)
        assert [(await anext(events)).id, (await anext(events)).id] == ["b", "c"]
        assert await anext(changes) == "s"
        await one.close()
        await two.close()

    asyncio.run(soon(run()))


# -- what cannot work says why -----------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(JournalError) as caught:
        SqliteJournal(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("My notes, " * 500)
    assert "is not a journal" in refused(text)
    assert text.read_text() == "My notes, " * 500

    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("create table mine (a)")
    connection.close()
    content = other.read_bytes()
    assert "another program" in refused(other)
    assert other.read_bytes() == content

    folder = tmp_path / "folder"
    folder.mkdir()
    refused(folder)


def test_a_journal_of_a_newer_textor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    asyncio.run(SqliteJournal(path).close())
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    assert "form 99" in refused(path)


@pytest.mark.parametrize("share", [0.5, 1.0], ids=["found when read", "found when opened"])
def test_a_damaged_file_is_reported_with_its_path(tmp_path: Path, share: float) -> None:
    path = tmp_path / "j.db"

    async def fill() -> None:
        journal = SqliteJournal(path)
        await journal.create("s", [event(f"e{i}", NoteSet("m", "k", "x" * 500)) for i in range(400)])
        await journal.close()

    async def use() -> None:
        journal = SqliteJournal(path)
        try:
            await ids(journal)
        finally:
            await journal.close()

    asyncio.run(fill())
    start, end = 8 * 4096, int(path.stat().st_size * share)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xee" * (end - start))
    with pytest.raises(JournalError, match="damaged") as caught:
        asyncio.run(use())
    assert str(path) in str(caught.value)


def test_an_event_that_was_tampered_with_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        await journal.create("s", [event("a"), event("b")])
        with sqlite3.connect(tmp_path / "j.db") as connection:
            connection.execute("update event set data = x'7b7d' where seq = 2")
        connection.close()
        with pytest.raises(JournalError, match=r"Event 2 of session s \(note\.set, .*\) cannot be read"):
            await ids(journal)
        await journal.close()

    asyncio.run(run())


def test_a_full_database_stops_with_a_reason_and_goes_on_later(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        await journal.create("s", [event("a")])

        async def limit(pages: int) -> None:
            def work(connection: sqlite3.Connection) -> tuple[None, dict[str, bool]]:
                connection.execute(f"pragma max_page_count = {pages}")
                return None, {}

            await journal.writer.do(work)

        await limit(40)
        kept = ["a"]
        with pytest.raises(JournalError, match="disk is full") as caught:
            for i in range(1000):
                batch = [event(f"{i}.{n}", NoteSet("m", "k", "x" * 2000)) for n in range(5)]
                await journal.append("s", batch, epoch=0)
                kept += [e.id for e in batch]
        assert str(tmp_path / "j.db") in str(caught.value)
        assert len(kept) > 6 and await ids(journal) == kept
        together = await asyncio.gather(
            *(
                journal.append("s", [event(f"big{i}", NoteSet("m", "k", "x" * 60_000))], epoch=0)
                for i in range(3)
            ),
            return_exceptions=True,
        )
        assert all(isinstance(error, JournalError) for error in together)
        assert await ids(journal) == kept
        await limit(100_000)
        await journal.append("s", [event("again", NoteSet("m", "k", "x" * 60_000))], epoch=0)
        assert await ids(journal) == [*kept, "again"]
        info = await journal.session("s")
        assert info is not None and info.head == len(kept) + 1
        await journal.close()

    asyncio.run(run())


FILE_LIMIT = """
import asyncio, resource, sys
from pathlib import Path
from textor.errors import JournalError
from textor.events import Event, NoteSet
from textor.journal.sqlite import SqliteJournal

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def note(id, size):
    return Event(NoteSet("m", "k", "x" * size), id, 1.0)

async def main(path, size):
    journal = SqliteJournal(Path(path))
    await journal.create("s", [note("a", 10)])
    kept = ["a"]
    limit(300_000)
    try:
        for i in range(1000):
            await journal.append("s", [note(f"e{i}", size)], epoch=0)
            kept.append(f"e{i}")
    except JournalError as error:
        print(error)
    assert [e.id async for e in journal.read("s")] == kept, "torn"
    limit(resource.RLIM_INFINITY)
    await journal.append("s", [note("again", size)], epoch=0)
    await journal.close()
    journal = SqliteJournal(Path(path))
    assert [e.id async for e in journal.read("s")] == [*kept, "again"]
    assert not list(Path(path + "-blobs").rglob(".*")), "a draft was left"
    print(len(kept))
    await journal.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""

NO_PERMISSION = """
import os, sys
from pathlib import Path
from textor.errors import JournalError
from textor.journal.sqlite import SqliteJournal
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    SqliteJournal(Path(sys.argv[1]))
except JournalError as error:
    print(error)
"""


def outcome(program: str, *arguments: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
@pytest.mark.parametrize(("size", "least"), [(3_000, 10), (400_000, 1)], ids=["log", "blob"])
def test_a_write_that_fails_tears_nothing(tmp_path: Path, size: int, least: int) -> None:
    sentence, kept = outcome(FILE_LIMIT, tmp_path / "j.db", size)
    assert str(tmp_path / "j.db") in sentence and "disk" in sentence
    assert int(kept) >= least


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_no_permission_is_said_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    asyncio.run(SqliteJournal(path).close())
    for file in files(tmp_path):
        file.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        [sentence] = outcome(NO_PERMISSION, path)
        assert "no permission" in sentence and str(path) in sentence
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.needs_hardware  # a disk that may be mounted; the limits above stand in for it
def test_a_really_full_disk(tmp_path: Path) -> None:
    if not shutil.which("unshare"):
        pytest.skip("no unshare here")
    mount = ["unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c"]
    if subprocess.run([*mount, f"mount -t tmpfs none {tmp_path}"], capture_output=True).returncode:
        pytest.skip("no name spaces for this user")
    program = (
        FILE_LIMIT.replace("limit(300_000)", "filler.write_bytes(bytes(1_500_000))")
        .replace("limit(resource.RLIM_INFINITY)", "filler.unlink()")
        .replace('kept = ["a"]', 'kept = ["a"]; filler = Path(path).with_name("filler")')
    )
    script = (
        f'mount -t tmpfs -o size=2m none "{tmp_path}" && "{sys.executable}" -c "$1" "{tmp_path}/j.db" 3000'
    )
    done = subprocess.run([*mount, script, "sh", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sentence, kept = done.stdout.splitlines()
    assert "disk is full" in sentence and str(tmp_path / "j.db") in sentence
    assert int(kept) > 5


def test_a_gate_that_stays_shut_gives_up_with_a_sentence(tmp_path: Path) -> None:
    shut = pytest.raises(JournalError, match="was not free within 0 seconds")
    with Gate(tmp_path / "lock"), shut, Gate(tmp_path / "lock", 0.0):
        pass
    with Gate(tmp_path / "lock", 0.0):
        pass


# -- one piece of work does not take another along ---------------------------------------------


def test_work_that_fails_takes_nothing_else_along(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        await journal.create("s", [event("a")])

        def broken(connection: sqlite3.Connection) -> tuple[None, dict[str, bool]]:
            connection.execute("update session set head = 99")
            raise RuntimeError("a bug")

        done = await asyncio.gather(
            journal.append("s", [event("b")], epoch=0),
            journal.writer.do(broken),
            journal.append("s", [event("c")], epoch=0),
            return_exceptions=True,
        )
        assert isinstance(done[1], JournalError) and "a bug" in str(done[1])
        assert await ids(journal) == ["a", "b", "c"]
        await journal.close()

    asyncio.run(run())


def test_a_cancelled_append_disturbs_nobody(tmp_path: Path) -> None:
    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        await journal.create("s", [event("a")])
        tasks = [asyncio.create_task(journal.append("s", [event(f"{i}")], epoch=0)) for i in range(10)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(d, asyncio.CancelledError) for d in done] == [True, False] * 5
        read = [e async for e in journal.read("s")]
        assert [e.seq for e in read] == list(range(1, len(read) + 1))
        assert {f"{i}" for i in range(1, 10, 2)} <= {e.id for e in read}
        await journal.close()

    asyncio.run(run())


def test_a_journal_serves_one_loop_after_another(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    asyncio.run(journal.create("s", [event("a")]))
    asyncio.run(journal.append("s", [event("b")], epoch=0))
    assert asyncio.run(ids(journal)) == ["a", "b"]
    asyncio.run(journal.close())


# -- snapshots ---------------------------------------------------------------------------------


def test_snapshots_are_a_cache(tmp_path: Path) -> None:
    def drop(connection: sqlite3.Connection) -> tuple[None, dict[str, bool]]:
        connection.execute("drop table snapshot")
        return None, {}

    async def run() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        await journal.create("s", [event("a"), event("b"), event("c")])
        old, new = Snapshots(journal, "1"), Snapshots(journal, "2")
        assert await old.latest("s") is None
        await old.put("s", 2, b"state 2")
        await old.put("s", 1, b"state 1")
        assert await old.latest("s") == (2, b"state 2")
        assert await new.latest("s") is None  # another code does not read it
        assert await old.latest("t") is None
        await new.put("s", 1, b"state 1 of new code")
        assert (await new.latest("s"), await old.latest("s")) == ((1, b"state 1 of new code"), None)
        await new.put("s", 4, b"of a longer past than this journal has")
        assert await new.latest("s") is None
        await journal.writer.do(drop)
        assert await new.latest("s") is None
        await new.put("s", 3, b"state 3")
        assert await new.latest("s") == (3, b"state 3")
        assert await ids(journal) == ["a", "b", "c"]
        await journal.close()

    asyncio.run(run())
