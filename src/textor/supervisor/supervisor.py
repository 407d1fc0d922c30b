"""The supervisor: one version of Textor runs; another takes its place only when its trial passes.

The old version is ended when all sessions rest, with a signal that leaves it no time: containers
stay and are taken up by the next one, as after a crash, and nothing was under way. A new version is
watched for a minute; one that ends, does not come up or stops answering is replaced by the old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from textor.errors import TextorError, UseError
from textor.supervisor.handover import Handover
from textor.supervisor.rooms import Candidate
from textor.supervisor.trial import Verdict
from textor.versions import INSTALLED, State, Version, Versions
from textor.versions.images import build_version

#: Seconds that a version is watched after it took over; in which it must come up; for which it may
#: be silent; that sessions are given to come to rest; and between two looks.
PROBATION = 60.0
COME_UP = 30.0
SILENT = 5.0
REST = 60.0
TICK = 0.5

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]
Health = Callable[[], Awaitable[bool]]
Judge = Callable[[Candidate, Path], Awaitable[Verdict]]


class Supervisor:
    """Runs `textor ARGV` in the version that the ledger names, and changes it when asked.

    `health` says whether the running version answers; `base` is what images of versions are made
    over; `judge` tries a version in a folder with a copy of the state. `clock` and `sleep` are those
    of the looks and of probation.
    """

    def __init__(
        self,
        versions: Versions,
        argv: Sequence[str],
        health: Health,
        *,
        base: str = "",
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        judge: Judge | None = None,
        handover: Handover | None = None,
    ) -> None:
        self.versions = versions
        self._argv = argv
        self._health = health
        self._clock = clock
        self._sleep = sleep
        self._base = base
        self._judge = judge or judged
        self._handover = handover or Handover(versions.data)
        self._process: asyncio.subprocess.Process | None = None
        self.running = INSTALLED

    async def run(self) -> None:
        """Keep the current version running, and change it when somebody asks, until cancelled."""
        try:
            if self.versions.read().doing:
                self._doing("")  # one before us was killed in the middle
            await self.start(self.versions.read().current)
            pause, fault = 1.0, ""
            while True:
                await self._sleep(TICK)
                try:
                    pause = await self._look(pause)
                    fault = ""
                except (OSError, TextorError) as error:
                    # a full disk keeps versions from being changed; what runs is to go on all the same
                    if str(error) != fault:
                        fault = str(error)
                        self._say(fault)
        finally:
            await self.stop(signal.SIGTERM)

    async def _look(self, pause: float) -> float:
        """One look at what is wanted and what runs. `pause` is how long the next start of a version
        that ended waits, in seconds; its new value."""
        await self._handover.resume()  # what one before us had paused when it was killed, or we could not
        wanted = self.versions.read().wanted
        if wanted is not None:
            await self.change(wanted)
        elif not self.alive:
            self._say(f"{_name(self.running)} ended; it is started again in {pause:g} s.")
            await self._sleep(pause)
            await self.start(self.running)
            return min(pause * 2, 60)
        elif await self._health():
            return 1.0
        return pause

    def _say(self, sentence: str) -> None:
        """A line of the log. One that cannot be written holds nothing up."""
        with contextlib.suppress(OSError, TextorError):
            self.versions.say(sentence)

    def _doing(self, sentence: str) -> None:
        """What is under way, for who asks meanwhile. As with a line of the log, it may fail."""
        with contextlib.suppress(OSError, TextorError), self.versions.change() as fields:
            fields["doing"] = sentence

    # -- a change --------------------------------------------------------------------------

    async def change(self, tag: str) -> bool:
        """Try a tag and put it in the place of the running version; whether it stayed there."""
        with self.versions.change() as fields:
            fields["wanted"] = None
        if tag == self.running:
            return True
        try:
            return await self._change(tag, self.running)
        finally:
            self._doing("")

    async def _change(self, tag: str, before: str) -> bool:
        self._doing(f"{_name(tag)} is being tried on a copy of the state.")
        if tag != INSTALLED and not await self._passes(tag):
            return False
        self._doing(f"{_name(tag)} takes over as soon as all sessions rest.")
        if not await self._handover.pause(REST):
            self._say(f"{_name(tag)} does not take over: sessions did not come to rest.")
            await self._handover.resume()
            return False
        await self.stop(signal.SIGKILL)
        await self.start(tag)
        self._doing(f"{_name(tag)} has taken over and is watched for {PROBATION:g} s.")
        why = await self._watch()
        if not why:
            with self.versions.change() as fields:
                fields.update(current=tag, previous=before)
            self._say(f"{_name(tag)} is in use.")
            return True
        await self._back(before, tag, why)
        return False

    async def _passes(self, tag: str) -> bool:
        """Build a tag and try it on a copy of the state, beside the running version."""
        try:
            version = await try_version(self.versions, tag, self._base, self._judge)
        except UseError as error:
            self._say(f"{tag} cannot be tried: {error}")
            return False
        told = f"failed its trial: {version.why}" if version.state == "failed" else "passed its trial"
        self._say(f"{tag} {told} (tried {version.tried}).")
        return version.state == "passed"

    async def _watch(self) -> str:
        """Watch a version that took over; why it must go, "" when it may stay. Its sessions go on
        as soon as it answers."""
        began = heard = self._clock()
        up = False
        while self._clock() - began < PROBATION:
            if not self.alive:
                assert self._process is not None
                return f"it ended with {self._process.returncode}"
            if await self._health():
                heard = self._clock()
                up = True
                with contextlib.suppress(OSError, TextorError):  # the next look tries it again
                    await self._handover.resume()
            elif not up and self._clock() - began > COME_UP:
                return f"it did not come up within {COME_UP:g} s"
            elif up and self._clock() - heard > SILENT:
                return f"it stopped answering for {SILENT:g} s"
            await self._sleep(TICK)
        return ""

    async def _back(self, before: str, tag: str, why: str) -> None:
        """The old version takes its place again; sessions go on where they rested."""
        await self.stop(signal.SIGKILL)
        await self.start(before)  # first of all: the ledger may not be writable
        known = self.versions.read().versions.get(tag)
        if known is not None:
            self.versions.note(msgspec.structs.replace(known, state="failed", why=f"in use {why}"))
        self._say(f"{_name(tag)} was taken back: {why}.")
        await self._handover.resume()

    # -- the process -----------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, tag: str) -> None:
        """Start a version; the installed one where its build is gone."""
        known = tag in self.versions.read().versions
        python = self.versions.python(tag) if known else Path(sys.executable)
        if not known or not python.exists():
            tag, python = INSTALLED, Path(sys.executable)
        env = {**os.environ, "TEXTOR_SUPERVISED": "1"}
        env.pop("TEXTOR_VERSION", None)
        if tag != INSTALLED:
            env["TEXTOR_VERSION"] = tag
        self._process = await asyncio.create_subprocess_exec(
            str(python), "-P", "-m", "textor", *self._argv, env=env, stdin=asyncio.subprocess.DEVNULL
        )
        self.running = tag

    async def stop(self, how: signal.Signals) -> None:
        """End the running version, for certain."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(how)
            try:
                await asyncio.wait_for(process.wait(), 15)
            except TimeoutError:
                process.kill()
        await process.wait()


async def judged(candidate: Candidate, place: Path) -> Verdict:
    """The trial in a process of its own, with this program's code."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "textor.supervisor.trial", str(candidate.python),
        "--home", str(candidate.home), "--image", candidate.image, "--place", str(place),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, _ = await process.communicate()
        told = json.loads(out)
        return Verdict([str(fault) for fault in told["faults"]], str(told["where"]))
    except (ValueError, KeyError, TypeError):
        return Verdict(["the trial itself did not come to an end"], "in no way")
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def try_version(versions: Versions, tag: str, base: str, judge: Judge = judged) -> Version:
    """Build a tag and try it beside whatever runs; the result is kept in the ledger."""
    version, _ = await build_version(versions, tag, base)
    place = versions.folder / f"trial-{os.getpid()}"
    await asyncio.to_thread(_sweep, versions.folder)
    try:
        await asyncio.to_thread(versions.copy_state, place / "state")
        home = versions.home(version.commit)
        verdict = await judge(Candidate(versions.python(tag), home, version.image), place)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    state: State = "failed" if verdict.faults else "passed"
    why = " ".join(verdict.faults)
    version = msgspec.structs.replace(version, state=state, why=why, tried=verdict.where)
    versions.note(version)
    return version


def _sweep(folder: Path) -> None:
    """Remove what trials left that were cut off."""
    import psutil

    for place in folder.glob("trial-*"):
        number = place.name.rpartition("-")[2]
        if not number.isdecimal() or int(number) == os.getpid() or not psutil.pid_exists(int(number)):
            shutil.rmtree(place, ignore_errors=True)


def answers(url: str) -> Health:
    """The health of a server: it answers at `url` with anything but a fault of its own."""

    async def health() -> bool:
        import urllib.error
        import urllib.request

        def ask() -> bool:
            try:
                with urllib.request.urlopen(url, timeout=2) as reply:
                    return bool(reply.status < 500)
            except urllib.error.HTTPError as error:
                return error.code < 500
            except (OSError, TextorError, ValueError):
                return False

        return await asyncio.to_thread(ask)

    return health


def _name(tag: str) -> str:
    return tag or "the installed version"
