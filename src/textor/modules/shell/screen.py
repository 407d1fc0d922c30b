"""What a terminal's output says as plain text, and where a session tells that it is idle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

#: Cursor movements, colours, titles, single-character escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]"
)

MOST_KEPT = 64 << 20  #: bytes of a session's transcript


def plain(data: bytes) -> str:
    """Output as it would stand on paper: no escapes; of a line drawn over, what was drawn last."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" not in text and "\b" not in text:
        return text
    return "\n".join(_line(line) for line in text.split("\n"))


def _line(line: str) -> str:
    drawn = ""
    for part in line.split("\r"):
        drawn = part + drawn[len(part) :]
    while "\b" in drawn:
        shorter = re.sub(r"[^\x08]\x08", "", drawn)
        drawn = shorter if shorter != drawn else drawn.replace("\b", "")
    return drawn


class Marks:
    """Takes the marks out of a stream of output. A mark is `ESC ] 7717 ; NONCE ; STATUS BEL`; the
    nonce was made before the session began, so that no program can print one by chance."""

    def __init__(self, nonce: str) -> None:
        self._mark = re.compile(rb"\x1b\]7717;%s;(\d+)\x07" % nonce.encode())
        self._start = b"\x1b]7717;%s;" % nonce.encode()
        self._held = b""

    def feed(self, data: bytes) -> list[bytes | int]:
        """Pieces of output, and the status of each mark between them."""
        data = self._held + data
        found: list[bytes | int] = []
        place = 0
        for mark in self._mark.finditer(data):
            found += [data[place : mark.start()], int(mark[1])]
            place = mark.end()
        rest = data[place:]
        self._held = self._beginning(rest)
        found.append(rest[: len(rest) - len(self._held)])
        return [piece for piece in found if piece != b""]

    def _beginning(self, rest: bytes) -> bytes:
        """The end of `rest` that may be the beginning of a mark. Looks at the last bytes only."""
        place = rest.rfind(b"\x1b", max(0, len(rest) - len(self._start) - 12))
        if place < 0:
            return b""
        tail = rest[place:]
        whole = tail[: len(self._start)] == self._start[: len(tail)]
        digits = tail[len(self._start) :]
        return tail if whole and (not digits or digits.isdigit()) else b""


class Transcript:
    """All output of a session in a file, without marks; beyond `MOST_KEPT` bytes it is not kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0  #: bytes that came, kept or not
        self._file: BinaryIO = path.open("w+b")

    def add(self, data: bytes) -> None:
        room = MOST_KEPT - self.size
        if room > 0:
            self._file.seek(0, 2)
            self._file.write(data[:room])
        self.size += len(data)

    def read(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(max(0, min(end, MOST_KEPT) - start))

    def close(self) -> None:
        self._file.close()


def cut(text: str, limit: int, where: str) -> str:
    """Head and tail of a text of more than `limit` bytes, with a note that says `where` the whole is."""
    content = text.encode()
    if len(content) <= limit:
        return text
    head = content[: limit // 2].decode("utf-8", "ignore")
    tail = content[-(limit // 2) :].decode("utf-8", "ignore")
    left_out = len(content) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[… {left_out} bytes left out; {where} …]\n{tail}"
