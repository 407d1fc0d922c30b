"""The token: who holds it is the person whom this Textor serves.

One per database, kept beside it, so that the tabs that are open outlive the server.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from textor.errors import UseError

NAME = "token"


def load_token(folder: Path) -> str:
    """The token in `folder`, made when there is none. Only its owner can read the file."""
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii") as file:
            if os.name == "posix":
                os.fchmod(file.fileno(), 0o600)
            token = file.read().strip()
            if len(token) < 32:
                token = secrets.token_urlsafe(32)
                file.seek(0)
                file.truncate()
                file.write(token + "\n")
            return token
    except (OSError, UnicodeDecodeError) as error:
        raise UseError(
            f"The token file {path} cannot be used: {error}.", "Delete it, or choose another data folder."
        ) from None
