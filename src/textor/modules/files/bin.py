"""Removing to the bin of the desktop (freedesktop.org Trash specification 1.0), not for good."""

from __future__ import annotations

import errno
import os
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import quote


def remove(path: Path, root: Path) -> Path:
    """Move `path` to the home bin, or to one in `root` where that is on another disk; returns where
    it is now. Raises `OSError`."""
    try:
        return _into(_home_bin(), path)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EACCES, errno.EROFS, errno.EPERM):
            raise
    return _into(root / f".Trash-{os.getuid()}", path)


def _home_bin() -> Path:
    if sys.platform == "darwin":
        return Path.home() / ".Trash"
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "Trash"


def _into(folder: Path, path: Path) -> Path:
    if sys.platform == "darwin" and folder.name == ".Trash":
        folder.mkdir(mode=0o700, exist_ok=True)
        target = _free(folder, path.name)
        path.rename(target)
        return target
    files, info = folder / "files", folder / "info"
    for part in (files, info):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = _free(files, path.name)
    note = info / f"{target.name}.trashinfo"
    when = datetime.now().isoformat(timespec="seconds")
    note.write_text(f"[Trash Info]\nPath={quote(str(path))}\nDeletionDate={when}\n", "utf-8")
    try:
        path.rename(target)
    except OSError:
        note.unlink()
        raise
    return target


def _free(folder: Path, name: str) -> Path:
    target, number = folder / name, 2
    while os.path.lexists(target):
        target = folder / f"{Path(name).stem}.{number}{Path(name).suffix}"
        number += 1
    return target
