"""Drawing a chart as SVG. Own code: axes with round numbers, columns, bars, lines and pies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 520
COLOURS = ("#2a6b5a", "#d08a2e", "#2f5f93", "#a3443a", "#7b5ea7", "#5f8f3e", "#c06c9a", "#5a6b73")
INK, SOFT, LINE = "#24231f", "#6a675f", "#dcd8cf"
FONT = "DejaVu Sans, Segoe UI, Helvetica, Arial, sans-serif"
SMALL, NORMAL = 13, 15
NARROW = 0.6  #: mean width of a character, in its size


class Series(Protocol):
    name: str
    values: list[float | None]


class Chart(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def x_label(self) -> str: ...
    @property
    def y_label(self) -> str: ...
    @property
    def labels(self) -> Sequence[str]: ...
    @property
    def series(self) -> Sequence[Series]: ...


def draw(chart: Chart) -> str:
    """The chart, 860 x 520 units, on white."""
    parts = [_text(WIDTH / 2, 34, chart.title, size=20, weight=600, width=WIDTH - 40)]
    if not any(v is not None for s in chart.series for v in s.values):
        parts.append(_text(WIDTH / 2, HEIGHT / 2, "No data yet", colour=SOFT))
    elif chart.kind == "pie":
        parts += _pie(chart)
    elif chart.kind == "bar":
        parts += _bars(chart)
    else:
        parts += _columns(chart)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
    name = escape(_plain(chart.title) or "Chart", {'"': "&quot;"})
    paper = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return f'{head} role="img" aria-label="{name}" font-family="{FONT}">{paper}{"".join(parts)}</svg>'


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers that cover low to high, about `count` of them; 0 is among them."""
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1e-299:  # steps would be no numbers any more
        high = low + 1
    rough = high / count - low / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def shown(value: float) -> str:
    """A number for the eye: 4,600 and 0.25 and 1e+12."""
    if value == 0:
        return "0"
    if abs(value) >= 1e10 or abs(value) < 1e-4:
        return f"{value:.3g}"
    return (
        f"{value:,.0f}" if value == int(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    )


class _Frame:
    """The field between the axes, and the scale of the values along it."""

    def __init__(self, chart: Chart, left: float, bottom: float, horizontal: bool = False) -> None:
        legend = 26 if len(chart.series) > 1 else 0
        self.top = 56.0 + legend
        self.left, self.right, self.bottom = left, WIDTH - 34.0, HEIGHT - bottom
        values = [v for s in chart.series for v in s.values if v is not None]
        self.ticks = ticks(min(values), max(values))
        self.low, self.span = self.ticks[0], self.ticks[-1] - self.ticks[0]
        self.horizontal = horizontal

    def at(self, value: float) -> float:
        share = (value - self.low) / self.span
        if self.horizontal:
            return self.left + share * (self.right - self.left)
        return self.bottom - share * (self.bottom - self.top)


def _columns(chart: Chart) -> list[str]:
    """Columns, or lines: labels below, values at the left."""
    room = _label_room(chart)
    values = [v for s in chart.series for v in s.values if v is not None]
    widest = max(len(shown(t)) for t in ticks(min(values), max(values)))
    frame = _Frame(chart, 26 + widest * SMALL * NARROW + (24 if chart.y_label else 0), room)
    parts = _legend(chart)
    for tick in frame.ticks:
        y = frame.at(tick)
        parts.append(_line(frame.left, y, frame.right, y, SOFT if tick == 0 else LINE))
        parts.append(_text(frame.left - 8, y + 4, shown(tick), size=SMALL, anchor="end", colour=SOFT))
    slot = (frame.right - frame.left) / len(chart.labels)
    parts += _labels_below(chart, frame, slot)
    parts += _lines(chart, frame, slot) if chart.kind == "line" else _boxes(chart, frame, slot)
    parts.append(_text((frame.left + frame.right) / 2, HEIGHT - 14, chart.x_label, colour=SOFT))
    x, y = 22, (frame.top + frame.bottom) / 2
    parts.append(_text(x, y, chart.y_label, colour=SOFT, turn=-90))
    return parts


def _boxes(chart: Chart, frame: _Frame, slot: float) -> list[str]:
    parts: list[str] = []
    wide = slot * 0.72 / len(chart.series)
    for n, series in enumerate(chart.series):
        for i, value in enumerate(series.values):
            if value is None:
                continue
            x = frame.left + slot * (i + 0.14) + wide * n
            y, zero = frame.at(value), frame.at(0)
            parts.append(_rect(x, min(y, zero), wide * 0.96, abs(y - zero), _colour(n)))
            if wide >= len(shown(value)) * SMALL * NARROW:
                above = y - 6 if value >= 0 else y + 16
                parts.append(_text(x + wide / 2, above, shown(value), size=SMALL))
    return parts


def _lines(chart: Chart, frame: _Frame, slot: float) -> list[str]:
    parts: list[str] = []
    for n, series in enumerate(chart.series):
        run: list[str] = []
        for i, value in enumerate([*series.values, None]):
            if value is None:
                if len(run) > 1:
                    style = f'fill="none" stroke="{_colour(n)}" stroke-width="2.5" stroke-linejoin="round"'
                    parts.append(f'<polyline points="{" ".join(run)}" {style}/>')
                run = []
                continue
            x, y = frame.left + slot * (i + 0.5), frame.at(value)
            run.append(f"{x:.1f},{y:.1f}")
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{_colour(n)}"/>')
    return parts


def _bars(chart: Chart) -> list[str]:
    """Bars: labels at the left, values below."""
    longest = min(28, max(len(label) for label in chart.labels))
    side = 24 if chart.x_label else 0
    frame = _Frame(chart, 24 + longest * SMALL * NARROW + side, 62 if chart.y_label else 42, horizontal=True)
    parts = _legend(chart)
    for tick in frame.ticks:
        x = frame.at(tick)
        parts.append(_line(x, frame.top, x, frame.bottom, SOFT if tick == 0 else LINE))
        parts.append(_text(x, frame.bottom + 18, shown(tick), size=SMALL, colour=SOFT))
    slot = (frame.bottom - frame.top) / len(chart.labels)
    wide = slot * 0.72 / len(chart.series)
    every = max(1, math.ceil(SMALL / slot))
    for i, label in enumerate(chart.labels):
        if i % every == 0:
            y = frame.top + slot * (i + 0.5) + 4
            parts.append(_text(frame.left - 8, y, _cut(label, 28), size=SMALL, anchor="end"))
        for n, series in enumerate(chart.series):
            value = series.values[i]
            if value is None:
                continue
            x, zero, y = frame.at(value), frame.at(0), frame.top + slot * (i + 0.14) + wide * n
            parts.append(_rect(min(x, zero), y, abs(x - zero), wide * 0.96, _colour(n)))
            if wide >= SMALL:
                room = len(shown(value)) * SMALL * NARROW + 8
                inside = x + room > frame.right if value >= 0 else x - room < frame.left
                outward = (value >= 0) is not inside
                place, anchor = (x + 6, "start") if outward else (x - 6, "end")
                colour = "#ffffff" if inside else INK
                parts.append(_text(place, y + wide / 2 + 4, shown(value), SMALL, anchor, colour))
    parts.append(_text((frame.left + frame.right) / 2, HEIGHT - 14, chart.y_label, colour=SOFT))
    parts.append(_text(20, (frame.top + frame.bottom) / 2, chart.x_label, colour=SOFT, turn=-90))
    return parts


def _pie(chart: Chart) -> list[str]:
    """The first series as shares of a circle, with a list of what they are."""
    pairs = [(label, v) for label, v in zip(chart.labels, chart.series[0].values, strict=True) if v]
    if any(v < 0 for _, v in pairs) or not pairs:
        return [_text(WIDTH / 2, HEIGHT / 2, "A pie shows positive numbers only", colour=SOFT)]
    total, radius, x, y = sum(v for _, v in pairs), 185.0, 250.0, 290.0
    parts: list[str] = []
    angle = -math.pi / 2
    gap = min(30.0, 400.0 / len(pairs))
    for n, (label, value) in enumerate(pairs):
        share = value / total
        parts.append(_slice(x, y, radius, angle, share, _colour(n)))
        angle += share * 2 * math.pi
        row = 290 - gap * (len(pairs) - 1) / 2 + gap * n
        if gap >= SMALL:
            parts.append(_rect(500, row - 11, 14, 14, _colour(n)))
            told = f"{_cut(label, 24)}  {shown(value)}  ({share:.1%})"
            parts.append(_text(524, row + 1, told, size=SMALL, anchor="start"))
    return parts


def _slice(x: float, y: float, radius: float, angle: float, share: float, colour: str) -> str:
    if share > 0.99999:
        return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>'
    end = angle + share * 2 * math.pi
    x1, y1 = x + radius * math.cos(angle), y + radius * math.sin(angle)
    x2, y2 = x + radius * math.cos(end), y + radius * math.sin(end)
    arc = f"A{radius} {radius} 0 {int(share > 0.5)} 1 {x2:.2f} {y2:.2f}"
    return f'<path d="M{x} {y}L{x1:.2f} {y1:.2f}{arc}Z" fill="{colour}" stroke="#fff" stroke-width="1.5"/>'


# -- parts -----------------------------------------------------------------------------------


def _label_room(chart: Chart) -> float:
    """Units below the axis: labels that do not fit side by side are turned."""
    room = 62.0 if chart.x_label else 42.0
    if _is_turned(chart):
        room += min(22, max(len(label) for label in chart.labels)) * SMALL * NARROW * 0.72
    return room


def _is_turned(chart: Chart) -> bool:
    slot = (WIDTH - 110) / len(chart.labels)
    return max(len(label) for label in chart.labels) * SMALL * NARROW > slot - 6


def _labels_below(chart: Chart, frame: _Frame, slot: float) -> list[str]:
    turned = _is_turned(chart)
    every = max(1, math.ceil((SMALL + 4) / slot)) if turned else 1
    parts: list[str] = []
    for i, label in enumerate(chart.labels):
        if i % every:
            continue
        x = frame.left + slot * (i + 0.5)
        if turned:
            parts.append(_text(x + 4, frame.bottom + 16, _cut(label, 22), SMALL, "end", turn=-45))
        else:
            parts.append(_text(x, frame.bottom + 18, label, size=SMALL))
    return parts


def _legend(chart: Chart) -> list[str]:
    if len(chart.series) < 2:
        return []
    names = [_cut(s.name or f"Series {n}", 24) for n, s in enumerate(chart.series, 1)]
    widths = [len(name) * SMALL * NARROW + 40 for name in names]
    x = max(20.0, (WIDTH - sum(widths)) / 2)
    parts: list[str] = []
    for n, (name, wide) in enumerate(zip(names, widths, strict=True)):
        parts.append(_rect(x, 52, 14, 14, _colour(n)))
        parts.append(_text(x + 20, 64, name, size=SMALL, anchor="start"))
        x += wide
    return parts


def _colour(n: int) -> str:
    return COLOURS[n % len(COLOURS)]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _plain(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(c for c in text if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="2" fill="{colour}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    size: float = NORMAL,
    anchor: str = "middle",
    colour: str = INK,
    *,
    weight: int = 400,
    turn: float = 0,
    width: float = 0,
) -> str:
    """One line of text; with `width` it is cut to fit."""
    if not text:
        return ""
    text = _cut(text, int(width / (size * NARROW))) if width else text
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    style = f'font-size="{size}" font-weight="{weight}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}{turned}>{escape(_plain(text))}</text>'
