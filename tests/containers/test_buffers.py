"""Bytes in, text out: nothing lost, nothing twice, no character torn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textor.containers.buffers import Buffer


def take(buffer: Buffer, most: int, *, ended: bool) -> str:
    text, count = buffer.peek(most, ended=ended)
    assert buffer.peek(most, ended=ended) == (text, count)  # it stays until it is dropped
    buffer.drop(count)
    return text


@given(st.text(max_size=60), st.lists(st.integers(1, 7), max_size=200), st.integers(1, 9))
def test_what_is_read_in_pieces_is_what_was_written(text: str, cuts: list[int], most: int) -> None:
    content = text.encode("utf-8", "surrogatepass") if not text.isascii() else text.encode()
    expected = content.decode("utf-8", "replace")
    buffer, read, at = Buffer(), "", 0
    for size in cuts:
        buffer.add(content[at : at + size])
        at += size
        read += take(buffer, most, ended=False)
    buffer.add(content[at:])
    while len(buffer):
        before = len(buffer)
        read += take(buffer, most, ended=True)
        assert len(buffer) < before
    assert read == expected
    assert buffer.position == buffer.total == len(content)


def test_at_most_so_many_bytes_and_whole_characters() -> None:
    buffer = Buffer()
    buffer.add("aé€x".encode())
    assert take(buffer, 2, ended=False) == "a"  # é would need one more
    assert take(buffer, 2, ended=False) == "é"
    assert take(buffer, 1, ended=False) == "€"  # at least one, or it would never come
    assert (take(buffer, 9, ended=False), len(buffer)) == ("x", 0)


def test_an_unfinished_character_waits_until_the_end() -> None:
    buffer = Buffer()
    buffer.add(b"a\xe2\x82")
    assert take(buffer, 9, ended=False) == "a"
    assert len(buffer) == 2
    assert take(buffer, 9, ended=True) == "\ufffd"


@pytest.mark.parametrize("pieces", [[b"hello world"], [b"hel", b"lo ", b"world"]])
def test_after_a_restart_what_was_read_is_passed_over(pieces: list[bytes]) -> None:
    buffer = Buffer(position=6)
    for piece in pieces:
        buffer.add(piece)
    assert take(buffer, 100, ended=True) == "world"
    assert buffer.position == buffer.total == 11
