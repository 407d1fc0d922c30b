from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from textor.actions import Capability, Outcome
from textor.capabilities.functions import FunctionProvider, capability, read_function
from textor.errors import CapabilityError, UseError
from textor.values import BIG

if TYPE_CHECKING:
    from textor.capabilities.port import Scope


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = 1


@dataclasses.dataclass
class Person:
    name: str
    home: Address | None = None


class Options(TypedDict, total=False):
    depth: int


class Node(BaseModel):
    label: str
    children: list[Node] = []


@capability
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    They may be negative.

    Args:
        a: the first number
        b (int): the second,
            on two lines
    """
    return a + b


def read(function: Any) -> Capability:
    return read_function(function).capability


def test_bare_mark_keeps_the_function_and_reads_it():
    assert add(1) == 3
    read_add = read(add)
    assert (read_add.name, read_add.purpose) == ("add", "Add two numbers.")
    assert read_add.effects == ("read",)
    assert read_add.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first number"},
            "b": {"type": "integer", "description": "the second, on two lines", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_mark_with_words():
    @capability(name="mail.send", purpose="Send.", effects="outward", repeat="keyed", phrases="send [] to []")
    def send(text, to):
        return None

    found = read(send)
    assert (found.name, found.purpose, found.effects) == ("mail.send", "Send.", ("outward",))
    assert (found.repeat, found.phrases) == ("keyed", ("send [] to []",))
    assert found.parameters["properties"] == {"text": {}, "to": {}}


def test_types_reach_the_function_as_what_they_are(desk):
    got: dict[str, Any] = {}

    def all_kinds(
        colour: Colour,
        mode: Literal["fast", "slow"],
        person: Person,
        options: Options,
        tree: Node,
        number: int | float | None = None,
        size: Annotated[int, Field(ge=1, description="how big")] = 1,
        note: Annotated[str, "a remark"] = "",
        free=None,
    ) -> None:
        got.update(locals())

    found = read(all_kinds)
    properties = found.parameters["properties"]
    assert properties["size"] == {"type": "integer", "minimum": 1, "description": "how big", "default": 1}
    assert properties["note"]["description"] == "a remark"
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert set(found.parameters["$defs"]) == {"Address", "Colour", "Node", "Options", "Person"}
    outcome = desk.do(
        FunctionProvider([all_kinds]),
        "all_kinds",
        colour="blue",
        mode="slow",
        person={"name": "Ann", "home": {"street": "Hill"}},
        options={"depth": 2},
        tree={"label": "a", "children": [{"label": "b"}]},
        free=[1, {"x": None}],
    )
    assert outcome == Outcome("done")
    assert got["colour"] is Colour.BLUE
    assert got["person"] == Person("Ann", Address(street="Hill", number=1))
    assert got["tree"].children[0] == Node(label="b")
    assert (got["number"], got["size"], got["free"]) == (None, 1, [1, {"x": None}])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "add needs the parameter 'a'."),
        ({"a": 1, "c": 2}, "add has no parameter 'c'. It has: a, b."),
        ({"a": "one"}, "add: a: Input should be a valid integer"),
    ],
)
def test_arguments_that_do_not_fit_get_a_sentence(desk, arguments, said):
    outcome = desk.do(FunctionProvider([add]), "add", **arguments)
    assert outcome.state == "failed"
    assert outcome.text.startswith(said)


def test_a_fault_deep_in_an_argument_names_its_place(desk):
    def greet(people: list[Person]) -> str:
        return "hello"

    outcome = desk.do(FunctionProvider([greet]), "greet", people=[{"name": "Ann"}, {"name": 3}])
    assert "people[1]['name']" in outcome.text


def test_names_that_pydantic_keeps_for_itself_are_fine(desk):
    def odd(title: str, kind: str, schema: str, model_config: int, _private: int, copy=1, json: bool = False):
        return [title, kind, schema, model_config, _private, copy, json]

    arguments = {"title": "a", "kind": "b", "schema": "c", "model_config": 1, "_private": 2}
    assert desk.do(FunctionProvider([odd]), "odd", **arguments).data == ["a", "b", "c", 1, 2, 1, False]


def test_positional_only_and_keyword_only_parameters(desk):
    def mixed(a: int, b: int = 2, /, c: int = 3, *, d: int) -> list[int]:
        return [a, b, c, d]

    assert desk.do(FunctionProvider([mixed]), "mixed", d=4, a=1).data == [1, 2, 3, 4]


def test_scope_is_handed_in_and_not_shown(desk):
    # the name Scope is only imported for the type checker here, as users do
    @capability
    async def where(scope: Scope, upper: bool = False) -> str:
        scope.progress("looking")
        return scope.workspace.name

    provider = FunctionProvider([where])
    assert list(asyncio.run(provider.capabilities())[0].parameters["properties"]) == ["upper"]
    assert desk.do(provider, "where").text == "work"
    assert desk.shown == ["looking"]
    assert desk.do(provider, "where", scope="x").state == "failed"


def test_methods_partials_and_callable_objects(desk):
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @capability(effects=["write"])
        def up(self, by: int = 1) -> int:
            "Count up."
            self.count += by
            return self.count

        def __call__(self, text: str) -> str:
            return text.upper()

    counter = Counter()
    provider = FunctionProvider([counter.up, counter, functools.partial(add, b=40)])
    assert {c.name: c.effects for c in asyncio.run(provider.capabilities())} == {
        "up": ("write",),
        "Counter": ("read",),
        "add": ("read",),
    }
    assert desk.do(provider, "up", by=5).text == "5"
    assert counter.count == 5
    assert desk.do(provider, "Counter", text="a").text == "A"
    assert desk.do(provider, "add", a=2).text == "42"


def test_local_types_in_annotations_written_as_text(desk):
    class Point(BaseModel):
        x: int

    @capability
    def right(point: Point) -> int:
        return point.x + 1

    assert desk.do(FunctionProvider([right]), "right", point={"x": 1}).text == "2"


def test_a_path_is_the_place_that_the_gate_judged(desk):
    def show(path: Path, others: list[Path] = []) -> str:  # noqa: B006
        return f"{path} {others}"

    text = desk.do(FunctionProvider([show]), "show", path="a.txt", others=["b"]).text
    assert text == f"{desk.workspace / 'a.txt'} {[desk.workspace / 'b']}"


def star(*numbers: int): ...
def stars(**options: int): ...
def unknown(x: Missing): ...  # noqa: F821
def strange(x: threading.Lock): ...
def piecewise(n: int):
    yield n


async def streamed(n: int):
    yield n


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (star, "star: the parameter *numbers has no fixed"),
        (stars, "stars: the parameter **options has no fixed"),
        (unknown, "unknown: its annotations cannot be read: name 'Missing'"),
        (strange, "strange: the type of the parameter x cannot be described"),
        (lambda x: x, "'<lambda>' is no name"),
        (piecewise, "piecewise yields its results one by one."),
        (streamed, "streamed yields its results one by one."),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(function, said):
    with pytest.raises(UseError) as refused:
        read(function)
    assert str(refused.value).startswith(said)
    assert refused.value.hint or function is unknown


def test_two_of_one_name_and_wrong_marks_are_refused():
    with pytest.raises(UseError, match="Two functions have the name 'add'"):
        asyncio.run(FunctionProvider([add, add]).capabilities())
    with pytest.raises(UseError, match="no effect 'delete'"):
        capability(effects=["delete"])  # type: ignore[list-item]
    with pytest.raises(UseError, match="marks functions, not <class 'int'>"):
        capability(int)
    with pytest.raises(UseError, match="no repeat"):
        capability(repeat="twice")  # type: ignore[call-overload]


def loop() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize(
    ("result", "text", "data"),
    [
        (None, "", None),
        ("as it is\r\n", "as it is\r\n", None),
        ({"error": "just data"}, '{"error": "just data"}', {"error": "just data"}),
        ([Person("Ann")], '[{"name": "Ann", "home": null}]', [{"name": "Ann", "home": None}]),
        (Colour.RED, '"red"', "red"),
        ({1: float("nan")}, '{"1": "NaN"}', {"1": "NaN"}),
        (2**70, str(2**70), 2**70),
        ("\ud800\0", "��", None),
        (loop(), "[[...]]", None),
        (Outcome("failed", "own"), None, None),
    ],
)
def test_results(desk, result, text, data):
    outcome = desk.do(FunctionProvider([give(result)]), "give_it")
    if isinstance(result, Outcome):
        assert outcome == result
    else:
        assert (outcome.state, outcome.text, outcome.data) == ("done", text, data)


def give(result: Any) -> Any:
    def give_it():
        return result

    return give_it


def test_a_stranger_is_shown_by_its_repr(desk):
    class Stranger:
        def __repr__(self) -> str:
            raise RuntimeError

    assert desk.do(FunctionProvider([give(object)]), "give_it").text == "<class 'object'>"
    assert desk.do(FunctionProvider([give(Stranger())]), "give_it").text == "<Stranger>"


def test_a_big_result_is_a_value_with_a_handle(desk):
    big = [f"line {n}" for n in range(5000)]
    outcome = desk.do(FunctionProvider([give(big)]), "give_it")
    [value] = outcome.values
    assert outcome.data is None
    assert value.handle in outcome.text
    assert len(outcome.text.encode()) < BIG + 200
    assert json.loads(desk.blobs.get(value.blob)) == big


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such day"), "ValueError: no such day"),
        (KeyError(), "KeyError"),
        (CapabilityError("The shop is closed.", "Come tomorrow."), "The shop is closed. Come tomorrow."),
        (StopIteration(3), "StopIteration: 3"),
        (SystemExit(2), "SystemExit: 2"),
        (Unspeakable(), "Unspeakable"),
    ],
)
def test_exceptions_are_failed_outcomes(desk, error, text):
    def fails():
        raise error

    async def fails_too():
        raise error

    provider = FunctionProvider([fails, fails_too])
    assert desk.do(provider, "fails") == Outcome.failed(text)
    if not isinstance(error, StopIteration):  # which no coroutine can raise
        assert desk.do(provider, "fails_too") == Outcome.failed(text)


def test_sync_functions_do_not_hold_up_the_machine(desk):
    meeting = threading.Barrier(2, timeout=10)

    def meet() -> str:
        meeting.wait()
        return threading.current_thread().name

    async def both():
        provider = FunctionProvider([meet])
        return await asyncio.gather(desk.perform(provider, "meet"), desk.perform(provider, "meet"))

    one, two = asyncio.run(both())
    assert one.state == two.state == "done"
    assert one.text != two.text


def test_cancelling_passes_through_an_async_function(desk):
    ended = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def cancel():
        provider = FunctionProvider([wait_for_ever])
        task = asyncio.create_task(desk.perform(provider, "wait_for_ever"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert ended == [True]


def test_only_async_functions_count_as_cancellable():
    async def asynchronous(): ...

    assert read(asynchronous).cancellable
    assert not read(add).cancellable


def test_marking_does_not_import_pydantic():
    program = (
        "import sys\n"
        "from textor.capabilities.functions import capability, FunctionProvider\n"
        "@capability\n"
        "def f(a: int): ...\n"
        "FunctionProvider([f])\n"
        "assert 'pydantic' not in sys.modules, 'pydantic'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
