"""The trial of a version: a nested instance of it, driven from outside through its command line.

    python -m textor.supervisor.trial PYTHON --state COPY

What runs here is the supervisor's own code; of the version under trial nothing is imported. It must
list the sessions of the copied state, do a task over a scripted model so that the files are right,
deny what its policy denies, tell what it did, and go through old sessions again. Prints one line of
JSON; exits with 0 when all passed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from textor.errors import JournalError
from textor.testing import Call, Reply, ScriptedServer
from textor.testing.server import Item, Request

#: Seconds that one command of the version under trial may take.
PATIENCE = 60
#: So many of the last sessions are gone through again.
SESSIONS = 3
TEXT = 'A trial: ünïcode, "quotes", <tags> & a line.\nAnd another.'


class TrialFault(Exception):
    """What a version did wrong, in a sentence."""


class Trial:
    """One version (`python` runs it) over one copy of the state."""

    def __init__(self, python: Path, state: Path, place: Path, patience: float = PATIENCE) -> None:
        self._python = python
        self._patience = patience
        self._folder = place / "work"
        self._folder.mkdir()
        self._config = place / "config.toml"
        self.state = state
        self.env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(place),
            "TEXTOR_CONFIG": str(self._config),
            "TEXTOR_DATA": str(state),
            "XDG_STATE_HOME": str(place / "state"),
        }

    def checks(self) -> Iterator[tuple[str, Callable[[], None]]]:
        yield "it starts", self.starts
        yield "it reads the state", self.reads
        yield "it does a task", self.works
        yield "its gate denies", self.denies
        yield "it goes through old sessions again", self.replays

    def starts(self) -> None:
        self._good("--version")

    def reads(self) -> None:
        told = self._good("sessions", "list")
        missing = [id for id in self._sessions() if id not in told]
        if missing:
            raise TrialFault(f"it does not list the session {missing[0]}")

    def works(self) -> None:
        def script(request: Request) -> Item:
            if not _acted(request):
                return Reply("I write.", calls=(Call("files_write", {"path": "trial.txt", "text": TEXT}),))
            return "It is written."

        told = self._with_model(script, "run", "--json", "--yes", "write the file")
        if told.get("reply") != "It is written." or told.get("reason") != "replied":
            raise TrialFault(f"its turn ended with {told}")
        path = self._folder / "trial.txt"
        if not path.exists() or path.read_text("utf-8") != TEXT:
            raise TrialFault("it did not write the file as it was told")
        shown = self._good("sessions", "show", str(told["session"]))
        if "files.write" not in shown or "It is written." not in shown:
            raise TrialFault("it does not tell what it did")

    def denies(self) -> None:
        def script(request: Request) -> Item:
            if not _acted(request):
                return Reply(calls=(Call("files_write", {"path": "denied.txt", "text": "x"}),))
            return "So be it."

        self._with_model(script, "run", "--json", "write the file")
        if (self._folder / "denied.txt").exists():
            raise TrialFault("it wrote a file that nobody allowed")

    def replays(self) -> None:
        for id in self._sessions()[:SESSIONS]:
            done = self._run("sessions", "replay", id)
            if done.returncode not in (0, 1) or "Traceback" in done.stderr:
                raise TrialFault(f"it cannot go through session {id}: {_last(done)}")

    # -- how it is driven ------------------------------------------------------------------

    def _with_model(self, script: Callable[[Request], Item], *arguments: str) -> dict[str, object]:
        with ScriptedServer(script) as server:
            self._config.write_text(
                f'[models]\ndefault = "trial:scripted"\n[providers.trial]\nbase_url = "{server.url}"\n'
                "context_window = 32000\n"
            )
            self._config.chmod(0o600)
            told = self._good(*arguments)
        try:
            found = json.loads(told)
        except ValueError:
            raise TrialFault(f"it printed no JSON: {told[:200]!r}") from None
        return found if isinstance(found, dict) else {}

    def _good(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            raise TrialFault(f"`textor {arguments[0]}` ended with {done.returncode}: {_last(done)}")
        return done.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._python), "-m", "textor", *arguments]
        try:
            return subprocess.run(
                command,
                env=self.env,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self._patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TrialFault(f"`textor {arguments[0]}` did not end within {self._patience:g} s") from None

    def _sessions(self) -> list[str]:
        """The sessions of the copy, the last used first, as this program knows them."""
        import asyncio

        from textor.journal.sqlite import SqliteJournal

        async def read() -> list[str]:
            journal = SqliteJournal(self.state / "journal.db")
            try:
                return [info.id for info in await journal.sessions()]
            finally:
                await journal.close()

        try:
            return asyncio.run(read())
        except JournalError as error:
            raise TrialFault(f"it left a journal that cannot be read: {error}") from None


def _acted(request: Request) -> bool:
    """Whether the result of an action stands in the prompt."""
    return any(message["role"] == "tool" for message in request.messages)


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stderr.strip().splitlines()[-2:])[-400:]


def trial(python: Path, state: Path, patience: float = PATIENCE) -> list[str]:
    """Try a version on a copy of the state; returns its faults, in sentences."""
    with tempfile.TemporaryDirectory(prefix="textor-trial-") as place:
        work = Trial(python, state, Path(place), patience)
        for name, check in work.checks():
            try:
                check()
            except TrialFault as fault:
                return [f"{name}: {fault}"]  # what comes after would only fail for the same reason
    return []


def main() -> int:
    parser = argparse.ArgumentParser(prog="textor.supervisor.trial", description=__doc__)
    parser.add_argument("python", type=Path, metavar="PYTHON", help="the interpreter of the version")
    parser.add_argument("--state", type=Path, required=True, metavar="COPY", help="a copy of the data folder")
    parser.add_argument("--patience", type=float, default=PATIENCE, metavar="SECONDS")
    args = parser.parse_args()
    faults = trial(args.python, args.state, args.patience)
    print(json.dumps({"passed": not faults, "faults": faults}))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
