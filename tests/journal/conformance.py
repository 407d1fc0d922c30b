"""What every journal must do. `Conformance` is run over each,
in test_journal_memory.py and test_journal_sqlite.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from textor.errors import Fenced, JournalError
from textor.events import Body, Event, MessagePosted, NoteSet, SessionCreated, Stored, Unknown
from textor.journal.port import MACHINE, Journal


def event(id: str, body: Body | None = None, time: float = 1.0) -> Event:
    return Event(body or NoteSet("main", "key", id), id, time)


def posted(id: str, time: float = 1.0) -> Event:
    return Event(MessagePosted("main", f"text of {id}"), id, time)


async def ids(journal: Journal, session: str = "s", after: int = 0) -> list[str]:
    return [e.id async for e in journal.read(session, after)]


async def soon(work: Awaitable[Any]) -> Any:
    """Bounded, so that a lost signal fails the test instead of hanging it."""
    return await asyncio.wait_for(work, 20)


class Conformance:
    def make(self, folder: Path) -> Journal:
        raise NotImplementedError

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Journal:
        return self.make(tmp_path)

    # -- create, append, read --------------------------------------------------------------

    def test_events_come_back_whole_and_in_order(self, journal: Journal) -> None:
        async def run() -> None:
            first = Event(SessionCreated("/tmp/w", title="Ümläut 🚀"), "a", 12.5)
            assert await journal.create("s", [first, event("b", time=13.0)]) == 2
            appended = await journal.append("s", [event("c"), event("d")], epoch=0)
            assert [(e.id, e.seq) for e in appended] == [("c", 3), ("d", 4)]
            read = [e async for e in journal.read("s")]
            assert [e.seq for e in read] == [1, 2, 3, 4]
            assert read[0] == msgspec.structs.replace(first, seq=1)
            assert read[2:] == appended
            assert await ids(journal, after=2) == ["c", "d"]
            assert await ids(journal, after=4) == []
            await journal.close()

        asyncio.run(run())

    def test_more_events_than_one_page(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("first")])
            await journal.append("s", [event(str(i)) for i in range(1200)], epoch=0)
            assert await ids(journal) == ["first", *map(str, range(1200))]
            await journal.close()

        asyncio.run(run())

    def test_sessions_do_not_mix(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("x")])
            await journal.create("t", [event("x")])
            await journal.append("t", [posted("y")], epoch=None)
            assert (await ids(journal, "s"), await ids(journal, "t")) == (["x"], ["x", "y"])
            await journal.close()

        asyncio.run(run())

    def test_a_session_is_made_once(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            with pytest.raises(JournalError, match="'s' exists already"):
                await journal.create("s", [event("b")])
            with pytest.raises(JournalError, match="without events"):
                await journal.create("empty", [])
            assert await ids(journal) == ["a"]
            assert await journal.session("empty") is None
            await journal.close()

        asyncio.run(run())

    def test_what_is_unknown_is_said(self, journal: Journal) -> None:
        async def run() -> None:
            for work in (
                journal.append("gone", [event("a")], epoch=0),
                journal.append("gone", [event("a")], epoch=None),
                journal.claim("gone"),
            ):
                with pytest.raises(JournalError, match="no session 'gone'") as caught:
                    await work
                assert not isinstance(caught.value, Fenced)
            assert await ids(journal, "gone") == []
            assert await journal.set_status("gone", "idle", epoch=0, head=0) is False
            await journal.close()

        asyncio.run(run())

    def test_a_batch_is_kept_whole_or_not_at_all(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            with pytest.raises(JournalError, match="id 'a'"):
                await journal.append("s", [event("b"), event("a")], epoch=0)
            with pytest.raises(JournalError, match="id 'd'"):
                await journal.append("s", [event("d"), event("d")], epoch=0)
            with pytest.raises(JournalError, match="cannot be written as JSON"):
                await journal.append("s", [event("b"), event("c", NoteSet("m", "k", "\ud800"))], epoch=0)
            with pytest.raises(JournalError, match="id 'e'"):
                await journal.create("t", [event("e"), event("e")])
            info = await journal.session("s")
            assert info is not None and info.head == 1
            assert await journal.session("t") is None
            appended = await journal.append("s", [event("b")], epoch=0)
            assert [e.seq for e in appended] == [2]
            await journal.close()

        asyncio.run(run())

    def test_a_caller_cannot_change_the_past(self, journal: Journal) -> None:
        async def run() -> None:
            value: dict[str, Any] = {"list": [1]}
            await journal.create(MACHINE, [event("a", Stored("area", "key", value))])
            value["list"].append(2)
            [read] = [e async for e in journal.read(MACHINE)]
            assert read.body == Stored("area", "key", {"list": [1]})
            await journal.close()

        asyncio.run(run())

    def test_big_contents_come_back_byte_for_byte(self, journal: Journal) -> None:
        async def run() -> None:
            raw = msgspec.Raw(b'{ "spaced" :  "' + b"\xc3\xa4" * 200_000 + b'" }')
            await journal.create("s", [event("a", Unknown("future.kind", 7, raw)), event("small")])
            big = "line\n" * 400_000
            await journal.append("s", [event("b", MessagePosted("main", big))], epoch=None)
            again = await journal.append("s", [event("b", MessagePosted("main", "other"))], epoch=None)
            read = [e async for e in journal.read("s")]
            assert isinstance(read[0].body, Unknown) and bytes(read[0].body.raw) == bytes(raw)
            assert (read[0].kind, read[0].body.version) == ("future.kind", 7)
            assert again == [read[2]] and read[2].body == MessagePosted("main", big)
            await journal.close()

        asyncio.run(run())

    def test_blobs(self, journal: Journal) -> None:
        content = bytes(range(256)) * 1000
        hash = journal.blobs.put(content)
        assert journal.blobs.put(content) == hash
        assert journal.blobs.get(hash) == content
        assert journal.blobs.get(journal.blobs.put(b"")) == b""
        for unknown in ("0" * 64, "", "../../etc/passwd"):
            with pytest.raises(KeyError):
                journal.blobs.get(unknown)
        asyncio.run(journal.close())

    # -- inputs, epochs, status ------------------------------------------------------------

    def test_an_input_is_appended_once(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            [first] = await journal.append("s", [posted("x")], epoch=None)
            assert first.seq == 2
            kept = await journal.append("s", [posted("y"), posted("x", 99.0), posted("y")], epoch=None)
            assert [(e.id, e.seq) for e in kept] == [("y", 3), ("x", 2), ("y", 3)]
            assert kept[1] == first  # the stored one, not what was sent again
            assert await ids(journal) == ["a", "x", "y"]
            await journal.close()

        asyncio.run(run())

    def test_an_input_makes_runnable_and_a_known_one_does_not(self, journal: Journal) -> None:
        async def status() -> str:
            info = await journal.session("s")
            assert info is not None
            return info.status

        async def run() -> None:
            await journal.create("s", [event("a")])
            assert await status() == "runnable"  # a face makes sessions, and the host looks at them
            epoch = await journal.claim("s")
            assert await journal.set_status("s", "idle", epoch=epoch, head=1)
            await journal.append("s", [event("b")], epoch=epoch)
            assert await status() == "idle"
            await journal.append("s", [posted("x")], epoch=None)
            assert await status() == "runnable"
            assert await journal.set_status("s", "idle", epoch=epoch, head=3)
            await journal.append("s", [posted("x")], epoch=None)
            assert await status() == "idle"
            await journal.close()

        asyncio.run(run())

    def test_the_status_changes_only_when_nothing_came_between(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            old = await journal.claim("s")
            await journal.append("s", [posted("x")], epoch=None)
            assert not await journal.set_status("s", "idle", epoch=old, head=1)
            new = await journal.claim("s")
            assert not await journal.set_status("s", "idle", epoch=old, head=2)
            assert await journal.set_status("s", "idle", epoch=new, head=2)
            await journal.close()

        asyncio.run(run())

    def test_a_claim_fences_the_former_host(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            old = await journal.claim("s")
            new = await journal.claim("s")
            assert new > old
            for events in ([event("b")], []):
                with pytest.raises(Fenced, match="'s'"):
                    await journal.append("s", events, epoch=old)
            await journal.append("s", [event("c")], epoch=new)
            await journal.append("s", [posted("x")], epoch=None)
            assert await ids(journal) == ["a", "c", "x"]
            await journal.close()

        asyncio.run(run())

    def test_appends_at_once_leave_no_gap(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            epoch = await journal.claim("s")
            work = [journal.append("s", [event(f"{i}.0"), event(f"{i}.1")], epoch=epoch) for i in range(40)]
            work += [journal.append("s", [posted(f"in{i}")], epoch=None) for i in range(40)]
            work.append(journal.append("s", [event("fenced")], epoch=epoch - 1))
            done = await asyncio.gather(*work, return_exceptions=True)
            assert isinstance(done.pop(), Fenced)
            read = [e async for e in journal.read("s")]
            assert [e.seq for e in read] == list(range(1, 122))
            seq_of = {e.id: e.seq for e in read}
            assert all(seq_of[f"{i}.1"] == seq_of[f"{i}.0"] + 1 for i in range(40))
            for batch in done:
                assert not isinstance(batch, BaseException)
                assert [seq_of[e.id] for e in batch] == [e.seq for e in batch]
            await journal.close()

        asyncio.run(run())

    # -- the list of sessions --------------------------------------------------------------

    def test_sessions_are_listed_the_last_used_first(self, journal: Journal) -> None:
        async def run() -> None:
            assert await journal.session("old") is None
            await journal.create(MACHINE, [event("m", time=900.0)])
            await journal.create("old", [event("a", SessionCreated("/w", title="The old one"), 10.0)])
            await journal.create("new", [event("a", time=20.0)])
            assert [s.id for s in await journal.sessions()] == ["new", "old"]
            await journal.append("old", [posted("b", 30.0)], epoch=None)
            listed = await journal.sessions()
            assert [s.id for s in listed] == ["old", "new"]
            info = listed[0]
            assert (info.created, info.updated, info.head, info.title) == (10.0, 30.0, 2, "The old one")
            assert await journal.session("old") == info
            assert (await journal.session(MACHINE)) is not None
            await journal.close()

        asyncio.run(run())

    # -- follow and changes ----------------------------------------------------------------

    def test_a_follower_sees_what_was_and_what_comes(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("0")])
            seen: list[int] = []

            async def look() -> None:
                async for e in journal.follow("s"):
                    seen.append(e.seq)
                    if e.id == "300":
                        return

            looking = asyncio.create_task(look())
            for i in range(1, 301):
                await journal.append("s", [event(str(i))], epoch=0)
            await soon(looking)
            assert seen == list(range(1, 302))
            await journal.close()

        asyncio.run(soon(run()))

    def test_many_followers_and_hosts_lose_and_double_nothing(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("first")])

            async def look(after: int) -> list[int]:
                seen = []
                async for e in journal.follow("s", after):
                    seen.append(e.seq)
                    if e.seq == 201:
                        return seen
                raise AssertionError("a follower ended")

            looking = [asyncio.create_task(look(after)) for after in (0, 1, 50, 200)]
            await asyncio.gather(
                *(journal.append("s", [event(f"{i}a"), event(f"{i}b")], epoch=0) for i in range(100))
            )
            for task, after in zip(looking, (0, 1, 50, 200), strict=True):
                assert await soon(task) == list(range(after + 1, 202))
            await journal.close()

        asyncio.run(run())

    def test_a_session_can_be_followed_before_it_is_there(self, journal: Journal) -> None:
        async def run() -> None:
            events = journal.follow("s")
            first = asyncio.ensure_future(anext(events))
            await journal.create("other", [event("x")])
            await journal.create("s", [event("a")])
            assert (await soon(first)).id == "a"
            await journal.close()

        asyncio.run(run())

    def test_changes_name_the_sessions_with_inputs(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])
            await journal.create("t", [event("a")])
            changes = journal.changes()  # from here on, not from the first `anext`
            await journal.append("t", [event("by the host")], epoch=0)
            await journal.append("s", [posted("x")], epoch=None)
            await journal.append("s", [posted("y")], epoch=None)
            await journal.append("t", [posted("z")], epoch=None)
            assert [await soon(anext(changes)), await soon(anext(changes))] == ["s", "t"]
            waiting = asyncio.ensure_future(soon(anext(changes)))
            await journal.append("s", [posted("y")], epoch=None)  # known: no change
            await journal.append("t", [posted("w")], epoch=None)
            assert await soon(waiting) == "t"
            await journal.create("u", [event("a")])
            assert await soon(anext(changes)) == "u"
            await journal.close()

        asyncio.run(run())

    def test_closing_ends_followers_and_refuses_appends(self, journal: Journal) -> None:
        async def run() -> None:
            await journal.create("s", [event("a")])

            async def look() -> list[str]:
                return [e.id async for e in journal.follow("s")]

            async def watch() -> list[str]:
                return [s async for s in journal.changes()]

            tasks = [asyncio.create_task(look()), asyncio.create_task(watch())]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await journal.close()
            await journal.close()
            assert await soon(asyncio.gather(*tasks)) == [["a"], []]
            with pytest.raises(JournalError, match="closed"):
                await journal.append("s", [event("b")], epoch=0)

        asyncio.run(run())
