"""The chart program: what it keeps and what it can do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from textor.apps.chart.numbers import BIGGEST, parse_number, parse_series
from textor.apps.chart.svg import draw
from textor.apps.chart.table import Table, joined, parse_table
from textor.apps.pictures import picture_actions
from textor.apps.sdk import App, Refused, Result, State

MOST_LABELS, MOST_SERIES = 1000, 20
Kind = Literal["column", "line", "bar", "pie"]


class Series(msgspec.Struct):
    """One row of numbers: a value, or None, for each label of the chart."""

    name: str = ""
    values: list[float | None] = msgspec.field(default_factory=list)


class Chart(State):
    """A chart: `labels` along one axis, and for each series a value at every label."""

    kind: Kind = "column"
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    labels: list[str] = msgspec.field(default_factory=list)
    series: list[Series] = msgspec.field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.labels) > MOST_LABELS or len(self.series) > MOST_SERIES:
            raise ValueError(f"a chart has at most {MOST_LABELS} labels and {MOST_SERIES} series")
        if any(len(s.values) != len(self.labels) for s in self.series):
            raise ValueError("each series needs one value for each label")
        if any(v is not None and abs(v) > BIGGEST for s in self.series for v in s.values):
            raise ValueError("a number is too big for a chart")


app: App[Chart] = App(
    "column chart",
    Chart,
    title="Chart",
    page=Path(__file__).parent / "page",
    documents=lambda chart: chart.title or "Untitled chart",
    draw=draw,
    purpose="open an empty chart: columns, lines, bars or a pie",
)


def table() -> dict[str, list[tuple[str, float]]]:
    """The series as pairs, by name."""
    chart = app.state
    pairs = {
        s.name: [(label, v) for label, v in zip(chart.labels, s.values, strict=True) if v is not None]
        for s in chart.series
    }
    return {name: kept for name, kept in pairs.items() if kept}


def show(found: Table) -> None:
    """Put a table into the chart. Raises `Refused` for one that is too big."""
    if len(found.labels) > MOST_LABELS or len(found.columns) > MOST_SERIES:
        raise Refused(f"A chart has at most {MOST_LABELS} labels and {MOST_SERIES} series.")
    app.state.labels = found.labels
    app.state.series = [Series(name, column) for name, column in found.columns.items()]


# -- words -------------------------------------------------------------------------------------


@app.action(
    "set column chart title to []",
    route="subject",
    repeat="idempotent",
    examples=["name the chart []", "chart title []"],
)
def set_title(text: str) -> None:
    """set the title of the chart"""
    app.state.title = " ".join(text.split())


@app.action(
    "set column chart kind to []",
    route="kind",
    repeat="idempotent",
    examples=["show the chart as []", "make it a [] chart"],
)
def set_kind(kind: Kind) -> None:
    """show the data as column, line, bar or pie"""
    if kind == "pie" and any(v is not None and v < 0 for s in app.state.series for v in s.values):
        raise Refused("A pie cannot show negative numbers.", "Take column, line or bar.")
    app.state.kind = kind


@app.action(
    "set column chart axis labels to [] and []",
    route="axes",
    repeat="idempotent",
    examples=["label the axes of the chart [] and []"],
)
def set_axes(x: str, y: str = "") -> None:
    """label the axis of the names and the axis of the numbers"""
    app.state.x_label, app.state.y_label = x, y


# -- numbers -----------------------------------------------------------------------------------


@app.action(
    "add column chart series []",
    route="series",
    examples=["plot the data []", "chart the numbers []"],
)
def add_series(data: str, name: str = "") -> str:
    """add a series of numbers, such as Asia=4,600:Africa=1,300:Europe=740, or as JSON

    A series of the same name is replaced. Labels with = or : stand in quotes.
    """
    pairs = parse_series(data)
    doubles = [label for label, _ in pairs]
    if twice := next((label for label in doubles if doubles.count(label) > 1), None):
        raise Refused(f"The label {twice[:60]!r} comes twice.", "Give each its own.")
    known = table()
    name = name.strip() or ("" if not known else f"Series {len(known) + 1}")
    if "" in known and name:
        known = {key or "Series 1": value for key, value in known.items()}
    known[name] = pairs
    show(joined(known))
    return f"{len(pairs)} values: " + ", ".join(f"{label} {value:,g}" for label, value in pairs[:20])


@app.action(
    "remove column chart series []",
    route="series/remove",
    examples=["take the series [] out of the chart"],
)
def remove_series(name: str) -> None:
    """take a series out of the chart by its name"""
    left = [s for s in app.state.series if s.name.lower() != name.strip().lower()]
    if len(left) == len(app.state.series):
        names = ", ".join(s.name or "one without a name" for s in app.state.series) or "none"
        raise Refused(f"No series is called {name[:60]!r}.", f"There is {names}.", status=404)
    app.state.series = left


@app.action("set column chart data to []", route="data", repeat="idempotent")
def set_data(table: str) -> str:
    """replace all numbers of the chart by a table: CSV with a row of names, or JSON"""
    found = parse_table(table)
    show(found)
    return f"{len(found.columns)} series with {len(found.labels)} values each."


@app.action("set the table of the chart to [] and []", route="table", repeat="idempotent", hidden=True)
def set_table(names: list[str], rows: list[list[str]]) -> None:
    """what a person has typed into the table: series names, and rows of a label and its numbers"""
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    if any(len(row) != len(names) + 1 for row in kept):
        raise Refused("Each row needs a label and a cell for each series.")
    columns = [
        [parse_number(row[n]) if row[n].strip() else None for row in kept] for n in range(1, len(names) + 1)
    ]
    app.state.labels = [row[0].strip() for row in kept]
    app.state.series = [Series(name.strip(), column) for name, column in zip(names, columns, strict=True)]


@app.action("clear column chart", route="clear", repeat="idempotent")
def clear() -> None:
    """take all numbers out of the chart"""
    show(Table([], {}))


@app.action("read column chart", method="GET", route="chart")
def read() -> Result:
    """the chart's kind, title, labels and numbers"""
    lines = [f"{name or 'Values'}: " + ", ".join(f"{a} {v:,g}" for a, v in p) for name, p in table().items()]
    text = "\n".join([f"{app.state.kind} chart {app.state.title!r}", *lines])
    return Result(text, msgspec.to_builtins(app.state))


# -- pictures ----------------------------------------------------------------------------------


picture_actions(app, ["save the chart picture as []", "export the chart to []"])

app.example(
    "create a chart that shows the number of days in each month of the year",
    "start column chart application",
    "set column chart title to [Days in Each Month of the Year]",
    "add column chart series [January=31:February=28:March=31:April=30:May=31:June=30:July=31:"
    "August=31:September=30:October=31:November=30:December=31]",
)
app.example(
    "create a pie chart of the planets' sizes and save it as planets.png",
    "start column chart application",
    "set column chart title to [Planets in Our Solar System - Diameter in km]",
    "set column chart kind to [pie]",
    "add column chart series [Mercury=4879:Venus=12104:Earth=12742:Mars=6794:Jupiter=142984:"
    "Saturn=116464:Uranus=51118:Neptune=49528]",
    "save column chart as [planets.png]",
)
