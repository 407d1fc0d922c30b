"""What was written once can be read for ever: golden logs, upcasters, unknown kinds, round trips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor import events
from textor.events import KINDS, Body, NoteSet, Unknown, decode, encode

GOLDEN = Path(__file__).parent / "golden"


class Line(msgspec.Struct):
    kind: str
    version: int
    data: msgspec.Raw


def lines(path: Path) -> list[Line]:
    """One event a line, as a journal of that time held it. Only ever add files: never mend one."""
    return [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda p: p.stem)
def test_a_golden_log_is_read_and_nothing_of_it_lost(path: Path) -> None:
    for line in lines(path):
        body = decode(line.kind, line.version, bytes(line.data))
        assert not isinstance(body, Unknown), line.kind
        if line.version == body.VERSION:
            # Fields may be added with a default since; those that were there keep their content.
            assert holds(msgspec.json.decode(encode(body)[2]), msgspec.json.decode(line.data)), line.kind


def holds(new: Any, old: Any) -> bool:
    """Whether all of `old` is in `new`, at any depth."""
    if isinstance(old, dict):
        return all(key in new and holds(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)


def test_every_kind_of_this_version_is_in_a_golden_log() -> None:
    held = {(line.kind, line.version) for path in GOLDEN.glob("*.jsonl") for line in lines(path)}
    missing = {(kind, body.VERSION) for kind, body in KINDS.items()} - held
    assert not missing, "write one line of each into the newest golden log"


def test_an_older_version_is_cast_up_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_2(data: dict[str, Any]) -> dict[str, Any]:
        return {"agent": data["who"], "title": data["title"], "text": data["text"]}

    def to_3(data: dict[str, Any]) -> dict[str, Any]:
        return {"agent": data["agent"], "key": data["title"].lower(), "text": data["text"]}

    monkeypatch.setattr(NoteSet, "VERSION", 3)
    monkeypatch.setitem(events.UPCASTERS, ("note.set", 1), to_2)
    monkeypatch.setitem(events.UPCASTERS, ("note.set", 2), to_3)
    new = NoteSet("main", "plan", "read")
    assert decode("note.set", 1, b'{"who":"main","title":"PLAN","text":"read"}') == new
    assert decode("note.set", 2, b'{"agent":"main","title":"PLAN","text":"read"}') == new
    assert decode(*encode(new)) == new


def test_what_a_newer_program_wrote_is_kept() -> None:
    data = b'{ "agent": "main",\n "new": [1e400, "\xc3\xa4"] }'
    body = decode("note.set", NoteSet.VERSION + 1, data)
    assert isinstance(body, Unknown)
    assert encode(body) == ("note.set", NoteSet.VERSION + 1, data)


@given(st.text(min_size=1).filter(lambda k: k not in KINDS), st.integers(1, 10**6), st.binary())
def test_an_unknown_kind_is_kept_byte_for_byte(kind: str, version: int, data: bytes) -> None:
    body = decode(kind, version, data)
    assert isinstance(body, Unknown)
    assert encode(body) == (kind, version, data)


# -- anything that a body can hold comes back -------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def anything(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Values of a type, as `msgspec.inspect` describes it."""
    plain: dict[type[msgspec.inspect.Type], st.SearchStrategy[Any]] = {
        msgspec.inspect.StrType: TEXT,
        msgspec.inspect.IntType: st.integers(-(2**63), 2**63 - 1),
        msgspec.inspect.FloatType: NUMBER,
        msgspec.inspect.BoolType: st.booleans(),
        msgspec.inspect.NoneType: st.none(),
        msgspec.inspect.AnyType: JSON,
    }
    match kind:
        case msgspec.inspect.LiteralType(values=allowed):
            return st.sampled_from(allowed)
        case msgspec.inspect.UnionType(types=types):
            return st.one_of(*(anything(t) for t in types))
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(anything(item), max_size=2).map(tuple)
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(anything(key), anything(value), max_size=3)
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{f.name: anything(f.type) for f in fields})
    return plain[type(kind)]


@given(st.sampled_from(sorted(KINDS)).flatmap(lambda kind: anything(msgspec.inspect.type_info(KINDS[kind]))))
def test_every_body_comes_back_as_it_was(body: Body) -> None:
    assert decode(*encode(body)) == body
