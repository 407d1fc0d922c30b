"""The list of modules in the machine's journal, and a running provider that keeps in step with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from module_parts import odd, until

from textor.capabilities.modules.following import catch_up, follow
from textor.capabilities.modules.provider import ModulesProvider
from textor.capabilities.modules.spec import Entry, ModuleSpec, read_entries, write_entry
from textor.events import Event, Stored, new_id
from textor.journal.memory import MemoryJournal
from textor.journal.port import MACHINE, Journal
from textor.journal.sqlite import SqliteJournal


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "journal.db")


def entry(spec: ModuleSpec) -> Entry:
    return Entry("default", {"default": spec})


def test_entries_are_kept_changed_and_removed(journal: Journal) -> None:
    async def main() -> None:
        assert await read_entries(journal) == {}
        first = ModuleSpec("a", ("x", "y"), env={"A": "1"}, effects={"t": ("read",)}, idle=None)
        await write_entry(journal, "a", entry(first))
        await write_entry(journal, "b", entry(ModuleSpec("b", address="http://x/mcp")))
        assert (await read_entries(journal))["a"].spec == first
        two = Entry("own", {"default": first, "own": ModuleSpec("a", ("z",))})
        await write_entry(journal, "a", two)
        assert (await read_entries(journal))["a"].spec.command == ("z",)
        await write_entry(journal, "b", None)
        # what a newer program may have written is left alone
        strange = Event(Stored("module", "c", {"use": "default", "colour": "red"}), new_id(), 0)
        await journal.append(MACHINE, [strange], epoch=None)
        assert list(await read_entries(journal)) == ["a"]
        await journal.close()

    asyncio.run(main())


def test_a_running_provider_follows(journal: Journal, tmp_path: Path) -> None:
    async def main() -> None:
        provider = ModulesProvider([])
        following = asyncio.create_task(follow(journal, provider))
        await asyncio.sleep(0)
        await write_entry(journal, "odd", entry(odd(tmp_path)))
        await until(lambda: "odd" in provider.modules)
        module = provider.module("odd")
        await module.ready()
        other = msgspec.structs.replace(odd(tmp_path), trusted=True)
        await write_entry(journal, "odd", entry(other))
        await until(lambda: "odd" in provider.modules and provider.modules["odd"] is not module)
        assert module.state == "closed"
        await write_entry(journal, "odd", None)
        await until(lambda: not provider.modules)
        following.cancel()
        await catch_up(journal, provider)
        assert not provider.modules
        await provider.close()
        await journal.close()

    asyncio.run(main())
