"""The picture of a document: for the page, and two actions that an app which draws can offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from textor.apps.action import Picture, Result
from textor.apps.files import file_name, save_path, to_png
from textor.apps.store import Refused, write_atomically

if TYPE_CHECKING:
    from textor.apps.sdk import App

KINDS = {"svg": "image/svg+xml", "png": "image/png"}


def picture_of(app: App[Any], ending: Literal["svg", "png"]) -> Picture:
    """The picture of the open document, under a name made of its title. Raises `Refused` (404) when
    the app draws none."""
    if app.draw is None:
        raise Refused(f"{app.title} draws no picture.", status=404)
    svg = app.draw(app.state)
    title = app.documents(app.state) if app.documents else app.title
    content = to_png(svg) if ending == "png" else svg.encode()
    return Picture(content, KINDS[ending], file_name(title, ending))


def picture_actions(app: App[Any], examples: Sequence[str] = ()) -> None:
    """Have an app offer `save … as []` and `show …`. `examples` are further ways to say the first."""

    def save(name: str) -> Result:
        path = save_path(name, ("png", "svg"))
        made = picture_of(app, "svg" if path.suffix.lower() == ".svg" else "png")
        write_atomically(path, made.content)
        told = Picture(made.content, made.type, path.name)
        return Result(f"Saved as {path.name}.", {"path": str(path)}, told)

    def picture() -> Picture:
        return picture_of(app, "png")

    noun = app.title.lower()
    save.__doc__ = f"save the {noun} as a picture, PNG or SVG by the ending of the name"
    picture.__doc__ = f"the {noun} as a picture"
    app.action(
        f"save {app.name} as []",
        effects=["write"],
        returns="image",
        repeat="idempotent",
        examples=examples,
    )(save)
    app.action(f"show {app.name}", method="GET")(picture)
