"""The folders that may be touched, and the way from what was written to a real place inside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


class Refused(Exception):
    """What cannot be done; the text says why, for a model."""


class Roots:
    """Folders with all below them. Relative paths are in the first one."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(Path(os.path.realpath(folder)) for folder in folders)

    def place(self, path: str) -> Path:
        """The real place of `path`, every symbolic link followed. Raises `Refused` outside."""
        return self._inside(path, self._real(self.folders[0] / os.path.expanduser(path)))  # noqa: PTH111

    def entry(self, path: str) -> Path:
        """The same for what has that name itself: a symbolic link is not followed, but the folders
        on the way to it are. For moving and removing."""
        written = Path(os.path.normpath(self.folders[0] / os.path.expanduser(path)))  # noqa: PTH111
        real = self._real(written.parent) / written.name
        if real in self.folders:
            raise Refused(f"{path} is a root itself.")
        return self._inside(path, real)

    def name(self, place: Path) -> str:
        """A place as it is shown: relative to the first root where it is in it."""
        root = self.folders[0]
        return str(place.relative_to(root)) if place.is_relative_to(root) else str(place)

    def _real(self, path: Path) -> Path:
        try:
            return Path(os.path.realpath(path))
        except (OSError, ValueError) as error:
            raise Refused(f"{str(path)!r:.200} is no path: {error}.") from None

    def _inside(self, path: str, real: Path) -> Path:
        if any(real.is_relative_to(root) for root in self.folders):
            return real
        allowed = ", ".join(str(root) for root in self.folders)
        raise Refused(f"{path} is outside the folders that may be touched: {allowed}.")
