"""Embedders: `MiniLM` on this machine, `RemoteEmbedder` on any server that speaks OpenAI's
`/v1/embeddings`, and `Cached`, which keeps the vectors of either.

All implement `textor.embedding.Embedder`. numpy and onnxruntime are imported when first used.
"""

from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textor import weights
from textor.embedding import Role
from textor.errors import ModelError
from textor.memory import embedder_fetch
from textor.memory.wordpiece import WordPiece

if TYPE_CHECKING:
    from textor.embedding import Vectors

#: Texts that go through the model, or into a request, together.
BATCH = 32
#: Seconds for one request.
TIMEOUT = 60.0


class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights, on one thread: about 6 ms of CPU for a line, 384 numbers.

    A text counts with its first 256 word pieces. `load` is done by the first `encode`.
    """

    model_id = "all-MiniLM-L6-v2.int8"
    dim = 384

    def __init__(self, data: Path | None = None) -> None:
        """`data` is the folder in which `models/` is."""
        self._data = data
        self._lock = threading.Lock()
        self._loaded: tuple[WordPiece, Any] | None = None

    @property
    def fetched(self) -> bool:
        """Whether its files are there, so that `encode` needs no network."""
        wanted = (embedder_fetch.MODEL, embedder_fetch.VOCABULARY)
        return all(weights.found(each, self._data) for each in wanted)

    def fetch(self, progress: weights.Progress = lambda text: None) -> None:
        """Fetch what is missing (105 MB over the network, 23 on disk). Raises as `weights.fetch`."""
        for wanted in (embedder_fetch.MODEL, embedder_fetch.VOCABULARY):
            weights.fetch(wanted, self._data, progress)

    def load(self) -> tuple[WordPiece, Any]:
        """The tokenizer and the session of onnxruntime. Raises `ModelError` when a file is missing:
        it is never fetched in the middle of a turn."""
        with self._lock:
            if self._loaded is None:
                model, vocabulary = self._file(embedder_fetch.MODEL), self._file(embedder_fetch.VOCABULARY)
                self._loaded = WordPiece(vocabulary), _session(model)
            return self._loaded

    def _file(self, wanted: weights.WeightFile) -> Path:
        path = weights.found(wanted, self._data)
        if path is None:
            raise ModelError(
                f"{wanted.file} is not in {weights.models_folder(self._data)}.",
                f"`python -m {wanted.module}` fetches it.",
                fault="refused",
            )
        return path

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        import numpy as np

        tokenizer, session = self.load()
        ids = [tokenizer.ids(text) for text in texts]
        vectors = np.empty((len(texts), self.dim), np.float32)
        # By length: what is padded is computed as well.
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            vectors[rows] = _pooled(session, [ids[at] for at in rows])
        return vectors


def _session(path: Path) -> Any:
    os.environ.setdefault("ORT_LOGGING_LEVEL", "3")
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            "The embedding model needs the package onnxruntime, which is not installed here.",
            "Install it with `pip install onnxruntime`, or name a server with an embedding model.",
            fault="refused",
        ) from error
    options = onnxruntime.SessionOptions()
    # One text is too small to share out, and threads that wait for work burn the processor.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common class for its own
        raise ModelError(
            f"The embedding model {path} cannot be loaded: {str(error).splitlines()[0]}.",
            "Delete it and run `python -m textor.memory.embedder_fetch`.",
            fault="refused",
        ) from error


def _pooled(session: Any, ids: Sequence[Sequence[int]]) -> Vectors:
    """The mean over the word pieces, at length 1."""
    import numpy as np

    longest = max(map(len, ids))
    pieces = np.zeros((len(ids), longest), np.int64)
    mask = np.zeros_like(pieces)
    for row, own in enumerate(ids):
        pieces[row, : len(own)] = own
        mask[row, : len(own)] = 1
    given = {"input_ids": pieces, "attention_mask": mask, "token_type_ids": np.zeros_like(pieces)}
    hidden = session.run(None, given)[0]
    return _unit((hidden * mask[..., None]).sum(axis=1))


def _unit(vectors: Any) -> Vectors:
    import numpy as np

    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(length == 0, 1, length)).astype(np.float32)
    return unit


class RemoteEmbedder:
    """A model behind `base_url`/embeddings in OpenAI's form; `base_url` ends with ".../v1".

    `dim` is learnt from the first answer if it is not told. `prefixes` go before the texts of a
    role, for models that were trained so (say, {"query": "query: ", "passage": "passage: "}).
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str = "",
        *,
        dim: int = 0,
        prefixes: dict[Role, str] | None = None,
    ) -> None:
        self._url = base_url.rstrip("/") + "/embeddings"
        self._model = model
        self._api_key = api_key
        self._dim = dim
        self._prefixes: dict[Role, str] = prefixes or {}

    @property
    def model_id(self) -> str:
        return self._model

    @property
    def dim(self) -> int:
        return self._dim or self.encode([" "], "query").shape[1]

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        import numpy as np

        prefix = self._prefixes.get(role, "")
        rows: list[Any] = []
        for start in range(0, len(texts), BATCH):
            # Some servers refuse an empty text.
            rows += self._ask([prefix + text or " " for text in texts[start : start + BATCH]])
        if len({len(row) for row in rows} | ({self._dim} if self._dim else set())) > 1:
            raise self._fault("it gave vectors of different lengths")
        if not rows:
            return np.zeros((0, self._dim), np.float32)
        self._dim = len(rows[0])
        try:
            return _unit(np.array(rows, np.float64))
        except (TypeError, ValueError) as error:
            raise self._fault("it gave vectors that are no lists of numbers") from error

    def _ask(self, texts: list[str]) -> list[Any]:
        headers = {"Content-Type": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                data = json.load(answer)["data"]
            # The order of the answer is not promised; the index is.
            rows = {row["index"]: row["embedding"] for row in data}
            return [rows[at] for at in range(len(texts))]
        except urllib.error.HTTPError as error:
            said = error.read(300).decode("utf-8", "replace").strip()
            raise self._fault(f"status {error.code}: {said}", error.code) from error
        except OSError as error:
            raise self._fault(str(getattr(error, "reason", error))) from error
        except (ValueError, KeyError, TypeError) as error:
            raise self._fault("what came is no list of embeddings") from error

    def _fault(self, why: str, status: int | None = None) -> ModelError:
        fault = "auth" if status in (401, 403) else "rate" if status == 429 else "refused"
        if status is None or status >= 500:
            fault = "server"
        return ModelError(
            f"No embeddings from {self._url} (model {self._model}): {why}.",
            "Check the address, the key and the model's name.",
            fault=fault,  # type: ignore[arg-type]
            status=status,
        )
