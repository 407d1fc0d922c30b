"""The plan dialect: what a line means, and what does not run."""

from __future__ import annotations

import pytest

from textor.actions import Action, Capability, Catalogue, Outcome
from textor.dialects.plan import Plan
from textor.dialects.port import ActionRead, FreeLine, NearMiss, ParseEvent, Prose, Retracted
from textor.errors import UseError
from textor.messages import CallChunk
from textor.values import Json

TEXT = {"type": "string"}


def capability(
    title: str, *phrases: str, required: tuple[str, ...] = (), ends: bool = False, **p: Json
) -> Capability:
    schema = {"type": "object", "properties": p, "required": list(required)}
    return Capability(title, "", schema, phrases=phrases, ends_turn=ends)


LIST = capability("files.list", "list files in []", path={"type": "string", "default": "."})
SET = capability("table.set", "set [] to []", required=("name", "value"), name=TEXT, value=TEXT)
WRITE = capability(
    "files.write", "write [text] to file [path]", required=("path", "text"), path=TEXT, text=TEXT
)
START = capability("app.start", "start email application")
WAIT = capability("wait", "wait [] seconds", required=("seconds",), seconds={"type": "integer"})
RESPOND = capability("respond", "respond to user with []", required=("text",), ends=True, text=TEXT)
ALL = (LIST, SET, WRITE, START, WAIT, RESPOND)


def read(text: str, finish: str = "stop", capabilities: tuple[Capability, ...] = ALL) -> list[ParseEvent]:
    parser = Plan().parser(Catalogue(capabilities))
    return [*parser.feed(text), *parser.close(finish)]


def actions(events: list[ParseEvent]) -> list[tuple[str, dict[str, Json]]]:
    return [(e.action.capability, e.action.arguments) for e in events if isinstance(e, ActionRead)]


def test_markers_and_a_preamble_are_no_actions() -> None:  # R15
    text = (
        "Sure! Here are the actions:\n1. list files in [src]\n  2) wait [3] seconds\n"
        "- start email application.\n* Step 4: List  Files in [docs]\n"
    )
    events = read(text)
    assert isinstance(events[0], Prose)
    assert actions(events) == [
        ("files.list", {"path": "src"}),
        ("wait", {"seconds": 3}),
        ("app.start", {}),
        ("files.list", {"path": "docs"}),
    ]
    first, second = (e for e in events if isinstance(e, ActionRead) and e.line in (2, 3))
    assert (first.line, first.column, first.action.text) == (2, 4, "list files in [src]")
    assert (second.line, second.column) == (3, 6)


@pytest.mark.parametrize(
    "line", ["do not start email application", "delete all my files", "never list files in [src]"]
)
def test_the_opposite_and_the_unknown_do_not_run(line: str) -> None:  # R16
    assert not actions(read(line))


def test_a_line_written_like_no_phrase_is_left_to_its_meaning() -> None:
    assert read("please list the files in [src]") == [FreeLine("please list the files in [src]", 1, 1)]


def test_a_near_miss_names_the_nearest_phrases() -> None:
    (miss,) = read("list files in [src")
    assert isinstance(miss, NearMiss)
    assert "`list files in [path]`" in miss.message
    assert (miss.line, miss.column) == (1, 15)


def test_brackets() -> None:  # R17
    events = read("set [a] to [b]\nset [x [y] z] to [[]]\nset [a] to [b\nlist files in [.]\n")
    assert actions(events) == [
        ("table.set", {"name": "a", "value": "b"}),
        ("table.set", {"name": "x [y] z", "value": "[]"}),
        ("files.list", {"path": "."}),
    ]
    (miss,) = (e for e in events if isinstance(e, NearMiss))
    assert (miss.line, miss.column) == (3, 12)


def test_payloads_are_verbatim() -> None:
    payload = " `tick ``` <think> > \\n $x ~~~ ünï\t\r "
    assert actions(read(f"write [{payload}] to file [a b.txt]\r\n")) == [
        ("files.write", {"text": payload, "path": "a b.txt"})
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```\nlist files in [src]\n```",
        "~~~ text\nlist files in [src]",
        "<think>\nlist files in [src]\n</think>",
        "I could <think> do\nlist files in [src]\n</think>",
        "[THINK]\nlist files in [src]\n[/THINK]",
        "`list files in [src]`",
        "> list files in [src]",
        'He said "list files in [src]"',
    ],
)
def test_what_is_quoted_does_not_run(text: str) -> None:
    assert actions(read(f"{text}\nwait [1] seconds")) in ([("wait", {"seconds": 1})], [])
    assert not actions(read(text))


def test_after_a_fence_and_a_thought_lines_act_again() -> None:
    text = "```\nx\n```\n<think>hm</think>\nlist files in [a]\n[THINK]\nno\n[/THINK]\nlist files in [b]"
    assert actions(read(text)) == [("files.list", {"path": "a"}), ("files.list", {"path": "b"})]


def test_reasoning_that_began_before_the_reply_is_taken_back() -> None:
    events = read("list files in [a]\n</think>\nlist files in [b]")
    kinds = [type(e) for e in events if not isinstance(e, Prose)]
    assert kinds == [ActionRead, Retracted, ActionRead]


@pytest.mark.parametrize("finish", ["length", "cut"])
def test_a_cut_line_does_not_run(finish: str) -> None:  # R20
    events = read("list files in [a]\nlist files in [b]", finish)
    assert actions(events) == [("files.list", {"path": "a"})]
    assert isinstance(events[-1], NearMiss)
    assert "cut short" in events[-1].message


@pytest.mark.parametrize("text", ["", " \n\t\n", "Here are the actions:"])
def test_nothing_and_an_announcement_are_no_actions(text: str) -> None:  # R15, R20
    assert all(isinstance(e, Prose) for e in read(text))


def test_arguments_that_do_not_fit_are_a_fault_of_the_action() -> None:
    (event,) = read("wait [a few] seconds")
    assert isinstance(event, ActionRead)
    assert "integer" in event.action.fault and "`wait [seconds] seconds`" in event.action.fault
    assert event.action.capability == "wait" and event.action.arguments == {}


def test_an_empty_slot_leaves_an_optional_parameter_out() -> None:
    assert actions(read("list files in []")) == [("files.list", {"path": "."})]
    assert actions(read("respond to user with []")) == [("respond", {"text": ""})]


def test_nothing_after_the_reply_matters() -> None:
    parser = Plan().parser(Catalogue(ALL))
    assert len(parser.feed("respond to user with [hi]\nlist files in [.]\n")) == 1
    assert parser.done
    assert not parser.feed("list files in [.]\n") and not parser.close("stop")


def test_a_phrase_of_two_capabilities_is_no_guess() -> None:
    twins = (capability("a.go", "go"), capability("b.go", "Go."))
    assert read("go", capabilities=twins) == [FreeLine("go", 1, 1)]  # compiled: ambiguous


def test_a_function_call_is_a_near_miss() -> None:
    parser = Plan().parser(Catalogue(ALL))
    (miss,) = parser.feed_call(CallChunk(0, "c1", "files_list"))
    assert isinstance(miss, NearMiss)
    assert not parser.feed_call(CallChunk(0, arguments="{}"))


def test_without_phrases_the_name_is_the_phrase() -> None:
    mail = capability("mail.send_now", required=("to",), to=TEXT, note=TEXT)
    assert Plan().teach([mail]).endswith("mail send now [to]")
    assert actions(read("mail send now [x@y.z]", capabilities=(mail,))) == [
        ("mail.send_now", {"to": "x@y.z"})
    ]


def test_a_phrase_that_leaves_a_required_parameter_out_is_not_taught() -> None:
    broken = capability("a.b", "do it", "do [x] twice", "do []", "do [", required=("n",), n=TEXT)
    assert Plan().teach([broken]).splitlines()[1:] == ["do [n]"]


def test_write() -> None:
    lines = Plan().write(
        [
            Action("1", "files.write", {"path": "a.txt", "text": "x [y]"}),
            Action("2", "files.list", {}),
            Action("3", "wait", {"seconds": 5}),
        ],
        ALL,
    )
    assert lines == "write [x [y]] to file [a.txt]\nlist files in [.]\nwait [5] seconds"


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("respond", {"text": "two\nlines"}, "line break"),
        ("respond", {"text": "smile :]"}, "single bracket"),
        ("wait", {"seconds": "soon"}, "integer"),
        ("wait", {"minutes": 1}, "no slot"),
        ("wait", {}, "missing"),
        ("files.list", {"path": " "}, "another value"),
        ("no.such", {}, "catalogue"),
    ],
)
def test_write_says_what_it_cannot_carry(name: str, arguments: dict[str, Json], word: str) -> None:
    with pytest.raises(UseError, match=word):
        Plan().write([Action("1", name, arguments)], ALL)


def test_render_shows_state_and_bounds_the_text() -> None:
    done = (Action("1", "files.list", {}, text="list files in [.]"), Outcome("done", "a\nb"))
    failed = (Action("2", "wait", {}), Outcome("failed", "x" * 5000))
    (message,) = Plan().render([done, failed])
    assert message.role == "user"
    assert message.text.startswith("list files in [.]:\na\nb\nwait (failed):\nxxx")
    assert len(message.text) < 900
    assert Plan().render([]) == ()
