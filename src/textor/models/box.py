"""The model in the box: SmolLM2-135M-Instruct, which needs no key, no network and no other program.

`BoxServer` starts and watches the process (`box_process`), `BoxModel` is the model as the kernel
sees it. It speaks through `RemoteModel`, because the process serves the OpenAI protocol: one
client for local and remote.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from textor.errors import ModelError, UseError
from textor.messages import NO_STOP, Chunk, Context, Grammar, ProgressChunk, Stop, WaitChunk
from textor.models import box_fetch
from textor.models.box_process import BoxSettings
from textor.models.remote import RemoteModel
from textor.models.retry import Retry
from textor.models.server import FREE, Server

NAME = "smollm2"
ID = f"embedded:{NAME}"
WINDOW = 8192
#: Seconds within which the process has to be ready; it takes one or two.
STARTING = 120
#: More threads than this do not make a model of this size faster.
MOST_THREADS = 8


def free_cores() -> int:
    """The cores that nobody uses now, at least one. A thread too many on a busy machine makes
    every token wait for the slowest."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(1, min(MOST_THREADS, cores - busy))


class BoxServer:
    """The process of a model file, started when it is first needed and again when it has died.

    `path` None: the model in the box, which must have been fetched. `conversations` are requests
    that run at the same time. Safe to use from several threads and event loops.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        data: Path | None = None,
        threads: int | None = None,
        conversations: int = 2,
    ) -> None:
        self._path = path
        self._data = data
        self._threads = threads
        self._conversations = conversations
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._server: Server | None = None

    @property
    def fetched(self) -> bool:
        return (self._path or box_fetch.model_file(self._data)) is not None

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def running(self) -> Server | None:
        """Where it serves; None when it does not run."""
        return self._server if self.pid is not None else None

    def ended(self, within: float = 1.0) -> bool:
        """Whether the process has ended, or does so within some seconds; blocks. A connection to
        a process breaks a moment before the process is seen to be dead."""
        process = self._process
        if process is None:
            return True
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def fetch(self) -> Path:
        """The model file; blocks while it is fetched. Raises as `box_fetch.fetch`."""
        return self._path or box_fetch.fetch(self._data)

    def start(self) -> Server:
        """Fetch, start and load as far as that is still to be done; blocks. Raises `ModelError`."""
        with self._lock:
            if (server := self.running) is not None:
                return server
            path = self.fetch()
            settings = BoxSettings(
                path=str(path),
                name=NAME,
                api_key=secrets.token_urlsafe(24),
                threads=self._threads or free_cores(),
                window=WINDOW,
                conversations=self._conversations,
            )
            self._release()
            with tempfile.TemporaryFile() as log:
                self._process = _spawn(log)
                base_url = _ready(self._process, settings, log)
            self._server = _server(base_url, settings.api_key)
            return self._server

    def close(self) -> None:
        """End the process. It may be started again."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        process, self._process, self._server = self._process, None, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()  # the process ends when its stdin does
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _spawn(log: IO[bytes]) -> subprocess.Popen[bytes]:
    # -P: the current folder, which may be anybody's, is not searched for modules. A session of
    # its own: Ctrl-C in the terminal is for the agent and not for the model.
    command = [sys.executable, "-P", "-m", "textor.models.box_process"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, start_new_session=True, bufsize=0)


def _ready(process: subprocess.Popen[bytes], settings: BoxSettings, log: IO[bytes]) -> str:
    assert process.stdin is not None and process.stdout is not None
    alarm = threading.Timer(STARTING, process.kill)
    alarm.start()
    try:
        process.stdin.write(msgspec.json.encode(settings) + b"\n")
        line = process.stdout.readline()
        answer: dict[str, str] = msgspec.json.decode(line) if line else {}
    except OSError:
        answer = {}
    finally:
        alarm.cancel()
    if "base_url" in answer:
        return answer["base_url"]
    process.kill()
    status = process.wait()
    log.seek(0)
    said = log.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
    why = answer.get("error") or (said[-1] if said else f"its process ended with status {status}")
    raise ModelError(
        f"The model in the box did not start: {why}.",
        f"Delete {settings.path} to have it fetched again, or choose another model.",
        fault="refused",
    )


def _server(base_url: str, api_key: str) -> Server:
    return Server(
        "embedded",
        NAME,
        base_url,
        api_key,
        context_window=WINDOW,
        temperature=0.0,  # at this size the likeliest word is the best guess
        native_tools=False,
        media=(),
        gbnf=True,
        args={"cache_prompt": True},
        prices=FREE,
    )


class BoxModel:
    """The model in the box; implements `textor.models.port.Model`.

    Its first reply begins with `ProgressChunk`s while it is fetched (once) and loaded.
    """

    id = ID
    window = WINDOW
    native_tools = False  # the server would silently ignore declared functions
    grammars = True

    def __init__(self, id: str = ID, data: Path | None = None, *, server: BoxServer | None = None) -> None:
        """`data` is the folder in which `models/` is. Raises `UseError` for an unknown `id`."""
        if id != ID:
            raise UseError(f"There is no model {id} in the box.", f"The only one is {ID}.")
        self._server = server or BoxServer(data=data)
        self._remote: RemoteModel | None = None
        self._exact = functools.lru_cache(maxsize=4096)(self._counted)

    async def generate(
        self, context: Context, *, stop: Stop = NO_STOP, grammar: Grammar | None = None
    ) -> AsyncGenerator[Chunk]:
        again = False
        while True:
            async for notice in self._started():
                yield notice
            try:
                reply = self._delegate().generate(context, stop=stop, grammar=grammar)
                async with aclosing(reply) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except ModelError as fault:
                # A process that died is started once more for this reply; other faults would not
                # go away by asking the same process again.
                if again or not fault.transient or not await asyncio.to_thread(self._server.ended):
                    raise
                again = True
                yield WaitChunk("the process of the model in the box ended; starting it again", 0.0)

    async def _started(self) -> AsyncGenerator[ProgressChunk]:
        if self._server.running is not None:
            return
        if not self._server.fetched:
            yield ProgressChunk("fetching the model in the box (89 MB, only this once)")
            await asyncio.to_thread(self._server.fetch)
        yield ProgressChunk("loading the model in the box")
        await asyncio.to_thread(self._server.start)

    def _delegate(self) -> RemoteModel:
        server = self._server.running
        if server is None:
            raise ModelError("The process of the model in the box ended.", fault="server")
        if self._remote is None or self._remote.server != server:
            # Twice: the process closes a connection that was idle, which may be just the one we take.
            self._remote = RemoteModel(server, retry=Retry(attempts=2, base=0.1))
        return self._remote

    def count(self, text: str) -> int:
        """Exact as soon as the process runs (asked of it, and remembered); before, an estimate."""
        if self._server.running is not None:
            try:
                return self._exact(text)
            except (OSError, http.client.HTTPException, ValueError):
                pass  # the process has just died; the next reply starts it again
        return -(-len(text.encode()) // 4)

    def _counted(self, text: str) -> int:
        server = self._server.running
        if server is None:
            raise ConnectionError
        address = urlsplit(server.base_url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        try:
            headers = {"Authorization": f"Bearer {server.api_key}", "Content-Type": "application/json"}
            body = msgspec.json.encode({"content": text, "parse_special": False})
            connection.request("POST", "/tokenize", body, headers)
            tokens = msgspec.json.decode(connection.getresponse().read(), type=_Tokens)
        finally:
            connection.close()
        return len(tokens.tokens)

    def price(self, input: int, output: int, cached: int = 0) -> float | None:
        return 0.0

    async def close(self) -> None:
        """Let the connections go and end the process."""
        if self._remote is not None:
            await self._remote.aclose()
        await asyncio.to_thread(self._server.close)


class _Tokens(msgspec.Struct):
    tokens: list[int]
