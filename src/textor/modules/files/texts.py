"""Text files read as text and written back with the encoding and line ends that they had."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from textor.capabilities.files import BOMS, is_binary
from textor.capabilities.opening import write_whole
from textor.modules.files.roots import Refused

BIGGEST = 50_000_000  #: bytes of a file that is changed


@dataclass(frozen=True)
class Text:
    """`encoding` is as Python names it; `mark` the byte order mark that stood in front."""

    text: str
    encoding: str
    mark: bytes = b""

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        windows = self.text.count("\r\n")
        return "\r\n" if windows > self.text.count("\n") - windows else "\n"


def read_text(path: Path, name: str, encoding: str = "") -> Text:
    """The text of a file: in `encoding`, else by its byte order mark, UTF-8 or Latin-1."""
    try:
        if path.stat().st_size > BIGGEST:
            raise Refused(f"{name} is bigger than {BIGGEST // 1_000_000} MB.")
        content = path.read_bytes()
    except FileNotFoundError:
        raise Refused(f"There is no {name}.") from None
    except OSError as error:
        raise Refused(f"{name}: {error.strerror}.") from None
    if encoding:
        return Text(_decoded(content, known(encoding), name), encoding)
    for mark, kind in BOMS:
        if content.startswith(mark):
            plain = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}.get(kind, kind)
            if mark in (codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE):
                plain = plain.replace("-le", "-be")
            return Text(_decoded(content[len(mark) :], plain, name), plain, mark)
    if is_binary(content[:65536]):
        raise Refused(f"{name} is no text file.")
    try:
        return Text(content.decode(), "utf-8")
    except UnicodeDecodeError:
        return Text(content.decode("latin-1"), "latin-1")


def write_text(path: Path, name: str, text: Text) -> bool:
    """Write it in one step; True when the file is new."""
    try:
        content = text.mark + text.text.encode(known(text.encoding))
    except UnicodeEncodeError as error:
        sign = text.text[error.start : error.start + 1]
        raise Refused(f"{sign!r} cannot be written in {text.encoding}. Give another encoding.") from None
    try:
        return write_whole(path, content)
    except OSError as error:
        raise Refused(f"{name} cannot be written: {error.strerror}.") from None


def known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise Refused(f"There is no encoding {encoding!r}.") from None


def _decoded(content: bytes, encoding: str, name: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not in {encoding} (byte {error.start}).") from None
