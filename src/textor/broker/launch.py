"""Starting apps, and knowing them again.

A port is given by the system and handed over as the last argument (the convention of the document)
and in TEXTOR_APP_PORT; TEXTOR_APP_TOKEN holds a token for this launch alone. The token is made from
a secret beside the journal and a nonce in it, so that the journal holds nothing secret.

An instance may be called when the process that listens on its port is the one that was started,
and, where it speaks our SDK's protocol, proves that it holds the token. Anything else is a stranger.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

from textor.broker import processes
from textor.broker.book import App, Record
from textor.broker.calls import health
from textor.errors import CapabilityError, UseError

PATIENCE = 20.0  #: seconds in which an app has to be ready
LOOK = 0.05  #: seconds between two looks
ENDING = 5.0  #: seconds an app is given to end by itself
TRIES = 2  #: ports that are tried when a stranger was quicker
KEPT_LOGS = 50  #: of instances, the running ones among them
SECRET = "apps.key"
_KEPT_BACK = ("_API_KEY", "TEXTOR_TOKEN")  #: ends of names of variables that apps do not get


class Stranger(CapabilityError):
    """Another program listens on the port that was meant for an app."""


class Launcher:
    """Starts, checks and ends instances. `data` None: nothing is kept, and a secret is made for this
    process alone."""

    def __init__(self, data: Path | None, *, patience: float = PATIENCE) -> None:
        self._data = data
        self._patience = patience
        self._secret: bytes | None = None
        self._folder: Path | None = None
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def token(self, record: Record) -> str:
        """What the instance was given, and what a call has to bring."""
        told = f"{record.app_class}\n{record.port}\n{record.nonce}".encode()
        return hmac.new(self._key(), told, hashlib.sha256).hexdigest()

    async def launch(self, app: App) -> Record:
        """Start an instance and wait until it is ready. Raises `CapabilityError` with the last that
        the program said; then nothing of it is left running."""
        for left in reversed(range(TRIES)):
            try:
                return await self._launch(app)
            except Stranger:
                if not left:
                    raise
        raise AssertionError("unreachable")

    async def _launch(self, app: App) -> Record:
        port = free_port()
        id = f"{app.launch.area}-{secrets.token_hex(2)}"
        record = Record(id, app.name, port, 0, "", time.time(), secrets.token_hex(8))
        process = await asyncio.to_thread(self._start, app, record)
        record = replace(record, pid=process.pid, born=processes.born(process.pid))
        try:
            return await self._ready(app, record, process)
        except BaseException:
            await asyncio.shield(self._kill(process))
            raise

    def _start(self, app: App, record: Record) -> subprocess.Popen[bytes]:
        form = app.launch.form
        given = {k: v for k, v in os.environ.items() if not k.endswith(_KEPT_BACK)}
        given |= {"TEXTOR_APP_PORT": str(record.port), "TEXTOR_APP_TOKEN": self.token(record)}
        if self._data is not None:
            given["TEXTOR_DATA"] = str(self._data)
        log = self._log(record.id)
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._forget_old(log.parent)
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [form.path, *form.arguments, str(record.port)],
                    cwd=Path(form.path).parent,
                    env=given,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # it outlives us, and is known by its session
                )
        except OSError as error:
            raise CapabilityError(f"{app.name} cannot be started: {error.strerror or error}.") from None
        self._started[record.id] = process
        return process

    async def _ready(self, app: App, record: Record, process: subprocess.Popen[bytes]) -> Record:
        end = asyncio.get_running_loop().time() + self._patience
        while True:
            status = process.poll()
            if status is not None and not await asyncio.to_thread(processes.members, process.pid):
                raise CapabilityError(
                    f"{app.name} ended when it was started (exit status {status}).{self._said(record)}"
                )
            if found := await self._listening(app, record):
                return found
            if asyncio.get_running_loop().time() >= end:
                raise CapabilityError(
                    f"{app.name} was not ready after {self._patience:g} seconds: nothing of it listens on "
                    f"port {record.port}.{self._said(record)}"
                )
            await asyncio.sleep(LOOK)

    async def _listening(self, app: App, record: Record) -> Record | None:
        """The record of the process that listens, None when nobody does yet. Raises `Stranger`."""
        if not await accepts(record.port):
            return None
        pid = await asyncio.to_thread(self._listener, record)
        if pid is None:
            raise Stranger(f"Another program took the port {record.port} before {app.name} was ready.")
        record = replace(record, pid=pid, born=processes.born(pid))
        return replace(record, speaks="sdk") if await self._proves(record) else record

    def _listener(self, record: Record) -> int | None:
        """Which process of the launched session listens; the launched one where nobody can tell."""
        for pid in (record.pid, *processes.members(record.pid)):
            if processes.listens(pid, record.port) is not False:
                return pid
        return None

    async def _proves(self, record: Record) -> bool:
        nonce = secrets.token_hex(16)
        told = await health(record.port, nonce)
        wanted = hmac.new(self.token(record).encode(), nonce.encode(), hashlib.sha256).hexdigest()
        proof = told.get("proof") if isinstance(told, dict) else None
        return isinstance(proof, str) and hmac.compare_digest(proof.encode(), wanted.encode())

    # -- knowing them again ------------------------------------------------------------------

    async def is_there(self, record: Record, *, proof: bool = False) -> bool:
        """Whether the instance lives and is the one that listens on its port. `proof`: it is also
        asked to prove it, if it can; where nobody can see who listens, that is all there is to go by."""
        if process := self._started.get(record.id):
            process.poll()  # so that a program that has ended is not taken for a living one
        if not processes.is_alive(record.pid, record.born):
            return False
        listening = await asyncio.to_thread(processes.listens, record.pid, record.port)
        if listening is False:
            return False
        if record.speaks == "sdk" and (proof or listening is None):
            return await self._proves(record)
        return listening is True or record.id in self._started

    async def stop(self, record: Record) -> None:
        """End an instance; one that is gone already is no fault."""
        if not processes.is_alive(record.pid, record.born):
            return
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(record.pid, number)
            if await self._gone(record):
                break
        self._started.pop(record.id, None)

    async def _gone(self, record: Record) -> bool:
        end = asyncio.get_running_loop().time() + ENDING
        while asyncio.get_running_loop().time() < end:
            if process := self._started.get(record.id):
                process.poll()
            if not processes.is_alive(record.pid, record.born):
                return True
            await asyncio.sleep(LOOK)
        return False

    async def _kill(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait)
        self._started = {id: p for id, p in self._started.items() if p is not process}

    # -- files -------------------------------------------------------------------------------

    def _log(self, id: str) -> Path:
        if self._data is not None:
            return self._data / "apps" / "logs" / f"{id}.log"
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="textor-apps-"))
        return self._folder / f"{id}.log"

    def said(self, area: str, count: int) -> tuple[str, list[str]]:
        """The last lines of what the newest instance of an area wrote, also when it is gone, and the
        id of that instance; `area` may be such an id itself. ("", []) where there was none."""
        folder = self._log(area).parent
        found = [p for p in folder.glob("*.log") if area in (p.stem, p.stem.rpartition("-")[0])]
        newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
        return (newest.stem, _tail(newest, count)) if newest is not None else ("", [])

    def _said(self, record: Record) -> str:
        """The last lines of what an instance wrote."""
        lines = "\n".join(_tail(self._log(record.id), 6))
        return f" It said:\n{lines}" if lines else " It said nothing."

    def _forget_old(self, folder: Path) -> None:
        """Keep the logs of the last instances alone."""
        with contextlib.suppress(OSError):  # another process does the same
            logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
            for path in logs[: -KEPT_LOGS + 1]:
                path.unlink(missing_ok=True)

    def _key(self) -> bytes:
        if self._secret is None:
            self._secret = secrets.token_bytes(32) if self._data is None else load_secret(self._data)
        return self._secret


def _tail(path: Path, count: int) -> list[str]:
    """The last lines of a file; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 300 * count))
            return file.read().decode("utf-8", "replace").strip().splitlines()[-count:]
    except OSError:
        return []


def load_secret(folder: Path) -> bytes:
    """The secret in `folder`, made when there is none. Only its owner can read the file."""
    path = folder / SECRET
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            secret = file.read().strip()
            if len(secret) < 32:
                secret = secrets.token_hex(32).encode()
                file.seek(0)
                file.truncate()
                file.write(secret)
            return secret
    except OSError as error:
        raise UseError(f"The secret of the apps cannot be kept in {path}: {error.strerror}.") from None


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def accepts(port: int) -> bool:
    """Whether anybody takes connections there."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 2)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
