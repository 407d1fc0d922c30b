"""The drawing program: what it keeps and what it can do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from textor.apps.drawing.forms import parse_form
from textor.apps.drawing.shapes import NAMES, AnyShape, Circle, Line, Rectangle, Shape, Text, colour, draw
from textor.apps.pictures import picture_actions
from textor.apps.sdk import App, Refused, Result, State

WIDTH, HEIGHT = 800, 600
MOST = 5000  #: shapes of a drawing


class Drawing(State):
    """Shapes, the last one on top. The paper goes from 0, 0 at the upper left to 800, 600."""

    title: str = ""
    shapes: list[AnyShape] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.shapes) > MOST:
            raise ValueError(f"a drawing has at most {MOST} shapes")


class Tools(msgspec.Struct):
    """What this window draws with."""

    tool: Literal["select", "line", "rectangle", "circle", "text"] = "select"
    stroke: str = "#24231f"
    fill: str = "none"
    thickness: float = 2


def picture_of(drawing: Drawing) -> str:
    return draw(drawing.shapes, drawing.title, WIDTH, HEIGHT)


app: App[Drawing] = App(
    "drawing",
    Drawing,
    title="Drawing",
    page=Path(__file__).parent / "page",
    documents=lambda drawing: drawing.title or "Untitled drawing",
    window=Tools,
    draw=picture_of,
    may_edit=lambda drawing, field: field in ("title", "window"),
    purpose="open an empty drawing of 800 by 600",
)


def tools() -> Tools:
    window = app.store.window
    assert isinstance(window, Tools)
    return window


def add(shape: AnyShape) -> str:
    """Put a shape on top, in the colours of the tools."""
    shape.stroke, shape.thickness = tools().stroke, tools().thickness
    shape.fill = "none" if isinstance(shape, Line | Text) else tools().fill
    app.state.shapes.append(shape)
    return f"Added {shape.told()}."


def fresh_id(kind: str) -> str:
    """ "line3": short, so that it can be named in a line."""
    taken = {shape.id for shape in app.state.shapes}
    number = 1 + sum(shape.id.startswith(kind) for shape in app.state.shapes)
    while f"{kind}{number}" in taken:
        number += 1
    return f"{kind}{number}"


def whole(parts: dict[str, float | str], *names: str) -> list[float]:
    """The named parts of a form. Raises `Refused` for one that is missing."""
    if missing := [name for name in names if name not in parts]:
        raise Refused(f"{missing[0].upper() if len(missing[0]) < 3 else missing[0].capitalize()} is missing.")
    return [float(parts[name]) for name in names]


# -- adding ------------------------------------------------------------------------------------


@app.action(
    "add line to drawing at []",
    route="line",
    examples=["draw a line from []", "draw a line []"],
)
def add_line(at: str) -> str:
    """draw a line: X1=100, Y1=100, X2=100, Y2=300; 0, 0 is the upper left corner, 800, 600 the lower right"""
    x1, y1, x2, y2 = whole(parse_form(at, ("x1", "y1", "x2", "y2")), "x1", "y1", "x2", "y2")
    return add(Line(id=fresh_id("line"), x1=x1, y1=y1, x2=x2, y2=y2))


@app.action(
    "add text to drawing at []",
    route="text",
    examples=["write the label [] in the drawing"],
)
def add_text(at: str) -> str:
    """write a text: X=90, Y=200, Text=a; also Size=20"""
    parts = parse_form(at, ("x", "y", "size"), ("text",), {"label": "text"})
    x, y = whole(parts, "x", "y")
    if not str(parts.get("text", "")).strip():
        raise Refused("Text is missing.", "Write X=90, Y=200, Text=a.")
    size = float(parts.get("size", 20))
    if not 1 <= size <= 500:
        raise Refused("Size must be from 1 to 500.")
    return add(Text(id=fresh_id("text"), x=x, y=y, text=str(parts["text"]), size=size))


@app.action(
    "add rectangle to drawing at []",
    route="rectangle",
    examples=["draw a rectangle at []", "draw a box []", "draw a square []"],
)
def add_rectangle(at: str) -> str:
    """draw a rectangle: X=100, Y=100, Width=200, Height=80; or X1=100, Y1=100, X2=300, Y2=180"""
    if "x2" in at.lower():
        x1, y1, x2, y2 = whole(parse_form(at, ("x1", "y1", "x2", "y2")), "x1", "y1", "x2", "y2")
        x, y, width, height = min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)
    else:
        also = {"w": "width", "h": "height"}
        parts = parse_form(at, ("x", "y", "width", "height"), also=also)
        x, y, width, height = whole(parts, "x", "y", "width", "height")
    if width <= 0 or height <= 0:
        raise Refused("Width and height must be above 0.")
    return add(Rectangle(id=fresh_id("rectangle"), x=x, y=y, width=width, height=height))


@app.action(
    "add circle to drawing at []",
    route="circle",
    examples=["draw a circle at []", "draw a round []"],
)
def add_circle(at: str) -> str:
    """draw a circle around its centre: X=200, Y=200, Radius=50"""
    also = {"r": "radius", "cx": "x", "cy": "y"}
    x, y, radius = whole(parse_form(at, ("x", "y", "radius"), also=also), "x", "y", "radius")
    if radius <= 0:
        raise Refused("The radius must be above 0.")
    return add(Circle(id=fresh_id("circle"), x=x, y=y, radius=radius))


# -- changing ----------------------------------------------------------------------------------


@app.action(
    "set drawing colour to []",
    route="colour",
    repeat="idempotent",
    examples=["draw in []", "set drawing color to []"],
)
def set_colour(stroke: str, fill: str = "") -> str:
    """set the colour of what is drawn next: red, #2a6b5a; with `fill` that of its inside, or none"""
    for given, name in ((stroke, "stroke"), (fill, "fill")):
        found = colour(given) if given else None
        if given and found is None:
            raise Refused(
                f"{given[:40]!r} is no colour.", f"There are {', '.join(NAMES)}, and such as #2a6b5a."
            )
        if found:
            setattr(tools(), name, found)
    return f"The next shapes are {stroke}."


@app.action(
    "move [] in drawing to []",
    route="move",
    repeat="idempotent",
    examples=["move the shape [] to []"],
)
def move(shape: str, to: str) -> str:
    """move a shape so that it begins at a place: line1, X=100, Y=50"""
    found = find(shape)
    x, y = whole(parse_form(to, ("x", "y")), "x", "y")
    begins = (found.x1, found.y1) if isinstance(found, Line) else (found.x, found.y)
    found.move(x - begins[0], y - begins[1])
    return f"Moved {found.told()}."


@app.action(
    "delete [] from drawing",
    route="delete",
    repeat="idempotent",
    examples=["remove the shape [] from the drawing", "erase []"],
)
def delete(shape: str) -> str:
    """delete a shape by its id (line1), or a text by its words"""
    found = find(shape)
    app.state.shapes.remove(found)
    return f"Deleted {found.told()}."


@app.action("clear drawing", route="clear", repeat="idempotent", examples=["erase the whole drawing"])
def clear() -> None:
    """delete all shapes"""
    app.state.shapes = []


@app.action("set drawing title to []", route="title", repeat="idempotent", examples=["name the drawing []"])
def set_title(text: str) -> None:
    """name the drawing"""
    app.state.title = " ".join(text.split())


@app.action("read drawing", method="GET", route="drawing", examples=["list the shapes of the drawing"])
def read() -> Result:
    """all shapes with their ids"""
    lines = [shape.told() for shape in app.state.shapes]
    return Result("\n".join(lines) or "The drawing is empty.", msgspec.to_builtins(app.state))


def find(name: str) -> AnyShape:
    """The shape that is meant: its id, the words of a text, or the only one of a kind; "last" as well."""
    shapes, wanted = app.state.shapes, name.strip().lower()
    if wanted == "last" and shapes:
        return shapes[-1]
    by_id = [shape for shape in shapes if shape.id == wanted.replace(" ", "")]
    by_words = [shape for shape in shapes if isinstance(shape, Text) and shape.text.lower() == wanted]
    by_kind = [shape for shape in shapes if type(shape).__name__.lower() == wanted]
    for found in (by_id, by_words, by_kind):
        if len(found) == 1:
            return found[0]
    some = ", ".join(shape.id for shape in shapes[:20])
    raise Refused(f"No single shape is {name[:60]!r}.", f"There are {some or 'none'}.", status=404)


# -- what only the page uses ---------------------------------------------------------------------


@app.action("put a [] at [] [] [] []", route="put", hidden=True)
def put(
    kind: Literal["line", "rectangle", "circle", "text"],
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    text: str = "",
) -> str:
    """draw a shape from one point to another"""
    if kind == "text":
        if not text.strip():
            raise Refused("Text is missing.")
        return add(Text(id=fresh_id("text"), x=x1, y=y1, text=text))
    if (x1, y1) == (x2, y2):
        raise Refused("Draw from one point to another.")
    if kind == "line":
        return add(Line(id=fresh_id("line"), x1=x1, y1=y1, x2=x2, y2=y2))
    if kind == "circle":
        radius = round(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1)
        return add(Circle(id=fresh_id("circle"), x=x1, y=y1, radius=radius))
    wide, high = max(1.0, abs(x2 - x1)), max(1.0, abs(y2 - y1))
    id = fresh_id("rectangle")
    return add(Rectangle(id=id, x=min(x1, x2), y=min(y1, y2), width=wide, height=high))


@app.action("shift [] by [] []", route="shift", hidden=True)
def shift(id: str, x: float, y: float) -> None:
    """move a shape by so much"""
    found = find(id)
    found.move(x, y)


@app.action("paint [] with []", route="paint", hidden=True)
def paint(id: str, stroke: str = "", fill: str = "", thickness: float = 0, text: str = "") -> None:
    """change how a shape looks, or what a text says"""
    found: Shape = find(id)
    found.stroke = colour(stroke) or found.stroke
    if not isinstance(found, Line | Text):
        found.fill = colour(fill) or found.fill
    found.thickness = thickness or found.thickness
    if isinstance(found, Text) and text.strip():
        found.text = text


# -- pictures ----------------------------------------------------------------------------------


picture_actions(app, ["export the drawing to []"])

app.example(
    "draw a vertical line with the letter a to the left of it",
    "start drawing application",
    "add line to drawing at [X1=100, Y1=100, X2=100, Y2=300]",
    "add text to drawing at [X=70, Y=205, Text=a]",
)
app.example(
    "draw a house with a red roof and save it as house.png",
    "start drawing application",
    "set drawing title to [House]",
    "add rectangle to drawing at [X=300, Y=300, Width=200, Height=160]",
    "add rectangle to drawing at [X=380, Y=380, Width=40, Height=80]",
    "set drawing colour to [red]",
    "add line to drawing at [X1=280, Y1=300, X2=400, Y2=200]",
    "add line to drawing at [X1=400, Y1=200, X2=520, Y2=300]",
    "save drawing as [house.png]",
)
