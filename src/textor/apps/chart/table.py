"""Whole tables of numbers: CSV with a row of names, or JSON, as labels and series."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import NamedTuple

from textor.apps.chart.numbers import from_json, has_decimal_comma, parse_number, parse_series
from textor.apps.store import Refused

YEAR = re.compile(r"(1[5-9]|20|21)\d\d")
Column = list[float | None]


class Table(NamedTuple):
    """`columns` by name; each has a value, or None, for every label."""

    labels: list[str]
    columns: dict[str, Column]


def parse_table(text: str) -> Table:
    """A table from CSV (a row of names, then a label and its values in each row), from JSON
    (`{"2023": {"Asia": 1}}`, a list of objects, or one series), or from one series."""
    text = text.strip().lstrip("\ufeff")
    if text[:1] in ("{", "["):
        try:
            tree = json.loads(text)
        except ValueError as error:
            raise Refused(f"The data is not JSON: {error}.") from None
        return _from_json(tree)
    if "\n" not in text:
        return joined({"": parse_series(text)})
    return _from_csv(text)


def joined(series: dict[str, list[tuple[str, float]]]) -> Table:
    """Several series over the labels of all of them, in the order in which they come."""
    labels = list(dict.fromkeys(label for pairs in series.values() for label, _ in pairs))
    return Table(
        labels, {name: [dict(pairs).get(label) for label in labels] for name, pairs in series.items()}
    )


def _from_json(tree: object) -> Table:
    if isinstance(tree, dict) and tree and all(isinstance(value, dict | list) for value in tree.values()):
        return joined({str(name): from_json(value) for name, value in tree.items()})
    rows = tree if isinstance(tree, list) else []
    if rows and all(isinstance(row, dict) and len(row) > 2 for row in rows):
        first, *names = list(rows[0])
        series = {
            name: [pair for row in rows for pair in from_json({str(row.get(first, "")): row.get(name)})]
            for name in names
        }
        return joined(series)
    return joined({"": from_json(tree)})


def _from_csv(text: str) -> Table:
    first = text.split("\n", 1)[0]
    mark = next((mark for mark in ("\t", ";", ",") if mark in first), ",")
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=mark) if any(cell.strip() for cell in row)]
    if len(rows[0]) < 2:
        raise Refused("The table has one column.", "Each row needs a label and a number.")
    if not _is_head(rows[0]):
        rows.insert(0, ["", *(f"Series {n}" if len(rows[0]) > 2 else "" for n in range(1, len(rows[0])))])
    names = [name.strip() for name in rows[0][1:]]
    if len(set(names)) != len(names):
        raise Refused("Two columns of the table have the same name.")
    decimal = mark != "," and any(has_decimal_comma(cell) for row in rows[1:] for cell in row[1:])
    columns: dict[str, Column] = {name: [] for name in names}
    for number, row in enumerate(rows[1:], 2):
        if len(row) > len(rows[0]):
            raise Refused(f"Row {number} of the table has {len(row)} cells; the first has {len(rows[0])}.")
        for name, cell in zip(names, [*row[1:], *[""] * len(names)], strict=False):
            columns[name].append(parse_number(cell, decimal) if cell.strip() else None)
    return Table([row[0].strip() for row in rows[1:]], columns)


def _is_head(row: list[str]) -> bool:
    """Whether a row holds names: words, or years behind a word or nothing."""
    years = len(row) > 2 and all(YEAR.fullmatch(cell.strip()) for cell in row[1:])
    return years or not all(_is_number(cell) for cell in row[1:])


def _is_number(cell: str) -> bool:
    try:
        parse_number(cell)
    except Refused:
        return False
    return True
