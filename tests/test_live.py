"""Deltas: whoever comes in the middle of a generation sees what was said so far."""

from __future__ import annotations

from textor.live import Delta, Hub


def test_a_late_watcher_gets_what_was_said_so_far() -> None:
    hub = Hub()
    for text in ("one ", "two"):
        hub.send("s", Delta("main", "text", text))
    hub.send("s", Delta("main", "progress", "loading"))
    queue = hub.subscribe("s")
    assert queue.get_nowait() == Delta("main", "text", "one two")
    assert queue.empty()
    hub.send("s", Delta("main", "text", " three"))
    assert queue.get_nowait().text == " three"


def test_a_generation_that_is_over_is_not_told_again() -> None:
    hub = Hub()
    hub.send("s", Delta("main", "text", "void"))
    hub.fresh("s", "main")
    hub.send("s", Delta("main", "text", "anew"))
    assert hub.subscribe("s").get_nowait().text == "anew"
    hub.fresh("s", "main")
    assert hub.subscribe("s").empty()


def test_a_slow_watcher_loses_deltas_and_blocks_nobody() -> None:
    hub = Hub(size=2)
    slow, quick = hub.subscribe("s"), hub.subscribe("s")
    for n in range(5):
        hub.send("s", Delta("main", "progress", str(n)))
        if n % 2:
            quick.get_nowait(), quick.get_nowait()
    assert slow.qsize() == 2
    assert quick.get_nowait().text == "4"
