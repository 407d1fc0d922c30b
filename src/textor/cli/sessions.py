"""`textor sessions`: what was done before, and going on with it."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING

from textor.cli import DONE, INTERRUPTED
from textor.cli.parser import Commands

if TYPE_CHECKING:
    from textor.cli.story import Story
    from textor.events import Event


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("sessions", help="list, show or resume sessions", description=__doc__)
    parser.set_defaults(command=listed)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    every = actions.add_parser("list", help="all sessions, the last used first (default)")
    every.add_argument("words", metavar="WORD", nargs="*", help="only those whose title has these words")
    every.set_defaults(command=listed)
    one = actions.add_parser("show", help="one session from its beginning")
    one.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    one.add_argument(
        "--json", action="store_true", help="its events, of all its agents, each as one line of JSON"
    )
    one.set_defaults(command=show)
    again = actions.add_parser("resume", help="go on with a session: finish its turn, then chat")
    again.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    again.add_argument("--model", metavar="ID", help="go on with another model, as provider:name")
    again.set_defaults(command=resume)
    other = actions.add_parser("fork", help="a new session that begins as this one, up to an iteration")
    other.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    other.add_argument("--at", metavar="N", type=int, required=True, help="as `textor iterations list` shows")
    other.add_argument("--model", metavar="ID", help="it goes on with another model, as provider:name")
    other.add_argument("--edit", metavar="FILE", help='the reply there, edited: JSON, or "-" to be shown it')
    other.set_defaults(command=lambda args: _later("fork", args))
    same = actions.add_parser(
        "replay", help="go through a session again, without a model and without effects"
    )
    same.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    same.add_argument(
        "--model",
        metavar="ID",
        help="ask this model what it would have done, in a fork where nothing is done",
    )
    same.add_argument("--at", metavar="K", type=int, help="with --model: at which iteration")
    same.set_defaults(command=lambda args: _later("replay", args))


def _later(name: str, args: argparse.Namespace) -> int:
    from textor.cli import again

    code: int = getattr(again, name)(args)
    return code


def listed(args: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_list(getattr(args, "words", [])))


def show(args: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_show(args.id, as_json=args.json))


def resume(args: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_resume(args))


def moment(seconds: float) -> str:
    """A time as the person's clock shows it."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")


async def _list(words: list[str]) -> int:
    from textor.assembly import open_machine
    from textor.cli.opening import configuration
    from textor.cli.terminal import columns

    async with open_machine(configuration(), host=False) as machine:
        found = [s for s in await machine.sessions() if all(w.lower() in s.title.lower() for w in words)]
    rows = [(s.id, moment(s.updated), s.status, s.title) for s in found]
    none = "There are no sessions with these words in their title." if words else "There are no sessions yet."
    print(columns([("SESSION", "LAST USED", "STATE", "TITLE"), *rows]) if rows else none)
    return DONE


async def _show(id: str, *, as_json: bool) -> int:
    from textor.assembly import open_machine
    from textor.cli.opening import configuration
    from textor.cli.reach import used_line
    from textor.cli.story import Story
    from textor.cli.terminal import clean
    from textor.events import to_json

    story = Story()
    async with open_machine(configuration(), host=False) as machine:
        session = await machine.session(id)
        async for event in machine.journal.read(session.id):
            if as_json:
                print(json.dumps(to_json(event), ensure_ascii=False))
                continue
            for line in told(event, story):
                print(clean(line))
        if not as_json:
            print(f"\n{used_line(await session.state())}")
    return DONE


def told(event: Event, story: Story) -> list[str]:
    """An event in the transcript of a session: what was said besides what was done."""
    from textor import events as e
    from textor.cli.run import why

    match event.body:
        case e.SessionCreated(title=title, workspace=workspace):
            return [f"{title or 'A session'}, begun {moment(event.time)} in {workspace}"]
        case e.AgentCreated(agent=agent, definition=definition, model=model):
            return [f"{agent} is {definition.type}, with {model}"]
        case e.MessagePosted(text=text, sender=sender):
            return [f"\n> {line}" if not i else f"> {line}" for i, line in enumerate(text.split("\n"))] + (
                [f"  (from {sender})"] if sender else []
            )
        case e.TurnEnded(agent="main", reason=reason, text=text):
            quiet = reason in ("replied", "asked") and not event.body.detail
            return [text] + ([] if quiet else [why(event.body)])
        case e.GenerationFinished(actions=actions, reply=reply) if actions and reply:
            return [reply, *(text for text, _ in story.tell(event))]
    return [text for text, _ in story.tell(event)]


async def _resume(args: argparse.Namespace) -> int:
    from textor.assembly import open_machine
    from textor.cli.attend import Attendant
    from textor.cli.chat import Chat
    from textor.cli.opening import configuration
    from textor.cli.run import code_of, report
    from textor.cli.terminal import Terminal

    attended = sys.stdin.isatty()
    async with open_machine(configuration()) as machine:
        session = await machine.session(args.id)
        if args.model:
            await session.change_model(args.model)
        state = await session.state()
        if state.attended != attended:
            await session.change_policy(state.policy, attended)
        if any(agent.level == "pause" for agent in state.agents.values()):  # a fork, or paused by somebody
            await session.control("run")
        if attended:
            return await Chat(machine, session).run()
        terminal = Terminal()
        main = state.agents["main"]
        if not any(agent.turn or agent.inbox for agent in state.agents.values()):
            if main.ended is not None:
                report(terminal, main.ended, state, session.id, json=False)
            return DONE
        attendant = Attendant(session, terminal, attended=False)
        ended = await attendant.until_end(after=state.seq)
        report(terminal, ended, await session.state(), session.id, json=False)
        return INTERRUPTED if attendant.interrupted else code_of(ended)
