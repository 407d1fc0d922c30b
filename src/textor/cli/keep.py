"""Values that come of actions, for a person at a terminal: named, and written into a folder."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from textor.errors import UseError


def told(value: dict[str, Any]) -> str:
    """A value of a plan's line in words: "sales (image/png, 23 kB)"."""
    size: int = value["size"]
    shown = f"{size} bytes" if size < 1000 else f"{round(size / 1000):,} kB"
    return f"{value['name'] or value['kind']} ({value['media_type']}, {shown})"


def keep(folder: Path, value: dict[str, Any], content: bytes) -> Path:
    """Write a value into `folder`, which is made; no file that is there is replaced by another.
    Raises `UseError`."""
    ending = mimetypes.guess_extension(value["media_type"]) or ".bin"
    name = value["name"] or value["kind"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            path = folder / f"{name}{'' if number == 1 else f'-{number}'}{ending}"
            try:
                with path.open("xb") as file:
                    file.write(content)
                return path
            except FileExistsError:
                if path.is_file() and path.read_bytes() == content:
                    return path
                number += 1
    except OSError as error:
        raise UseError(f"{folder} cannot be written to: {error.strerror}.", "Give another folder.") from None
