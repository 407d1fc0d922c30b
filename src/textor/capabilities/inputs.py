"""Files that a person or a program hands to an agent with a message, as values."""

from __future__ import annotations

import mimetypes
import re
from pathlib import Path

from textor.capabilities.files import image_type, is_binary
from textor.errors import UseError
from textor.values import Blobs, Kind, Value, blob_value, text_value

#: The largest file that goes along with a message, in bytes. A larger one is named by its path.
LARGEST = 20_000_000


def value_of_file(path: Path, blobs: Blobs) -> Value:
    """The file as a value, its kind by its first bytes, then by its name.

    It is named after the file, so that an agent can write `$name`. Raises `UseError` for what is no
    file, cannot be read, or is larger than `LARGEST`.
    """
    try:
        if not path.is_file():
            raise UseError(f"{path} is no file.", "Name a file that is there.")
        if path.stat().st_size > LARGEST:
            raise UseError(
                f"{path} is larger than {LARGEST // 1_000_000} MB.", "Give its path in the message."
            )
        content = path.read_bytes()
    except OSError as error:
        raise UseError(f"{path} cannot be read: {error.strerror}.") from None
    name = re.sub(r"\W+", "_", path.stem, flags=re.ASCII).strip("_") or "file"
    name = name if not name[0].isdigit() else f"file_{name}"
    head = content[:65536]
    guessed = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if image := image_type(head):
        return blob_value(content, "image", image, blobs, name=name)
    if guessed.startswith(("audio/", "video/")):
        kind: Kind = "audio" if guessed.startswith("audio/") else "video"
        return blob_value(content, kind, guessed, blobs, name=name)
    if not is_binary(head):
        try:
            return text_value(content.decode("utf-8-sig"), blobs, name=name)
        except UnicodeDecodeError:
            pass  # in another encoding: handed over as it is
    return blob_value(content, "file", guessed, blobs, name=name)
