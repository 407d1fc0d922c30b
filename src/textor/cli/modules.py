"""`textor modules`: tools of other programs, served over MCP, that agents may use."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from textor.cli import DONE, FAILED
from textor.cli.parser import Commands
from textor.errors import TextorError, UseError

if TYPE_CHECKING:
    from textor.capabilities.modules.module import Module
    from textor.capabilities.modules.questions import Answer, Question
    from textor.capabilities.modules.spec import Entry, ModuleSpec
    from textor.capabilities.port import Scope
    from textor.journal.port import Journal

ADDING = """\
examples:
  textor modules add clock -- uvx mcp-server-time
  textor modules add wiki --address https://example.org/mcp --header 'Authorization: Bearer ${WIKI_TOKEN}'
  textor modules add terminal -- textor:shell
  textor modules add documents -- textor:files --root ~/Documents
"""


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "modules", help="list, add and test modules (MCP servers)", description=__doc__
    )
    parser.set_defaults(command=_async(listed))
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    actions.add_parser("list", help="all modules (default)").set_defaults(command=_async(listed))
    _add_add(actions)
    for name, command, help in (
        ("show", show, "how a module is reached, and its tools"),
        ("test", test, "start a module, list its tools, see that it answers; logs in where it must"),
        ("accept", _accept, "see what a module says otherwise of its tools than before, and take it"),
        ("remove", remove, "forget a module, or one implementation of it"),
        ("logs", logs, "what a module said last"),
        ("use", use, "choose among several implementations of a module"),
    ):
        action = actions.add_parser(name, help=help, description=help)
        action.add_argument("name", metavar="MODULE")
        action.set_defaults(command=_async(command))
        if name in ("remove", "use"):
            action.add_argument(
                "implementation", metavar="IMPLEMENTATION", nargs="?" if name == "remove" else None
            )
        if name == "accept":
            action.add_argument("--yes", action="store_true", help="take it without a question")
        if name == "logs":
            action.add_argument("-n", type=int, default=50, metavar="LINES", help="how many (default: 50)")


def _add_add(actions: Commands[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "add",
        help="add a module: its command after --, or its address",
        usage="textor modules add MODULE [options] [-- COMMAND …]",
        epilog=ADDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="MODULE", help="its tools are called MODULE.tool")
    parser.add_argument(
        "rest",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="what starts it; textor:shell and textor:files are in the box",
    )
    _add_options(parser)
    parser.set_defaults(command=_async(added), parser=parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    def text(name: str, metavar: str, help: str, default: str = "") -> None:
        parser.add_argument(name, metavar=metavar, help=help, default=default)

    def several(name: str, metavar: str, help: str) -> None:
        parser.add_argument(name, metavar=metavar, help=help, action="append", default=[])

    text("--address", "URL", "the address of a server (streamable HTTP)")
    text("--implementation", "NAME", "add a further implementation of the module")
    several("--env", "NAME=TEXT", "a variable for it; ${OTHER} is one of yours")
    several("--header", "NAME:TEXT", "the same for requests to its address")
    text("--cwd", "FOLDER", "its working folder (default: this one; in a container, that of its image)")
    text("--place", "PLACE", "local (default) or container:IMAGE", "local")
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="believe what it says of its tools; its results are not outside data",
    )
    several("--idempotent", "TOOL", "a tool that may be repeated (name or pattern)")
    several("--effects", "TOOL=EFFECT,…", "what a tool does, where you know better")
    parser.add_argument("--start", type=float, metavar="SECONDS", help="for its start (default: 30)")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="for a call (default: 600)")
    parser.add_argument(
        "--idle", metavar="SECONDS", help="ended after so long without a call, or never (default: 900)"
    )
    text("--protocol", "VERSION", "auto (default), legacy or 2026-07-28", "auto")
    parser.add_argument("--login", action="store_true", help="its address wants a login (OAuth)")
    text("--client-id", "ID", "for the login, where you were given one")
    text("--client-secret", "TEXT", "the same; best ${NAME}, a variable of yours")


def _split(args: argparse.Namespace) -> list[str]:
    """The command; what stands before `--` are further options, which are read into `args`."""
    rest: list[str] = args.rest
    options_only = bool(rest) and rest[0].startswith("-")
    place = rest.index("--") if "--" in rest else len(rest) * options_only
    # a parser of its own: argparse takes no options between two positional arguments
    options = argparse.ArgumentParser(prog="textor modules add", usage=args.parser.usage, add_help=False)
    _add_options(options)
    options.parse_args(rest[:place], args)
    words = rest[place:]
    return words[1:] if words[:1] == ["--"] else words


def _async(command: Any) -> Any:
    def run(args: argparse.Namespace) -> int:
        import asyncio

        code: int = asyncio.run(command(args))
        return code

    return run


# -- adding --------------------------------------------------------------------------------


async def added(args: argparse.Namespace) -> int:
    from textor.capabilities.modules.spec import FIRST, Entry, checked, write_entry

    spec = checked(_spec(args, _split(args)))
    async with open_journal() as (journal, entries):
        known = entries.get(args.name)
        implementation = args.implementation or FIRST
        if known is not None and implementation in known.implementations:
            raise UseError(
                f"There is a module {args.name!r} already"
                + (f" with an implementation {implementation!r}." if args.implementation else "."),
                "Remove it first, or add a further one with --implementation NAME.",
            )
        others = known.implementations if known is not None else {}
        use = known.use if known is not None else implementation
        await write_entry(journal, args.name, Entry(use, {**others, implementation: spec}))
    print(f"{args.name} is added. `textor modules test {args.name}` tries it.")
    if use != implementation:
        print(f"{use} stays in use; `textor modules use {args.name} {implementation}` changes that.")
    return DONE


def _spec(args: argparse.Namespace, words: list[str]) -> ModuleSpec:
    from textor.capabilities.modules.spec import BOX, Login, ModuleSpec

    box = bool(words) and words[0] in BOX
    given: dict[str, Any] = {
        key: getattr(args, key) for key in ("start", "deadline") if getattr(args, key) is not None
    }
    if args.idle is not None:
        given["idle"] = None if args.idle == "never" else _number(args.idle)
    elif box:
        given["idle"] = None  # sessions must not end because nobody called
    return ModuleSpec(
        args.name,
        tuple(words),
        args.address,
        env=_pairs(args.env, "=", "--env"),
        headers=_pairs(args.header, ":", "--header"),
        cwd=_folder_for(args, words),
        placement=args.place,
        trusted=args.trusted or box,
        idempotent=tuple(args.idempotent),
        effects={tool: _effects(text) for tool, text in _pairs(args.effects, "=", "--effects").items()},
        protocol=args.protocol,
        login=Login(client_id=args.client_id, client_secret=args.client_secret) if args.login else None,
        **given,
    )


def _folder_for(args: argparse.Namespace, words: list[str]) -> str:
    """Where it starts: always where it was added, so that "server.py" means the same file from
    everywhere, and no workspace can put another program in its place."""
    from pathlib import Path

    if args.cwd:
        return str(Path(args.cwd).expanduser().resolve())
    return str(Path.cwd()) if words and args.place == "local" else ""


def _pairs(given: list[str], separator: str, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in given:
        name, found, text = pair.partition(separator)
        if not found or not name.strip():
            raise UseError(f"{option} takes NAME{separator}TEXT, not {name!r}.")
        pairs[name.strip()] = text.strip()
    return pairs


def _effects(text: str) -> Any:
    from textor.actions import EFFECTS

    effects = tuple(part.strip() for part in text.split(","))
    for effect in effects:
        if effect not in EFFECTS:
            raise UseError(f"There is no effect {effect!r}.", f"Use some of: {', '.join(EFFECTS)}.")
    return effects


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UseError(f"--idle takes seconds or `never`, not {text!r}.") from None


# -- the others ----------------------------------------------------------------------------


async def listed(args: argparse.Namespace) -> int:
    from textor.cli.terminal import columns

    async with open_journal() as (_, entries):
        rows = []
        for name, entry in entries.items():
            module = made(entry.spec)
            tools = str(len(module.tools.usable)) if module.known else "?"
            use = f"{entry.use} of {len(entry.implementations)}" if len(entry.implementations) > 1 else ""
            trusted = "yes" if entry.spec.trusted else ""
            rows.append((name, entry.spec.place, tools, trusted, use, entry.spec.target))
    if not rows:
        print("There are no modules yet. `textor modules add --help` says how to add one.")
        return DONE
    print(columns([("MODULE", "PLACE", "TOOLS", "TRUSTED", "IN USE", "TARGET"), *rows]))
    return DONE


async def show(args: argparse.Namespace) -> int:
    from textor.cli.terminal import clean

    async with open_journal() as (_, entries):
        entry = entry_of(entries, args.name)
    for name, spec in entry.implementations.items():
        mark = "in use" if name == entry.use else "not in use"
        print(f"{name} ({mark})" if len(entry.implementations) > 1 else args.name)
        for key, text in _facts(spec):
            print(f"  {key}: {clean(text)}")
    _print_tools(made(entry.spec))
    return DONE


def _facts(spec: ModuleSpec) -> list[tuple[str, str]]:
    import msgspec

    from textor.config import mask

    written = msgspec.to_builtins(spec)
    facts = [("place", spec.place)]
    for key, value in written.items():
        if key in ("name", "placement"):
            continue
        if key == "command":
            facts.append((key, shlex.join(value)))
        elif key in ("env", "headers"):
            facts += [(f"{key} {name}", text if "${" in text else "********") for name, text in value.items()]
        else:
            facts.append((key, value if isinstance(value, str) else json.dumps(mask(value))))
    return facts


def _print_tools(module: Module) -> None:
    from textor.cli.terminal import clean, columns

    if not module.known:
        print(f"Its tools are not known yet; `textor modules test {module.spec.name}` asks for them.")
        return
    rows = [
        (
            tool.capability.name,
            ", ".join(tool.capability.effects),
            tool.capability.repeat,
            _first(tool.capability.purpose),
        )
        for tool in module.tools.usable.values()
    ]
    print(columns([("TOOL", "EFFECTS", "REPEAT", "PURPOSE"), *rows]))
    for name, reason in module.tools.aside.items():
        print(clean(f"set aside: {name}: {reason}"))
    for name in module.held:
        print(clean(f"held: {name}: new, or says something else; `textor modules accept` shows it"))


def _first(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 80 else f"{line[:79]}…"


async def test(args: argparse.Namespace) -> int:
    import time

    async with open_journal() as (_, entries):
        entry = entry_of(entries, args.name)
    module = made(entry.spec, ask=_ask)
    began = time.monotonic()
    try:
        await module.ready()
        started = time.monotonic() - began
        await module.ping()
        answered = time.monotonic() - began - started
        print(
            f"{module.server or args.name} works (protocol {module.protocol}): started in {started:.1f} s, "
            f"answered in {answered * 1000:.0f} ms."
        )
        _print_tools(module)
        return DONE
    except TextorError as error:
        print(f"textor: {error}", file=sys.stderr)
        return FAILED
    finally:
        await module.close()


async def _ask(question: Question, scope: Scope | None) -> Answer:
    """A login is a page to open; nothing else can be asked in a test."""
    from textor.capabilities.modules.questions import Answer
    from textor.cli.terminal import clean

    if not question.url:
        return Answer("cancel")
    print(f"{clean(question.message)} Open this page:\n{clean(question.url)}", file=sys.stderr, flush=True)
    return Answer("accept")


async def _accept(args: argparse.Namespace) -> int:
    from textor.cli.acceptance import accept

    return await accept(args)


async def remove(args: argparse.Namespace) -> int:
    import msgspec

    from textor.capabilities.modules.spec import write_entry

    async with open_journal() as (journal, entries):
        entry = entry_of(entries, args.name)
        left = dict(entry.implementations)
        if args.implementation:
            _implementation(entry, args.name, args.implementation)
            if args.implementation == entry.use and len(left) > 1:
                raise UseError(
                    f"{args.implementation} is in use.", f"First `textor modules use {args.name} …`."
                )
            del left[args.implementation]
        if args.implementation and left:
            await write_entry(journal, args.name, msgspec.structs.replace(entry, implementations=left))
            print(f"{args.implementation} of {args.name} is removed.")
            return DONE
        await write_entry(journal, args.name, None)
    for ending in ("tools.json", "login.json", "log", "log.1"):
        (_folder() / f"{args.name}.{ending}").unlink(missing_ok=True)
    print(f"{args.name} is removed.")
    return DONE


async def logs(args: argparse.Namespace) -> int:
    from textor.capabilities.modules.log import read_log
    from textor.cli.terminal import clean

    async with open_journal() as (_, entries):
        entry_of(entries, args.name)
    lines = read_log(_folder() / f"{args.name}.log", args.n)
    print(clean("\n".join(lines)) if lines else f"{args.name} has said nothing yet.")
    return DONE


async def use(args: argparse.Namespace) -> int:
    import msgspec

    from textor.capabilities.modules.spec import write_entry

    async with open_journal() as (journal, entries):
        entry = entry_of(entries, args.name)
        _implementation(entry, args.name, args.implementation)
        await write_entry(journal, args.name, msgspec.structs.replace(entry, use=args.implementation))
    print(f"{args.name} is now served by {args.implementation}.")
    return DONE


# -- what they need ------------------------------------------------------------------------


@asynccontextmanager
async def open_journal() -> AsyncIterator[tuple[Journal, dict[str, Entry]]]:
    from textor.capabilities.modules.spec import read_entries
    from textor.cli.opening import configuration
    from textor.journal.sqlite import SqliteJournal

    journal = SqliteJournal(configuration().data / "journal.db")
    try:
        yield journal, await read_entries(journal)
    finally:
        await journal.close()


def _folder() -> Any:
    from textor.capabilities.modules.spec import folder_of
    from textor.cli.opening import configuration

    return folder_of(configuration().data)


def made(spec: ModuleSpec, ask: Any = None) -> Module:
    from textor.capabilities.modules.module import Module

    return Module(spec, _folder(), ask=ask)


def entry_of(entries: dict[str, Entry], name: str) -> Entry:
    try:
        return entries[name]
    except KeyError:
        known = ", ".join(entries) or "none yet"
        raise UseError(f"There is no module {name!r}.", f"There is: {known}.") from None


def _implementation(entry: Entry, name: str, implementation: str) -> None:
    if implementation not in entry.implementations:
        raise UseError(
            f"{name} has no implementation {implementation!r}.",
            f"It has: {', '.join(entry.implementations)}.",
        )
