"""The shapes of a drawing, and the drawing as SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

import msgspec

from textor.apps.drawing.forms import LIMIT

COLOUR = re.compile(r"#[0-9a-f]{6}|none")
FONT = "DejaVu Sans, Segoe UI, Helvetica, Arial, sans-serif"
#: Names that people use, as colours that look well on white.
NAMES = {
    "black": "#24231f", "white": "#ffffff", "red": "#c0392b", "green": "#2a7d4f", "blue": "#2f5f93",
    "yellow": "#e3b505", "orange": "#d07a1e", "purple": "#7b5ea7", "brown": "#7a5230", "grey": "#7d7a72",
    "gray": "#7d7a72", "pink": "#d46a9f", "none": "none", "transparent": "none",
}  # fmt: skip


class Shape(msgspec.Struct, kw_only=True, tag_field="kind", tag=str.lower):
    """What all shapes have. Lengths are units of the drawing; `id` is short and unique in it."""

    id: str
    stroke: str = "#24231f"
    fill: str = "none"
    thickness: float = 2

    def __post_init__(self) -> None:
        for name in ("stroke", "fill"):
            if not COLOUR.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} must be a colour such as #2a6b5a, or none")
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, float | int) and not -LIMIT <= value <= LIMIT:
                raise ValueError(f"{field} must be from -{LIMIT:,} to {LIMIT:,}")

    def move(self, x: float, y: float) -> None:
        """Move by so much."""
        raise NotImplementedError

    def svg(self) -> str:
        raise NotImplementedError

    def told(self) -> str:
        raise NotImplementedError

    def style(self) -> str:
        return f'stroke="{self.stroke}" fill="{self.fill}" stroke-width="{self.thickness:g}"'


class Line(Shape, kw_only=True):
    x1: float
    y1: float
    x2: float
    y2: float

    def move(self, x: float, y: float) -> None:
        self.x1, self.y1, self.x2, self.y2 = self.x1 + x, self.y1 + y, self.x2 + x, self.y2 + y

    def svg(self) -> str:
        ends = f'x1="{self.x1:g}" y1="{self.y1:g}" x2="{self.x2:g}" y2="{self.y2:g}"'
        return (
            f'<line {ends} stroke="{self.stroke}" stroke-width="{self.thickness:g}" stroke-linecap="round"/>'
        )

    def told(self) -> str:
        return f"{self.id}: line X1={self.x1:g}, Y1={self.y1:g}, X2={self.x2:g}, Y2={self.y2:g}"


class Rectangle(Shape, kw_only=True):
    x: float
    y: float
    width: float
    height: float

    def move(self, x: float, y: float) -> None:
        self.x, self.y = self.x + x, self.y + y

    def svg(self) -> str:
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return f"<rect {place} {self.style()}/>"

    def told(self) -> str:
        size = f"Width={self.width:g}, Height={self.height:g}"
        return f"{self.id}: rectangle X={self.x:g}, Y={self.y:g}, {size}"


class Circle(Shape, kw_only=True):
    x: float
    y: float
    radius: float

    def move(self, x: float, y: float) -> None:
        self.x, self.y = self.x + x, self.y + y

    def svg(self) -> str:
        return f'<circle cx="{self.x:g}" cy="{self.y:g}" r="{self.radius:g}" {self.style()}/>'

    def told(self) -> str:
        return f"{self.id}: circle X={self.x:g}, Y={self.y:g}, Radius={self.radius:g}"


class Text(Shape, kw_only=True):
    """`x` and `y` are the left end of its base line; `size` the height of its font."""

    x: float
    y: float
    text: str
    size: float = 20

    def move(self, x: float, y: float) -> None:
        self.x, self.y = self.x + x, self.y + y

    def svg(self) -> str:
        plain = "".join(
            c for c in self.text if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff"
        )
        place = f'x="{self.x:g}" y="{self.y:g}" font-size="{self.size:g}"'
        return f'<text {place} fill="{self.stroke}">{escape(plain)}</text>'

    def told(self) -> str:
        return f"{self.id}: text X={self.x:g}, Y={self.y:g}, Text={self.text}"


AnyShape = Line | Rectangle | Circle | Text


def draw(shapes: Sequence[AnyShape], title: str, width: float, height: float) -> str:
    """The drawing as SVG, on white."""
    name = escape("".join(c for c in title if c >= " ") or "Drawing", {'"': "&quot;"})
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{name}" font-family="{FONT}">'
    )
    paper = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    return f"{head}{paper}{''.join(shape.svg() for shape in shapes)}</svg>"


def colour(text: str) -> str | None:
    """A colour from its name or its digits; None when it is none."""
    plain = text.strip().lower()
    if re.fullmatch(r"#?[0-9a-f]{3}", plain):
        plain = "".join(c * 2 for c in plain.removeprefix("#"))
    plain = NAMES.get(plain, plain)
    plain = f"#{plain}" if re.fullmatch(r"[0-9a-f]{6}", plain) else plain
    return plain if COLOUR.fullmatch(plain) else None
