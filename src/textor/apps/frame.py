"""The frame of an app's page: the head, the bar on top, the kept documents, and what is the app's own.

An app's folder holds `main.html`, and where it has more, `top.html` (in the bar, before the buttons
that all apps have), `aside.html` (below the documents), scripts and styles, which are loaded. An app
without a folder gets its fields, each with a label. One that wants it all its own way has a whole
`index.html` instead.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from textor.apps.sdk import App

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="/static/app.css">
<script type="module" src="/static/live.js"></script>
{head}
</head>
<body>
<header class="top">
<h1>{icon}{title}</h1>
{top}
</header>
{body}
</body>
</html>
"""
SPLIT = """<div class="split">
<nav class="aside" aria-label="{documents}">
<h2>{documents}</h2>
<ul data-documents></ul>
{aside}
</nav>
{main}
</div>"""
UNDO = '<button data-undo class="quiet">Undo the AI</button>'
NEW = "<button data-new>New</button>"
SAVE = (
    '<button data-save="picture.svg">Save SVG</button>\n'
    '<button data-save="picture.png" class="primary">Save PNG</button>'
)


def framed(app: App[Any]) -> str:
    """The page as HTML."""
    main = _part(app, "main") or _fields(app)
    buttons = [UNDO, NEW if app.documents else "", SAVE if app.draw else ""]
    # What is its own stands where a person looks first: the title left of the buttons, the rest right.
    own = _part(app, "top")
    top = [own, *buttons] if app.draw else [*buttons, own]
    if app.documents:
        documents = escape(f"{app.title}s")
        main = SPLIT.format(documents=documents, aside=_part(app, "aside"), main=main)
    return PAGE.format(
        title=escape(app.title),
        head="\n".join(_head(app)),
        icon='<img src="/icon.svg" alt="">' if _has(app, "icon.svg") else "",
        top="\n".join(filter(None, top)),
        body=main,
    )


def _head(app: App[Any]) -> list[str]:
    files = sorted(path.name for path in app.page.iterdir()) if app.page else []
    found = ['<link rel="icon" href="/icon.svg">'] if "icon.svg" in files else []
    found += [f'<link rel="stylesheet" href="/{name}">' for name in files if name.endswith(".css")]
    found += [f'<script type="module" src="/{name}"></script>' for name in files if name.endswith(".js")]
    return found


def _part(app: App[Any], name: str) -> str:
    """The text of one part of the page; "" where the app has none."""
    return (app.page / f"{name}.html").read_text("utf-8") if app.page and _has(app, f"{name}.html") else ""


def _has(app: App[Any], name: str) -> bool:
    return app.page is not None and Path(app.page, name).is_file()


def _fields(app: App[Any]) -> str:
    """The fields of the state, and the picture where the app draws one."""
    state = msgspec.to_builtins(app.state)
    fields = [_field(name, value) for name, value in state.items()]
    picture = ['<img class="picture" data-picture alt="The picture of this document">'] if app.draw else []
    return "\n".join(['<main class="main"><div class="sheet">', *picture, *fields, "</div></main>"])


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
