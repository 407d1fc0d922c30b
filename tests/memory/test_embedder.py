"""Embedders: the model on this machine, a server's, and the vectors that are kept."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from textor.embedding import Role
from textor.errors import ModelError
from textor.memory import embedder_fetch
from textor.memory.cached import Cached
from textor.memory.embedder import MiniLM, RemoteEmbedder


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    made = MiniLM()
    made.fetch()
    return made


# -- the model on this machine -------------------------------------------------------------


def test_near_meanings_are_near(minilm: MiniLM) -> None:
    vectors = minilm.encode(["open a new email", "start the mail program", "water the plants"], "query")
    assert vectors.shape == (3, minilm.dim) and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.5 > 0.2 > cosines[0, 2]


def test_a_vector_does_not_depend_on_its_neighbours(minilm: MiniLM) -> None:
    texts = [f"{'word ' * (number % 40)}{number}" for number in range(70)]
    together = minilm.encode(texts, "passage")
    alone = np.concatenate([minilm.encode([text], "passage") for text in texts])
    assert (together * alone).sum(axis=1).min() > 0.9999


def test_no_texts_and_an_empty_text(minilm: MiniLM) -> None:
    assert minilm.encode([], "query").shape == (0, 384)
    assert np.isfinite(minilm.encode(["", " "], "query")).all()


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    missing = MiniLM(tmp_path)
    assert not missing.fetched
    with pytest.raises(ModelError, match=r"`python -m textor\.memory\.embedder_fetch` fetches it"):
        missing.encode(["x"], "query")


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / embedder_fetch.MODEL.file).write_bytes(b"\0" * embedder_fetch.MODEL.size)
    words = "\n".join(["[CLS]", "[SEP]", "[UNK]"]).encode()
    (folder / embedder_fetch.VOCABULARY.file).write_bytes(words.ljust(embedder_fetch.VOCABULARY.size, b"\n"))
    with pytest.raises(ModelError, match="cannot be loaded"):
        MiniLM(tmp_path).encode(["x"], "query")


# -- a server ------------------------------------------------------------------------------

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


class Served:
    """A server of embeddings, and what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.keys.append(self.headers["Authorization"])
                status, told = outer.answer(body) if self.path == "/v1/embeddings" else (404, "no")
                sent = told.encode() if isinstance(told, str) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *args: Any) -> None:
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def letters(body: dict[str, Any]) -> tuple[int, Any]:
    """Vectors by the number of a's and b's; in reverse order, as a server may send them."""
    rows = [[text.count("a") + 0.5, text.count("b"), 1.0] for text in body["input"]]
    data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
    return 200, {"data": data[::-1]}


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served(letters)
    yield made
    made.close()


def test_a_server_is_asked_in_batches(served: Served) -> None:
    embedder = RemoteEmbedder(served.url, "m", "key", prefixes={"query": "q: "})
    texts = ["a" * number for number in range(40)]
    vectors = embedder.encode(texts, "passage")
    assert vectors.shape == (40, 3) and embedder.dim == 3 and embedder.model_id == "m"
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert (np.diff(vectors[:, 0]) > 0).all(), "in the order of the texts"
    assert [len(body["input"]) for body in served.asked] == [32, 8]
    assert served.asked[0]["input"][0] == " " and served.keys[0] == "Bearer key"
    embedder.encode(["b"], "query")
    assert served.asked[-1] == {"model": "m", "input": ["q: b"], "encoding_format": "float"}


@pytest.mark.parametrize(
    ("status", "told", "fault", "says"),
    [
        (401, "wrong key", "auth", "status 401: wrong key"),
        (429, "slowly", "rate", "status 429"),
        (500, "oh", "server", "status 500"),
        (404, "no such model", "refused", "no such model"),
        (200, "{", "server", "no list of embeddings"),
        (200, {"data": []}, "server", "no list of embeddings"),
        (200, {"data": [{"index": 0, "embedding": ["x"]}]}, "server", "no lists of numbers"),
    ],
)
def test_what_goes_wrong_is_told(served: Served, status: int, told: Any, fault: str, says: str) -> None:
    served.answer = lambda body: (status, told)
    with pytest.raises(ModelError, match=says) as caught:
        RemoteEmbedder(served.url, "m").encode(["x"], "query")
    assert caught.value.fault == fault


def test_vectors_of_different_lengths_are_told(served: Served) -> None:
    served.answer = lambda body: (
        200,
        {"data": [{"index": at, "embedding": [1.0] * (at + 1)} for at in range(len(body["input"]))]},
    )
    with pytest.raises(ModelError, match="different lengths"):
        RemoteEmbedder(served.url, "m").encode(["x", "y"], "query")


def test_nobody_there_is_told(served: Served) -> None:
    served.close()
    with pytest.raises(ModelError, match="No embeddings from") as caught:
        RemoteEmbedder(served.url, "m").encode(["x"], "query")
    assert caught.value.fault == "server" and caught.value.transient


# -- kept vectors --------------------------------------------------------------------------


class Counting:
    """The real model, and what it was asked for."""

    def __init__(self, real: MiniLM, model_id: str = "") -> None:
        self._real = real
        self.model_id = model_id or real.model_id
        self.dim = real.dim
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], role: Role) -> Any:
        self.asked += texts
        return self._real.encode(texts, role)


def test_a_passage_is_embedded_once(minilm: MiniLM, tmp_path: Path) -> None:
    path, counting = tmp_path / "new" / "vectors.db", Counting(minilm)
    cached = Cached(counting, path)
    first = cached.encode(["one", "two", "one"], "passage")
    assert counting.asked == ["one", "two"]
    assert np.abs(first - minilm.encode(["one", "two", "one"], "passage")).max() < 0.001
    cached.close()
    again = Cached(Counting(minilm), path)
    assert (again.encode(["two", "three", "one"], "passage")[[0, 2]] == first[[1, 0]]).all()
    assert again._embedder.asked == ["three"]  # type: ignore[attr-defined]
    again.encode(["one"], "query")
    assert again._embedder.asked == ["three", "one"]  # type: ignore[attr-defined]
    again.close()


def test_vectors_of_another_model_are_not_taken(minilm: MiniLM, tmp_path: Path) -> None:
    Cached(Counting(minilm), tmp_path / "v.db").encode(["one"], "passage")
    other = Counting(minilm, "another")
    Cached(other, tmp_path / "v.db").encode(["one"], "passage")
    assert other.asked == ["one"]


@pytest.mark.parametrize("kind", ["no database", "a folder", "cut vectors"])
def test_a_broken_file_costs_only_time(minilm: MiniLM, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "v.db"
    if kind == "no database":
        path.write_bytes(b"not a database at all" * 100)
    elif kind == "a folder":
        path.mkdir()
    else:
        Cached(minilm, path).encode(["one"], "passage")
        with sqlite3.connect(path) as database:
            database.execute("update vector set content = x'00'")
    counting = Counting(minilm)
    cached = Cached(counting, path)
    for _ in range(2):
        assert cached.encode(["one"], "passage").shape == (1, 384)
    assert counting.asked[0] == "one"
