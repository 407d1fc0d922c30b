"""The page of an app that brings none: its fields, each with a label, kept up to date."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from textor.apps.sdk import App

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="/static/app.css">
<script type="module" src="/static/live.js"></script>
</head>
<body>
<header class="top"><h1>{title}</h1></header>
<main class="sheet">
{fields}
</main>
</body>
</html>
"""


def plain_page(app: App[Any]) -> str:
    """HTML bound to the fields of the state."""
    state = msgspec.to_builtins(app.state)
    fields = "\n".join(_field(name, value) for name, value in state.items())
    return PAGE.format(title=escape(app.title), fields=fields)


def _field(name: str, value: Any) -> str:
    label = escape(name.replace("_", " ").capitalize())
    name = escape(name, quote=True)
    match value:
        case bool():
            control = f'<input type="checkbox" data-bind="{name}">'
        case int() | float():
            control = f'<input type="number" step="any" data-bind="{name}">'
        case str():
            control = f'<textarea rows="3" data-bind="{name}"></textarea>'
        case list():
            items = f'<ul data-list="{name}"><template><li data-bind="."></li></template></ul>'
            return f"<section><h2>{label}</h2>{items}</section>"
        case _:
            control = f'<output data-bind="{name}"></output>'
    return f'<label class="field"><span>{label}</span>{control}</label>'
