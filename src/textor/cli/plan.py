"""`textor plan`: a request becomes a list of actions of your apps, which you see before it runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textor.cli import DONE, FAILED, INTERRUPTED
from textor.cli.parser import Commands
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.broker.broker import Broker
    from textor.broker.plans import Plans
    from textor.cli.terminal import Terminal

EPILOG = """\
On a terminal the list is shown and you are asked. Elsewhere it is printed, and --yes runs it; what
would be asked about (sending, say) is then denied. The first Ctrl-C stops behind the line that
runs, the second ends that too. Exit codes: 0 done, 1 something was not done,
130 interrupted.
"""
MOST_LINES, MOST_TEXT = 20, 1_500  #: of an outcome that is shown
MARKS = {"match": "=", "weak": "~", "ambiguous": "?", "fail": "x", "note": " "}
STYLES = {"done": "good", "failed": "bad", "denied": "bad", "unknown": "warn", "cancelled": "warn"}
QUESTION = "Run it? [y]es, [n]o, [e]dit, or the number of a line to say what it means: "


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("plan", help="drive your apps", description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "text", nargs="+", metavar="REQUEST", help="what the apps shall do; - reads it from stdin"
    )
    parser.add_argument("--model", metavar="ID", help="the model, as provider:name (see `textor models`)")
    parser.add_argument(
        "--profile", metavar="NAME", help="the apps to use (default: those of the active profile)"
    )
    parser.add_argument("--edit", action="store_true", help="edit the list before it runs")
    parser.add_argument("--yes", action="store_true", help="run it without asking")
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="write the pictures and files that come of it there"
    )
    parser.add_argument("--json", action="store_true", help="print the plan as one JSON object")
    parser.set_defaults(command=main)


def main(args: argparse.Namespace) -> int:
    return asyncio.run(_plan(args))


async def _plan(args: argparse.Namespace) -> int:
    from textor.assembly import open_machine
    from textor.broker.view import plan_json
    from textor.cli.opening import configuration
    from textor.cli.run import task
    from textor.cli.terminal import Terminal

    config = configuration(models__default=args.model)
    request, attended = task(args.text), sys.stdin.isatty()
    terminal = Terminal()
    async with open_machine(config) as machine:
        plans = machine.broker.plans
        id = await plans.create(
            request, workspace=Path.cwd(), profile=args.profile, model=args.model or "", attended=attended
        )
        draft = await plans.written(id)
        if draft.status == "failed":
            terminal.say(f"textor: There is no plan: {draft.detail}", "bad")
            return FAILED
        if not attended:
            await plans.clear_up(id)
        if args.edit:
            await plans.edit(id, await asyncio.to_thread(edited, (await plans.draft(id)).text))
        wanted = args.yes or (attended and await _agreed(plans, id, terminal))
        if wanted:
            await _run(machine.broker, id, terminal, args.save)
        plan = await plan_json(plans, id)
    return report(plan, terminal, ran=wanted, json=args.json)


async def _agreed(plans: Plans, id: str, terminal: Terminal) -> bool:
    """Show the list and ask until there is a yes or a no."""
    from textor.broker.view import plan_json
    from textor.cli.attend import read_line

    while True:
        plan = await plan_json(plans, id)
        terminal.say(table(plan))
        print(QUESTION, end="", file=terminal.err, flush=True)
        line = ((await read_line()) or "n").strip().lower()
        if line in ("y", "yes"):
            return True
        if line in ("n", "no"):
            return False
        if line in ("e", "edit"):
            await plans.edit(id, await asyncio.to_thread(edited, plan["text"]))
        elif line.isdecimal() and 1 <= int(line) <= len(plan["lines"]):
            await _choose(plans, id, plan["lines"][int(line) - 1], terminal)


async def _choose(plans: Plans, id: str, line: dict[str, Any], terminal: Terminal) -> None:
    """Ask what a line means."""
    from textor.cli.attend import read_line

    for number, each in enumerate(line["candidates"], 1):
        terminal.say(f"  {number}. {each['phrase']}  {each['score']:.2f}  {each['objection']}")
    print("Which one? (or a new text for the line): ", end="", file=terminal.err, flush=True)
    told = ((await read_line()) or "").strip()
    if told.isdecimal() and 1 <= int(told) <= len(line["candidates"]):
        await plans.choose(id, line["id"], line["candidates"][int(told) - 1]["capability"])
    elif told:
        await plans.edit_line(id, line["id"], told)


async def _run(broker: Broker, id: str, terminal: Terminal, save: Path | None) -> None:
    """Run all; each line's end is told as it comes, and what waits at the gate is asked."""
    from textor.cli.interrupts import interrupts

    plans = broker.plans
    await plans.run(id)
    over = asyncio.create_task(plans.finished(id))
    stop, kill = partial(plans.stop, id), partial(plans.stop, id, now=True)
    watching = asyncio.create_task(interrupts(terminal, stop, kill))
    try:
        await _tell_until(over, broker, id, terminal, save)
    finally:
        watching.cancel()
        await asyncio.wait([watching])


async def _tell_until(
    over: asyncio.Task[None], broker: Broker, id: str, terminal: Terminal, save: Path | None
) -> None:
    from textor.broker.view import plan_json

    plans = broker.plans
    told: set[str] = set()
    while True:
        plan = await plan_json(plans, id)
        for line in plan["lines"]:
            state = line["run"]["state"]
            if state in STYLES and line["id"] not in told:
                told.add(line["id"])
                text = shortened(line["run"]["text"].strip())
                terminal.say(f"{state:9} {line['text']}" + (f"\n{text}" if text else ""), STYLES[state])
                await _tell_more(broker, id, line["run"], terminal, save)
            elif state == "asked":
                await _answer(plans, id, line, terminal)
        if over.done():
            return
        changed = asyncio.create_task(plans.wait(id, plan["seq"]))
        await asyncio.wait([over, changed], return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()


def shortened(text: str) -> str:
    """What came of a line, as much of it as is read beside the other lines."""
    lines = text.splitlines()
    head = "\n".join(lines[:MOST_LINES])[:MOST_TEXT]
    return head if len(head) >= len(text) else f"{head} …"


async def _tell_more(
    broker: Broker, id: str, run: dict[str, Any], terminal: Terminal, save: Path | None
) -> None:
    """The window that a line opened, and the pictures and files that came of it."""
    from textor.cli.keep import keep, told

    if record := broker.apps.book.records.get(run["window"]):
        terminal.say(f"Its window: {broker.apps.address(record)}")
    for value in run["values"]:
        if save is None:
            terminal.say(f"With it: {told(value)}; --save FOLDER would keep it.")
        else:
            _, content = await broker.plans.content(id, value["handle"])
            path = await asyncio.to_thread(keep, save, value, content)
            terminal.say(f"With it: {told(value)}, saved as {path}.")


async def _answer(plans: Plans, id: str, line: dict[str, Any], terminal: Terminal) -> None:
    from textor.cli.attend import read_line

    terminal.say(f"{line['text']}\nThis waits for you: {line['run']['reason']}.", "bold")
    print("Allow it? [y]es, [n]o: ", end="", file=terminal.err, flush=True)
    allow = ((await read_line()) or "n").strip().lower() in ("y", "yes")
    try:
        await plans.answer(id, line["id"], allow)
    except UseError:
        pass  # somebody else was quicker


def table(plan: dict[str, Any]) -> str:
    """The lines with what they mean: `=` certain, `~` weak, `?` ambiguous, `x` none."""
    from textor.cli.terminal import columns

    rows = []
    for number, line in enumerate(plan["lines"], 1):
        mark = "=" if line["ready"] else MARKS[line["state"]]
        meant = line["capability"] or line["fault"]
        rows.append((f"{number}.", mark, line["text"], f"-> {meant}" if meant else ""))
    return columns(rows) or "The list is empty."


def edited(text: str) -> str:
    """The text as a person's editor leaves it. Raises `UseError` when there is none or it fails."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if os.name == "nt" else "vi")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.txt"
        path.write_text(text + "\n", "utf-8")
        try:
            status = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except OSError as error:
            raise UseError(
                f"The editor {editor!r} cannot be started: {error.strerror}.", "Set EDITOR."
            ) from None
        if status:
            raise UseError(f"The editor {editor!r} ended with status {status}; nothing was changed.")
        return path.read_text("utf-8")


def report(plan: dict[str, Any], terminal: Terminal, *, ran: bool, json: bool) -> int:
    """The plan or what came of it on stdout; the exit code."""
    if json:
        import json as jsonlib

        print(jsonlib.dumps(plan, ensure_ascii=False), file=terminal.out, flush=True)
    elif not ran:
        terminal.reply(table(plan))
    if ran and plan["halted"]:
        terminal.say(f"textor: It stopped: {plan['halted']}", "bad")
    if ran:
        from textor.broker.plans import STOPPED

        if plan["halted"] == STOPPED:
            return INTERRUPTED
        left = [
            x for x in plan["lines"] if x["state"] != "note" and not x["skip"] and x["run"]["state"] != "done"
        ]
        return FAILED if left else DONE
    return DONE
