"""What the page costs the browser: main-thread CPU of one tab, by Chromium's own count.

1. history: a session of 10,000 events is opened;
2. live: 10,000 events come in ten seconds while the tab shows their session;
3. stream: one reply of 64 kB comes in pieces of 8 characters, then whole.

Measured by `TaskDuration` and `ScriptDuration` of `Performance.getMetrics`, after a first load that
is not counted. The trial that chose Preact (docs/decisions/0003-page.md) took 1.4-3.0 s for the
second, and 0.36 s for the third. Needs Chromium.

    python benchmarks/page.py
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "server"))

from server_parts import (
    CHROMIUM,
    beginning,
    chromium,
    done,
    finished,
    machine,
    page_of,
    served,
    started,
    write,
)

from textor import events as e
from textor.actions import Action
from textor.assembly import Machine
from textor.live import Delta

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

EVENTS = 10_000
SECONDS = 10
PARAGRAPH = "The **beans** go in first, because `plan.txt` says so; then the rest, [as usual](https://example.org).\n\n"
BLOCK = PARAGRAPH * 3 + "- one\n- two\n- three\n\n```python\nfor bed in beds:\n    dig(bed)\n```\n\n"


def turn(number: int) -> list[e.Body]:
    """Ten events: a message, one action, a reply."""
    action = Action(f"a{number}", "files.read", {"path": f"bed-{number}.txt"})
    return [
        e.MessagePosted("main", f"And bed {number}?"),
        started(2 * number),
        finished("Let me look.", action),
        e.ActionJudged("main", action.id, "allow"),
        e.ActionStarted("main", action.id),
        done(action.id, "beans, then squash\n" * 5),
        e.Observed("main", ()),
        started(2 * number + 1),
        finished(PARAGRAPH),
        e.TurnEnded("main", "replied", PARAGRAPH),
    ]


class Meter:
    """Seconds of the main thread since it was made, all tasks and script alone."""

    def __init__(self, devtools: CDPSession) -> None:
        self._devtools = devtools

    async def read(self) -> tuple[float, float]:
        metrics = (await self._devtools.send("Performance.getMetrics"))["metrics"]
        values = {m["name"]: m["value"] for m in metrics}
        return values["TaskDuration"], values["ScriptDuration"]


async def measure(page: Page, name: str, work: Any) -> None:
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    meter = Meter(devtools)
    before, began = await meter.read(), time.perf_counter()
    await work()
    after, took = await meter.read(), time.perf_counter() - began
    nodes = await page.evaluate("document.querySelectorAll('*').length")
    print(
        f"{name:<8} {after[0] - before[0]:6.2f} s main thread, {after[1] - before[1]:5.2f} s of it script, "
        f"{took:5.1f} s by the clock, {nodes} elements in the document",
        flush=True,
    )


async def run(page: Page, made: Machine, address: str) -> None:
    await write(made, "old", [*beginning("Go"), *(b for n in range(EVENTS // 10) for b in turn(n))])
    await write(made, "live", beginning("Go"))
    await write(made, "stream", [*beginning("Go"), started()])
    await page.goto(f"{address}/#s=live")
    await page.get_by_role("log").get_by_text("Go").wait_for()

    async def history() -> None:
        await page.goto(f"{address}/#s=old")
        await page.get_by_role("log").get_by_text(f"And bed {EVENTS // 10 - 1}?").wait_for()

    async def live() -> None:
        turns = EVENTS // 10
        began = time.perf_counter()
        for n in range(turns):
            await write(made, "live", turn(n))
            await asyncio.sleep(max(0.0, began + (n + 1) * SECONDS / turns - time.perf_counter()))
        await page.get_by_role("log").get_by_text(f"And bed {turns - 1}?").wait_for()

    async def stream() -> None:
        text = BLOCK * (65_536 // len(BLOCK))
        for at in range(0, len(text), 8):
            made.services.hub.send("stream", Delta("main", "text", text[at : at + 8]))
            if at % 160 == 0:
                await asyncio.sleep(0.01)
        await write(made, "stream", [finished(text), e.TurnEnded("main", "replied", text)])
        await page.get_by_role("button", name="Stop").wait_for(state="detached")

    await measure(page, "history", history)
    await page.goto(f"{address}/#s=live")
    await page.get_by_role("log").get_by_text("Go").wait_for()
    await measure(page, "live", live)
    await page.goto(f"{address}/#s=stream")
    await page.get_by_role("log").get_by_text("Thinking").wait_for()
    await measure(page, "stream", stream)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        async with (
            machine(tmp=tmp, host=False) as made,
            served(made, tmp) as address,
            chromium() as browser,
            page_of(browser, address) as page,
        ):
            await run(page, made, address)


if __name__ == "__main__":
    if not Path(CHROMIUM).exists():
        sys.exit("There is no Chromium here: apt-get install chromium")
    asyncio.run(main())
