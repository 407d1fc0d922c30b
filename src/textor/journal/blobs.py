"""Content-addressed bytes: in memory, or as files under the SHA-256 of what they hold."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

from textor.errors import JournalError
from textor.journal.faults import explain, is_missing
from textor.values import sha256_of


class MemoryBlobs:
    """See `textor.values.Blobs`."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        sha256 = sha256_of(content)
        self._content.setdefault(sha256, bytes(content))
        return sha256

    def get(self, sha256: str) -> bytes:
        return self._content[sha256]


class FileBlobs:
    """A folder of blobs, `ab/cd/abcd…`: two levels, so that no folder grows beyond use.

    Safe to use from several threads and processes: a file appears under its name only whole and
    on the disk, and all who write it write the same bytes. Raises `JournalError` with the path
    when the folder cannot be written or a file no longer holds what its name says.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        sha256 = sha256_of(content)
        path = self._path(sha256)
        try:
            if not (path.exists() and path.stat().st_size == len(content)):
                _make_folder(path.parent)
                _write_whole(path, content)
        except OSError as error:
            raise explain(path, error) from error
        return sha256

    def get(self, sha256: str) -> bytes:
        if len(sha256) != 64 or not sha256.isalnum():
            raise KeyError(sha256)
        path = self._path(sha256)
        try:
            content = path.read_bytes()
        except OSError as error:
            if is_missing(error):
                raise KeyError(sha256) from None
            raise explain(path, error) from error
        if sha256_of(content) != sha256:
            raise JournalError(
                f"The file {path} no longer holds what its name says: it is damaged.",
                "Restore it from a backup; the rest of the journal is not touched by this.",
            )
        return content

    def _path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256[2:4] / sha256


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each one's entry on the disk before the next."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(folder.parent)


def _write_whole(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name[:16]}-{secrets.token_hex(8)}")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """The entry of a renamed file is durable only when its folder is; Windows has no such call."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
