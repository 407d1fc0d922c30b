"""Vectors that were made once: an embedder that remembers, on disk, by model and text."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textor.embedding import Embedder, Role

if TYPE_CHECKING:
    from textor.embedding import Vectors

#: Texts that are looked up together, and texts that are embedded before they are stored.
TOGETHER = 500

_SCHEMA = """
create table if not exists vector (
    model text not null, text blob not null, content blob not null, primary key (model, text)
) without rowid
"""


class Cached:
    """`embedder` with its passages kept in the SQLite file `path`, as float16 (an error of some
    0.0005 in a cosine). Queries, which seldom come back, are not kept.

    The file is a convenience: when it cannot be read or written, texts are embedded again.
    """

    def __init__(self, embedder: Embedder, path: Path) -> None:
        self._embedder = embedder
        self._path = path
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._broken = False

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dim(self) -> int:
        return self._embedder.dim

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        if role == "query" or not texts:
            return self._embedder.encode(texts, role)
        import numpy as np

        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        known = self._known(keys)
        new = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
        for start in range(0, len(new), TOGETHER):
            part = new[start : start + TOGETHER]
            made = self._embedder.encode([text for _, text in part], role).astype(np.float16)
            rows = {key: row.tobytes() for (key, _), row in zip(part, made, strict=True)}
            self._keep(rows)
            known |= rows
        flat = b"".join(known[key] for key in keys)
        return np.frombuffer(flat, np.float16).reshape(len(texts), -1).astype(np.float32)

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        size = 2 * self.dim
        with self._lock:
            for part in _parts(keys):
                marks = ",".join("?" * len(part))
                query = f"select text, content from vector where model = ? and text in ({marks})"
                try:
                    found.update(self._open().execute(query, (self.model_id, *part)).fetchall())
                except sqlite3.Error:
                    self._give_up()
                    return {}
        return {key: content for key, content in found.items() if len(content) == size}

    def _keep(self, rows: dict[bytes, bytes]) -> None:
        with self._lock:
            try:
                with self._open() as database:
                    database.executemany(
                        "insert or replace into vector values (?, ?, ?)",
                        [(self.model_id, key, content) for key, content in rows.items()],
                    )
            except sqlite3.Error:
                self._give_up()

    def _open(self) -> sqlite3.Connection:
        if self._broken:
            raise sqlite3.DatabaseError
        if self._database is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise sqlite3.OperationalError(str(error)) from error
            self._database = sqlite3.connect(self._path, timeout=10, check_same_thread=False)
            self._database.execute("pragma journal_mode = wal")
            # What a power cut takes away is embedded again.
            self._database.execute("pragma synchronous = off")
            self._database.execute(_SCHEMA)
        return self._database

    def _give_up(self) -> None:
        self._broken = True
        self._release()

    def _release(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def close(self) -> None:
        with self._lock:
            self._release()


def _parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    distinct = list(dict.fromkeys(keys))
    for start in range(0, len(distinct), TOGETHER):
        yield distinct[start : start + TOGETHER]
