"""What a container wrote and nobody has read yet, with exact byte counts."""

from __future__ import annotations

import codecs


class Buffer:
    """One stream of output. Bytes are taken from the front, each once.

    `position` is how many bytes were taken since the container began, `total` how many came.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self.total = 0
        self._waiting = bytearray()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, data: bytes) -> None:
        """Take in what came; what was read before a restart (`position`) is passed over."""
        known = max(0, self.position - self.total)
        self.total += len(data)
        self._waiting += data[known:]

    def peek(self, most: int, *, ended: bool) -> tuple[str, int]:
        """At most `most` bytes as text, whole characters only, and at least one when there is one;
        and how many bytes that is. They stay until they are dropped.

        An unfinished character at the end waits for its rest unless the stream has `ended`.
        """
        data = bytes(self._waiting[:most])
        text, used = _decoded(data, final=ended and len(self._waiting) <= most)
        if not used and self._waiting:  # `most` is smaller than the first character
            data = bytes(self._waiting[: most + 3])
            text, used = _decoded(data, final=ended)
            text, used = _first(text, data) if used else (text, used)
        return text, used

    def drop(self, count: int) -> None:
        """The first `count` bytes have been read."""
        del self._waiting[:count]
        self.position += count


def _decoded(data: bytes, *, final: bool) -> tuple[str, int]:
    """The text of `data` and how many bytes of it were used. What is no UTF-8 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final)
    return text, len(data) - len(decoder.getstate()[0])


def _first(text: str, data: bytes) -> tuple[str, int]:
    """The first character of `text` and the number of bytes it had in `data`."""
    for length in range(1, len(data) + 1):
        one, used = _decoded(data[:length], final=length == len(data))
        if one:
            return one[:1], used if len(one) == 1 else 1
    return text, len(data)
