"""The trial of a version: a nested instance of it, driven from outside through its command line.

    python -m textor.supervisor.trial PYTHON --home BUILD --image IMAGE --place FOLDER

FOLDER holds `state`, a copy of the data folder. What runs here is the supervisor's own code; of the
version under trial nothing is imported, and it runs shut in (see `rooms`). It must list the sessions
of the copied state, do a task over a scripted model so that the files are right, deny what its policy
denies, tell what it did, go through old sessions again, and serve its page. Prints one line of JSON;
exits with 0 when all passed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from textor.capabilities.doors import Door
from textor.capabilities.processes import Ended, Reason
from textor.errors import CapabilityError, JournalError
from textor.supervisor.rooms import MOST_WRITTEN, Candidate, Room, find_room
from textor.testing import Call, Reply, ScriptedServer
from textor.testing.server import Item, Request

#: Seconds that one command of the version under trial may take.
PATIENCE = 60
#: So many of the last sessions are gone through again.
SESSIONS = 3
TEXT = 'A trial: ünïcode, "quotes", <tags> & a line.\nAnd another.'

#: Starts the version's server and asks it for its page for some seconds.
SERVES = """
import json, subprocess, sys, time, urllib.request as web
argv = [sys.executable, "-P", "-m", "textor", "serve", "--json", "--no-browser", "--port", "0"]
server = subprocess.Popen(argv, stdout=subprocess.PIPE)
try:
    told = json.loads(server.stdout.readline() or "{}")
    if "url" not in told:
        sys.exit(f"its server told no address and ended with {server.wait(10)}")
    page = told["url"].partition("#")[0]
    for _ in range(15):
        web.urlopen(page, timeout=10).read()
        time.sleep(0.2)
        if server.poll() is not None:
            sys.exit(f"its server ended with {server.returncode}")
except (OSError, ValueError) as error:
    try:
        sys.exit(f"its server ended with {server.wait(1)}")
    except subprocess.TimeoutExpired:
        sys.exit(f"its page cannot be had: {error}")
finally:
    server.kill()
"""

_STOPPED: dict[Reason, str] = {
    "full": "did not stop writing output",
    "memory": "used too much memory",
    "processes": "started too many processes",
    "cancelled": f"wrote more than {MOST_WRITTEN >> 20} MB",
}


class TrialFault(Exception):
    """What a version did wrong, in a sentence."""


@dataclass(frozen=True)
class Verdict:
    """The faults of a version, in sentences, and where it was tried."""

    faults: list[str]
    where: str


class Trial:
    """One version in one room, over the copy of the state that lies there."""

    def __init__(self, room: Room, patience: float = PATIENCE) -> None:
        self._room = room
        self._patience = patience
        self._sessions: list[str] = []
        place = room.place
        self.env = {
            "HOME": str(place / "home"),
            "TEXTOR_CONFIG": str(place / "home" / "config.toml"),
            "TEXTOR_DATA": str(place / "state"),
            "XDG_STATE_HOME": str(place / "home" / "state"),
        }

    async def faults(self) -> list[str]:
        """What is wrong with the version; what comes after a fault would only fail for the same
        reason, so it is one at the most."""
        # before anything of it ran: afterwards a link could lie there that leads out of the copy
        self._sessions = await _sessions(self._room.place / "state" / "journal.db")
        for name, check in self._checks():
            try:
                await check()
            except TrialFault as fault:
                return [f"{name}: {fault}"]
        return []

    def _checks(self) -> Iterator[tuple[str, Callable[[], Awaitable[None]]]]:
        yield "it starts", self._starts
        yield "it reads the state", self._reads
        yield "it does a task", self._works
        yield "its gate denies", self._denies
        yield "it goes through old sessions again", self._replays
        yield "it serves its page", self._serves

    async def _starts(self) -> None:
        await self._good("--version")

    async def _reads(self) -> None:
        told = await self._good("sessions", "list")
        missing = [id for id in self._sessions if id not in told]
        if missing:
            raise TrialFault(f"it does not list the session {missing[0]}")

    async def _works(self) -> None:
        def script(request: Request) -> Item:
            if not _acted(request):
                return Reply("I write.", calls=(Call("files_write", {"path": "trial.txt", "text": TEXT}),))
            return "It is written."

        told = await self._with_model(script, "run", "--json", "--yes", "write the file")
        if told.get("reply") != "It is written." or told.get("reason") != "replied":
            raise TrialFault(f"its turn ended with {told}"[:500])
        if _text_of(self._room.work / "trial.txt") != TEXT:
            raise TrialFault("it did not write the file as it was told")
        shown = await self._good("sessions", "show", str(told.get("session")))
        if "files.write" not in shown or "It is written." not in shown:
            raise TrialFault("it does not tell what it did")

    async def _denies(self) -> None:
        def script(request: Request) -> Item:
            if not _acted(request):
                return Reply(calls=(Call("files_write", {"path": "denied.txt", "text": "x"}),))
            return "So be it."

        await self._with_model(script, "run", "--json", "write the file")
        if _lies(self._room.work / "denied.txt"):
            raise TrialFault("it wrote a file that nobody allowed")

    async def _replays(self) -> None:
        for id in self._sessions[:SESSIONS]:
            done = await self._run("sessions", "replay", id)
            if done.exit_status not in (0, 1) or b"Traceback" in done.errors:
                raise TrialFault(f"it cannot go through session {id}: {_last(done)}")

    async def _serves(self) -> None:
        done = await self._seen("serve", self._room.program(SERVES, self.env, self._patience))
        if done.exit_status:
            raise TrialFault(_last(done))

    # -- how it is driven ------------------------------------------------------------------

    async def _with_model(self, script: Callable[[Request], Item], *arguments: str) -> dict[str, object]:
        with self._room.reaching(server := ScriptedServer(script)) as (address, door):
            told = await self._good(
                *arguments,
                env={
                    "TEXTOR_MODEL": "trial:scripted",
                    "TEXTOR_PROVIDERS_TRIAL_BASE_URL": address,
                    "TEXTOR_PROVIDERS_TRIAL_CONTEXT_WINDOW": "32000",
                },
                door=door,
            )
            if not server.requests:
                raise TrialFault("it did not ask its model")
        try:
            found = json.loads(told)
        except ValueError:
            raise TrialFault(f"it printed no JSON: {told[:200]!r}") from None
        return found if isinstance(found, dict) else {}

    async def _good(
        self, *arguments: str, env: dict[str, str] | None = None, door: Door | None = None
    ) -> str:
        done = await self._run(*arguments, env=env, door=door)
        if done.exit_status:
            raise TrialFault(f"`textor {arguments[0]}` ended with {done.exit_status}: {_last(done)}")
        return done.output.decode("utf-8", "replace")

    async def _run(
        self, *arguments: str, env: dict[str, str] | None = None, door: Door | None = None
    ) -> Ended:
        work = self._room.textor(arguments, {**self.env, **(env or {})}, self._patience, door)
        return await self._seen(arguments[0], work)

    async def _seen(self, command: str, work: Awaitable[Ended]) -> Ended:
        """A program that came to its own end."""
        try:
            done = await work
        except CapabilityError as error:
            raise TrialFault(f"`textor {command}` could not be run: {error}") from None
        if done.reason == "timeout":
            raise TrialFault(f"`textor {command}` did not end within {self._patience:g} s")
        if done.reason != "exit":
            raise TrialFault(f"`textor {command}` {_STOPPED[done.reason]}")
        return done


async def _sessions(path: Path) -> list[str]:
    """The sessions of the copy, the last used first, as this program knows them."""
    from textor.journal.sqlite import SqliteJournal

    journal = SqliteJournal(path)
    try:
        return [info.id for info in await journal.sessions()]
    finally:
        await journal.close()


def _text_of(path: Path) -> str | None:
    """The text of a plain file; None for anything else, which is not even opened to the end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return os.read(handle, len(TEXT.encode()) + 1).decode("utf-8", "replace")
    finally:
        os.close(handle)


def _lies(path: Path) -> bool:
    return os.path.lexists(path)


def _acted(request: Request) -> bool:
    """Whether the result of an action stands in the prompt."""
    return any(message["role"] == "tool" for message in request.messages)


def _last(done: Ended) -> str:
    told = done.errors.decode("utf-8", "replace").strip().splitlines()
    return " ".join(told[-2:])[-400:]


async def trial(candidate: Candidate, place: Path, patience: float = PATIENCE) -> Verdict:
    """Try a version on the copy of the state that lies in `place`."""
    for name in ("state", "work", "home"):
        (place / name).mkdir(exist_ok=True)
    room = await find_room(candidate, place)
    try:
        return Verdict(await Trial(room, patience).faults(), room.where)
    except JournalError as error:
        return Verdict([f"the copy of the state cannot be read: {error}"], room.where)


def main() -> int:
    parser = argparse.ArgumentParser(prog="textor.supervisor.trial", description=__doc__)
    parser.add_argument("python", type=Path, metavar="PYTHON", help="the interpreter of the version")
    parser.add_argument("--home", type=Path, required=True, metavar="BUILD", help="the folder of its build")
    parser.add_argument("--image", default="", metavar="IMAGE", help="its image; none by default")
    parser.add_argument("--place", type=Path, required=True, metavar="FOLDER", help="what it may see")
    parser.add_argument("--patience", type=float, default=PATIENCE, metavar="SECONDS")
    args = parser.parse_args()
    verdict = asyncio.run(trial(Candidate(args.python, args.home, args.image), args.place, args.patience))
    print(json.dumps({"faults": verdict.faults, "where": verdict.where}))
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
