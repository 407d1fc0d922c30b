"""`textor run`: one task; progress on stderr, the reply on stdout."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textor.cli import DONE, FAILED, INTERRUPTED, LIMIT
from textor.cli.parser import Commands, add_choices
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.cli.terminal import Terminal
    from textor.events import TurnEnded
    from textor.kernel.state import State

EPILOG = """\
Exit codes: 0 done, 1 failed, 2 wrong use, 3 a limit was reached, 130 interrupted. Where stdin is
no terminal nobody can be asked, and what would be asked about is denied unless --yes allows it.

--stdio keeps an agent (`sia`, if none is named) at work on a pipe: what comes on stdin is for it to
read, what it writes comes on stdout. It waits without a model until something changes, and ends
when stdin has ended and nothing is left to do, or in order (with 143) by SIGTERM.
"""


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("run", help="do one task", description=__doc__, epilog=EPILOG)
    parser.add_argument("text", nargs="*", metavar="TASK", help="what to do; - reads it from stdin")
    add_choices(parser)
    parser.add_argument(
        "--file",
        metavar="FILE",
        action="append",
        default=[],
        dest="files",
        help="hand this file over with the task: an image is shown, all are variables; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the reply")
    parser.add_argument("--stdio", action="store_true", help="keep an agent at work on stdin and stdout")
    parser.add_argument("--session", metavar="ID", help="with --stdio: go on with this session")
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    import asyncio

    if args.stdio:
        from textor.cli.pipe import run

        if args.files:
            raise UseError("--file goes with a task; --stdio has none.")
        return asyncio.run(run(args))
    if args.session:
        raise UseError("--session belongs to --stdio.", "`textor sessions resume` goes on with any other.")
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    from textor.assembly import open_machine
    from textor.capabilities.inputs import value_of_file
    from textor.cli.attend import Attendant
    from textor.cli.opening import configuration, workspace
    from textor.cli.terminal import Terminal

    config = configuration(models__default=args.model)
    folder, text, attended = workspace(args), task(args.text), sys.stdin.isatty()
    if args.review and not attended:
        raise UseError("--review needs a person, and stdin is no terminal.")
    terminal = Terminal()
    async with open_machine(config) as machine:
        values = [value_of_file(Path(file), machine.journal.blobs) for file in args.files]
        session = await machine.create(
            text,
            workspace=folder,
            agent=args.agent or "",
            model=args.model or "",
            policy="yes" if args.yes else config.gate.policy,
            attended=attended,
            review=args.review,
            values=values,
        )
        attendant = Attendant(session, terminal, attended=attended)
        ended = await attendant.until_end()
        state = await session.state()
    report(terminal, ended, state, session.id, json=args.json)
    return INTERRUPTED if attendant.interrupted and ended.reason == "stopped" else code_of(ended)


def task(words: list[str]) -> str:
    """The text of the task. Raises `UseError` when there is none."""
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise UseError("There is no task.", 'Say what to do, as in: textor run "list the files here".')
    return text


def code_of(ended: TurnEnded) -> int:
    codes = {"replied": DONE, "asked": DONE, "limit": LIMIT, "stopped": INTERRUPTED}
    return codes.get(ended.reason, FAILED)


def report(terminal: Terminal, ended: TurnEnded, state: State, session: str, *, json: bool) -> None:
    """The reply, or what was achieved, on stdout; why it ended otherwise on stderr."""
    if json:
        import json as jsonlib

        print(
            jsonlib.dumps(summary(ended, state, session), ensure_ascii=False), file=terminal.out, flush=True
        )
    elif ended.text:
        terminal.reply(ended.text)
    if terminal.err.isatty() and state.usage.total:
        from textor.cli.reach import used_line

        terminal.say(used_line(state), "dim")
    if ended.reason not in ("replied", "asked"):
        terminal.say(f"textor: {why(ended)}", "bad")
    elif ended.detail:
        terminal.say(f"textor: {why(ended)}", "warn")
    others = [agent.id for agent in state.agents.values() if agent.turn is not None and agent.id != "main"]
    if others:
        verb = "is" if len(others) == 1 else "are"
        terminal.say(f"textor: {', '.join(others)} {verb} still at work.", "warn")
    if others or ended.reason in ("limit", "stopped"):
        terminal.say(f"textor: `textor sessions resume {session}` goes on with it.", "dim")


def why(ended: TurnEnded) -> str:
    """A sentence for an end that is no reply, or for a reply of which something must be known."""
    detail = ended.detail.rstrip(".")
    match ended.reason:
        case "replied" | "asked":
            return f"Note: {detail}."
        case "limit":
            return f"A limit was reached: {detail}."
        case "stopped":
            return f"Stopped: {detail}." if detail else "Stopped."
        case _:
            return f"It failed: {detail}."


def summary(ended: TurnEnded, state: State, session: str) -> dict[str, Any]:
    """What `--json` prints. `cost` in US dollars, null where a price is not known."""
    return {
        "reply": ended.text,
        "reason": ended.reason,
        "detail": ended.detail,
        "iterations": sum(agent.iterations for agent in state.agents.values()),
        "tokens": state.usage.total,
        "cost": state.usage.cost,
        "session": session,
    }
