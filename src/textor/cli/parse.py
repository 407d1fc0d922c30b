"""`textor parse`: what the interpreter makes of a text that a model wrote. Nothing is run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from textor.cli import DONE
from textor.cli.parser import Commands

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textor.dialects.port import ParseEvent, Parser

EPILOG = """\
The output is one object: `prose`, `reply` (where the dialect names the answer), `actions` (with
`capability`, `arguments`, `fault`, `text`, `line`, `column`), `near_misses` (with `message`, `text`,
`line`, `column`), `variables`, `thinks` and `done`. Lines and columns count from 1.
"""


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "parse", help="read a model's text with a dialect", description=__doc__, epilog=EPILOG
    )
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the text (default: stdin)")
    parser.add_argument(
        "--dialect", required=True, metavar="NAME", help="tools, script, xml, step or plan; two with a comma"
    )
    parser.add_argument(
        "--capabilities", metavar="FILE.json", help="a list of capabilities (default: those of Textor)"
    )
    parser.add_argument("--chunk", type=int, metavar="N", help="feed it in pieces of N characters")
    parser.add_argument(
        "--finish",
        default="stop",
        choices=("stop", "length", "cut"),
        help="how the text ended (default: stop); after the others an open action was cut short",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    from textor.cli.inputs import catalogue, text_of
    from textor.dialects.foreign import watched
    from textor.errors import UseError
    from textor.values import clean_text

    if args.chunk is not None and args.chunk < 1:
        raise UseError(f"--chunk is {args.chunk}, and must be 1 or more.")
    named = _dialect(args.dialect)
    offered = catalogue(args.capabilities)
    text = clean_text(text_of(args.file))
    parser = watched(named.name, named.parser(offered), offered)
    events = list(_fed(parser, text, args.chunk or len(text) or 1, args.finish))
    found = summary(events, done=parser.done)
    print(_json(found) if args.json else _told(found))
    return DONE


def _dialect(names: str) -> Any:
    from textor.dialects import dialect
    from textor.dialects.mixed import mixed

    parts = [dialect(name.strip(), native=False) for name in names.split(",")]
    return mixed(parts) if len(parts) > 1 else parts[0]


def _fed(parser: Parser, text: str, size: int, finish: str) -> Iterable[ParseEvent]:
    for start in range(0, len(text), size):
        yield from parser.feed(text[start : start + size])
        if parser.done:
            finish = "stopped"
            break
    yield from parser.close(finish)


def summary(events: Iterable[ParseEvent], *, done: bool) -> dict[str, Any]:
    """The events of a parser, put together."""
    from textor.dialects.port import (
        ActionRead,
        Defined,
        FreeLine,
        NearMiss,
        Prose,
        Reply,
        Retracted,
        ThinkOn,
    )

    prose: list[str] = []
    replies: list[str] = []
    actions: list[dict[str, Any]] = []
    misses: list[dict[str, Any]] = []
    variables: dict[str, str] = {}
    thinks = False
    for event in events:
        match event:
            case Prose():
                prose.append(event.text)
            case ThinkOn():
                thinks = True
                prose.append(event.text)
            case Reply():
                replies.append(event.text)
            case ActionRead():
                actions.append(_action(event))
            case FreeLine():
                free = "No action is written like this; `textor match` compiles it by its meaning."
                misses.append(
                    {"message": free, "text": event.text, "line": event.line, "column": event.column}
                )
            case NearMiss():
                misses.append(
                    {
                        "message": event.message,
                        "text": event.text,
                        "line": event.line,
                        "column": event.column,
                    }
                )
            case Retracted():
                actions.clear()
            case Defined():
                variables[event.name] = event.text
    return {
        "prose": "".join(prose),
        "reply": "".join(replies) if replies else None,
        "actions": actions,
        "near_misses": misses,
        "variables": variables,
        "thinks": thinks,
        "done": done,
    }


def _action(event: Any) -> dict[str, Any]:
    action = event.action
    return {
        "capability": action.capability,
        "arguments": action.arguments,
        "fault": action.fault or None,
        "text": action.text,
        "line": event.line,
        "column": event.column,
    }


def _json(found: dict[str, Any]) -> str:
    import json

    return json.dumps(found, ensure_ascii=False)


def _told(found: dict[str, Any]) -> str:
    """For a person: actions and near misses with their places, then the rest."""
    import json

    from textor.cli.terminal import clean

    lines = []
    for action in found["actions"]:
        given = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in action["arguments"].items())
        fault = f"  ! {action['fault']}" if action["fault"] else ""
        lines.append(f"{action['line']}:{action['column']}  {action['capability']}({given}){fault}")
    lines += [
        f"{miss['line']}:{miss['column']}  no action: {miss['message']}" for miss in found["near_misses"]
    ]
    lines += [
        f"${name} = {json.dumps(text, ensure_ascii=False)}" for name, text in found["variables"].items()
    ]
    if found["reply"] is not None:
        lines.append(f"reply: {found['reply']}")
    if found["prose"].strip():
        lines.append(f"prose: {found['prose'].strip()}")
    return clean("\n".join(lines)) if lines else "Nothing was written."
