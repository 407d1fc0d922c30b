"""What holds for the plan dialect whatever is written."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from textor.actions import Action, Capability, Catalogue
from textor.arguments import convert
from textor.dialects.plan import Plan
from textor.dialects.plan_slots import carries
from textor.dialects.port import ActionRead, ParseEvent, Prose
from textor.errors import TextorError

CAPABILITIES = (
    Capability(
        "write",
        "",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
        },
        phrases=("write [text] to file [path]",),
    ),
    Capability(
        "odd",
        "",
        {
            "type": "object",
            "properties": {
                "n": {"type": "number"},
                "b": {"type": "boolean"},
                "j": {"type": "array"},
                "o": {"type": "object", "additionalProperties": True},
                "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "c": {"enum": ["Red", "red", 3]},
                "s": {"type": "string", "default": "x"},
            },
            "required": ["n", "j", "c"],
        },
        phrases=("do [n] [b] with [j], [o] and [u] [c] [s]",),
    ),
    Capability("go", "", phrases=("just go",)),
)

signs = st.sampled_from(
    ["[", "]", "`", "```", "<think>", "</think>", "> ", "\n", "\r", "\\", "- ", "1. ", ":"]
)
text = st.lists(st.one_of(signs, st.text(max_size=8)), max_size=8).map("".join)
json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), text
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
writes = st.builds(
    lambda path, body: Action("1", "write", {"path": path, "text": body}),
    text.filter(carries),
    text.filter(carries),
)
odd = st.fixed_dictionaries(
    {
        "n": st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
        "j": st.lists(json_values, max_size=3),
        "c": st.sampled_from(["Red", "red", 3]),
    },
    optional={
        "b": st.booleans(),
        "o": st.dictionaries(st.text(max_size=4), json_values, max_size=3),
        "u": st.one_of(st.none(), st.integers()),
        "s": text.filter(lambda s: carries(s) and s.strip() != ""),
    },
).map(lambda arguments: Action("1", "odd", arguments))
plans = st.lists(st.one_of(writes, odd, st.just(Action("1", "go"))), min_size=1, max_size=4)


def read(chunks: list[str], finish: str = "stop") -> list[ParseEvent]:
    parser = Plan().parser(Catalogue(CAPABILITIES))
    events: list[ParseEvent] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    return [*events, *parser.close(finish)]


@given(plans)
def test_what_is_written_is_read_again(actions: list[Action]) -> None:
    events = read([Plan().write(actions, CAPABILITIES)])
    schemas = {c.name: c.parameters for c in CAPABILITIES}
    wanted = [(a.capability, convert(a.arguments, schemas[a.capability])) for a in actions]
    assert [(e.action.capability, e.action.arguments) for e in events if isinstance(e, ActionRead)] == wanted
    assert len(events) == len(wanted)


@given(st.one_of(writes, text.map(lambda t: Action("1", "write", {"path": "p", "text": t}))))
def test_write_is_right_or_refuses(action: Action) -> None:
    try:
        line = Plan().write([action], CAPABILITIES)
    except TextorError:
        assert not carries(action.arguments["text"])
        return
    (event,) = read([line])
    assert isinstance(event, ActionRead)
    assert event.action.arguments == convert(action.arguments, CAPABILITIES[0].parameters)


@st.composite
def replies(draw: st.DrawFn) -> str:
    pieces = st.one_of(
        text, st.just("just go"), st.just("write [a] to file [b]\n"), st.just("\n"), st.just("[THINK]\n")
    )
    return "".join(draw(st.lists(pieces, max_size=8)))


@given(replies(), st.data(), st.sampled_from(["stop", "length"]))
def test_chunks_do_not_matter(reply: str, data: st.DataObject, finish: str) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=6)))
    chunks = [reply[a:b] for a, b in zip([0, *cuts], [*cuts, len(reply)], strict=True)]
    whole = read([reply], finish)
    assert read(chunks, finish) == whole
    assert read(list(reply), finish) == whole


@given(replies())
def test_prose_and_actions_are_pieces_of_the_reply(reply: str) -> None:
    at = 0
    for event in read([reply]):
        piece = event.text if isinstance(event, Prose) else ""
        if isinstance(event, ActionRead):
            piece = event.action.text
        at = reply.find(piece, at)
        assert at >= 0, (piece, reply)


@given(text)
def test_an_action_needs_its_whole_line(prefix: str) -> None:
    """Any word before or after a phrase makes it none."""
    if "\n" in prefix or not re.search(r"\w", prefix) or re.fullmatch(r"[\W\d_]*", prefix):
        return
    events = read([f"{prefix} just go"])
    assert not any(isinstance(e, ActionRead) for e in events)
