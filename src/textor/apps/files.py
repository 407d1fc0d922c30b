"""Where apps keep and exchange files, and an SVG as PNG.

What an app saves for the person lies in one folder, under a plain name. So an action can only
write there, and another app finds it by that name ("attach file [population.png]").
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from textor.apps.store import Refused
from textor.errors import UseError
from textor.near import did_you_mean, nearest

LONGEST = 120  #: characters of a file's name
PNG_SCALE = 2  #: pixels of a PNG per unit of the SVG
SANS = {"darwin": "Helvetica", "win32": "Segoe UI"}  #: what an SVG's "sans-serif" is drawn with

_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # names that Windows keeps


def data_folder() -> Path:
    """Where Textor keeps its data: TEXTOR_DATA, or the platform's folder."""
    if named := os.environ.get("TEXTOR_DATA"):
        return Path(named).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("textor", appauthor=False)


def files_folder() -> Path:
    """The folder of what apps have saved."""
    return data_folder() / "apps" / "files"


def file_name(title: str, ending: str) -> str:
    """A plain name made from a title: "Sales: 2026" -> "Sales 2026.png"."""
    plain = "".join(c if c.isalnum() or c in " -_.()" else " " for c in title)
    plain = " ".join(plain.split()).strip(". ")[:LONGEST] or "untitled"
    plain = plain.encode("ascii", "ignore").decode().strip() or "untitled"
    return plain if plain.lower().endswith(f".{ending}") else f"{plain}.{ending}"


def save_path(name: str, endings: tuple[str, ...]) -> Path:
    """Where a file of this name is saved. Without a known ending it gets the first of `endings`.

    Raises `Refused` for anything that is not a plain name.
    """
    name = name.strip()
    if Path(name).suffix.lower().lstrip(".") not in endings:
        name = f"{name}.{endings[0]}"
    if (
        any(c in '/\\:*?"<>|' or ord(c) < 32 for c in name)
        or name.startswith(".")
        or len(name) > LONGEST
        or _RESERVED.fullmatch(name)
    ):
        raise Refused(f"{name[:80]!r} is no plain file name.", f"Give one such as picture.{endings[0]}.")
    return files_folder() / name


def find_file(name: str) -> Path:
    """A file that an app saved, by its name, or any file of the person by its whole path.

    Raises `Refused` when there is none.
    """
    given = Path(name.strip()).expanduser()
    path = given if given.is_absolute() else files_folder() / given.name
    if path.is_file():
        return path
    folder = files_folder()
    known = [p.name for p in folder.iterdir() if p.is_file()] if folder.is_dir() else []
    raise Refused(f"There is no file {name[:200]!r}.", did_you_mean(nearest(given.name, known)), status=404)


def to_png(svg: str) -> bytes:
    """The picture as PNG, two pixels for each unit. Raises `UseError` where the library is missing."""
    try:
        import resvg_py
    except ImportError:
        raise UseError("A PNG needs resvg.", "Install it with: pip install 'textor[apps]'") from None
    family = SANS.get(sys.platform, "DejaVu Sans")
    return resvg_py.svg_to_bytes(svg_string=svg, zoom=PNG_SCALE, font_family=family, sans_serif_family=family)
