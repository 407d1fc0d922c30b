import asyncio
from datetime import datetime, timedelta, timezone

import msgspec

from textor.actions import Action, Outcome
from textor.capabilities.core import core_provider
from textor.capabilities.table import text_outcome
from textor.values import BIG, blob_value

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))


def by_name(provider):
    return {c.name: c for c in asyncio.run(provider.capabilities())}


def test_respond_ends_the_turn_with_its_text(desk):
    core = core_provider()
    assert by_name(core)["respond"].ends_turn
    assert desk.do(core, "respond", text="all done") == Outcome("done", "all done")


def test_time_is_iso_8601_with_its_zone(desk):
    assert desk.do(core_provider(clock=lambda: NOON), "time.now").text == "2026-03-01T12:00:00+02:00"
    told = datetime.fromisoformat(desk.do(core_provider(), "time.now").text)
    assert told.utcoffset() is not None


def test_wait_waits_as_long_as_told(desk):
    waited = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    core = core_provider(sleep=sleep)
    assert desk.do(core, "wait", seconds=2.5).text == "Waited 2.5 seconds."
    assert waited == [2.5]
    for wrong in (-1, 1e9, float("nan"), True, "2"):
        assert desk.do(core, "wait", seconds=wrong).state == "failed"
    assert waited == [2.5]


def test_a_cancelled_wait_is_confirmed(desk):
    async def cancel():
        asleep = asyncio.Event()

        async def sleep(seconds: float) -> None:
            asleep.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(
            core_provider(sleep=sleep).invoke(Action("a", "wait", {"seconds": 9}), desk)
        )
        await asleep.wait()
        task.cancel()
        return await task

    assert asyncio.run(cancel()).state == "cancelled"


def test_a_stored_text_is_paged_by_code_points(desk):
    core = core_provider()
    text = "".join(f"{n:05}🙂é\n" for n in range(3000))
    outcome = text_outcome(text, desk)
    [value] = outcome.values
    desk.values[value.handle] = msgspec.structs.replace(value, labels=("web:example.org",))
    read, start = "", 0
    while start < len(text):
        page = desk.do(core, "values.read", handle=value.handle, start=start)
        assert page.labels == ("web:example.org",)
        assert len(page.text.encode()) <= BIG
        content, _, note = page.text.rpartition("\n[")
        read += content
        start += len(content)
        assert note.startswith(f"characters {start - len(content)} to {start} of {len(text)}")
    assert read == text
    assert desk.do(core, "values.read", handle=value.handle, start=-3).text.startswith("🙂é\n")


def test_faults_of_values_read_are_explained(desk):
    core = core_provider()
    assert "No value has the handle 'abc'" in desk.do(core, "values.read", handle="abc").text
    value = blob_value(b"\x89PNG", "image", "image/png", desk.blobs, name="a.png")
    desk.values[value.handle] = value
    outcome = desk.do(core, "values.read", handle=value.handle)
    assert outcome.text == "[a.png is no text: image/png, 4 bytes]"
    assert outcome.values == (value,)
    assert desk.do(core, "nonsense").text == "core has no capability 'nonsense'."


def test_every_phrase_has_a_slot_for_each_required_parameter():
    from textor.capabilities.files import FilesProvider
    from textor.capabilities.shell import ShellProvider

    for provider in (core_provider(), FilesProvider(), ShellProvider(None)):
        for capability in by_name(provider).values():
            properties = list(capability.parameters["properties"])
            required = capability.parameters.get("required", [])
            assert properties[: len(required)] == required, capability.name
            for phrase in capability.phrases:
                assert len(required) <= phrase.count("[]") <= len(properties), capability.name
