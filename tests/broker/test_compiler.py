"""Lines of many capabilities: nobody waits for vectors; and the 25 lines of the document."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from broker_parts import fill, http_form, launch_form, machine

from textor.broker.book import Book
from textor.broker.compiler import AT_ONCE, Compiler
from textor.embedding import Role
from textor.errors import ModelError
from textor.memory.embedder import MiniLM

if TYPE_CHECKING:
    from textor.embedding import Vectors

PYTHON = Path(sys.executable)
LINES = Path(__file__).resolve().parent.parent / "data" / "aie_lines.json"


class Slow:
    """An embedder that answers when it is let; it knows one thing: what a text speaks of."""

    model_id = "slow"
    dim = 2

    def __init__(self) -> None:
        self.let = threading.Event()
        self.fault = False

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        import numpy as np

        assert self.let.wait(20)
        if self.fault:
            raise ModelError("It is gone.", fault="server")
        return np.array([[1, 0] if "music" in t or "knob 7 " in t else [0, 1] for t in texts], np.float32)


def many(count: int) -> Book:
    book = Book()
    fill(book, [launch_form(PYTHON, "radio")])
    fill(
        book,
        [http_form(f"turn knob {number} of radio to []", f"k{number}", "radio") for number in range(count)],
    )
    return book


def test_lines_are_compiled_by_words_until_the_vectors_are_there() -> None:
    embedder = Slow()
    compiler, catalogue = Compiler(embedder, patience=0), many(AT_ONCE + 8).catalogue()
    (line,) = compiler.compile_now(["more music [3]"], catalogue)
    assert line.state == "fail"  # by words it is like nothing
    (exact,) = compiler.compile_now(["turn knob 9 of radio to [3]"], catalogue)
    assert (exact.state, exact.capability) == ("match", "radio.turn_knob_9")
    thread = compiler.prepare(catalogue)
    assert thread is not None
    assert compiler.prepare(catalogue) is thread  # one at a time
    embedder.let.set()
    thread.join(20)
    (line,) = compiler.compile_now(["more music [3]"], catalogue)
    assert line.candidates[0].capability == "radio.turn_knob_7"
    assert line.candidates[0].score > 0.9


def test_a_few_new_ones_are_embedded_at_once_and_a_lost_embedder_is_no_end() -> None:
    embedder = Slow()
    embedder.let.set()
    compiler = Compiler(embedder)
    (line,) = compiler.compile_now(["more music [3]"], many(9).catalogue())
    assert line.candidates[0].capability == "radio.turn_knob_7"
    embedder.fault = True
    (line,) = compiler.compile_now(["please turn knob 5 of the radio to [3]"], many(9).catalogue())
    assert line.candidates[0].capability == "radio.turn_knob_5"


def test_the_25_lines_of_the_document_over_registered_apps() -> None:
    """Issue 6: no wrong execution, at most 3 needless questions."""
    embedder = MiniLM()
    embedder.fetch()
    told = json.loads(LINES.read_text("utf-8"))
    book = Book()
    for phrase in told["capabilities"][1:]:
        (app,) = [each for each in ("email", "calendar", "column chart", "drawing") if each in phrase]
        starts = phrase.startswith("start ")
        fill(book, [launch_form(PYTHON, app) if starts else http_form(phrase, "r", app)])
    catalogue = book.catalogue()
    names = {capability.phrases[0]: capability.name for capability in catalogue}
    compiled = Compiler(embedder).compile_now([row["line"] for row in told["lines"]], catalogue)
    pairs = [(names.get(row["expected"] or ""), c) for row, c in zip(told["lines"], compiled, strict=True)]
    wrong = [c.line for expected, c in pairs if c.state == "match" and c.capability != expected]
    asked = [c.line for expected, c in pairs if c.state != "match" and expected]
    assert wrong == []
    assert len(asked) <= 3, asked


class Stepwise(Slow):
    """It waits in each piece, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = threading.Event()
        self.pieces = 0

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        self.pieces += 1
        self.inside.set()
        return super().encode(texts, role)


def test_the_end_does_not_wait_for_all_vectors_and_leaves_no_thread_in_the_model() -> None:
    """One that is inside onnxruntime when the interpreter ends aborts the whole program."""
    embedder = Stepwise()
    compiler, catalogue = Compiler(embedder, patience=0), many(900).catalogue()
    compiler.compile_now(["more music [3]"], catalogue)
    thread = compiler.prepare(catalogue)
    assert thread is not None and embedder.inside.wait(20)
    ending = threading.Thread(target=compiler.close)
    ending.start()
    assert compiler.ended.wait(20)
    embedder.let.set()
    ending.join(20)
    assert not thread.is_alive()
    assert embedder.pieces == 1


def test_a_machine_that_is_closed_ends_its_compiler(tmp_path: Path) -> None:
    async def test() -> Compiler:
        async with machine(tmp=tmp_path) as made:
            return made.broker.compiler

    assert asyncio.run(test()).ended.is_set()


def test_many_vectors_that_are_there_at_once_are_waited_for() -> None:
    """As in a command that lives for one plan, where they come from the disk."""
    embedder = Slow()
    embedder.let.set()
    (line,) = Compiler(embedder, patience=20).compile_now(["more music [3]"], many(AT_ONCE + 8).catalogue())
    assert line.candidates[0].capability == "radio.turn_knob_7"


@pytest.mark.parametrize(
    "line", ["delete all my files", "delete everything", "erase my hard disk", "empty the trash"]
)
def test_what_none_of_our_apps_does_is_not_run_by_the_nearest(line: str) -> None:
    """Case R16, among all that the apps in the box register: `clear drawing` is far from the line,
    and everything else still further."""
    embedder = MiniLM()
    embedder.fetch()
    book = Book()
    for name in ("email", "chart", "calendar", "drawing"):
        app = import_module(f"textor.apps.{name}.program").app
        forms = [form | {"AppPath": str(PYTHON), "AppArguments": []} for form in app.capabilities()]
        fill(book, forms)
    near, compiled = Compiler(embedder).compile_now(["wipe the drawing", line], book.catalogue())
    assert (near.state, near.capability) == ("match", "drawing.clear")
    assert compiled.state != "match", compiled
