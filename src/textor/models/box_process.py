"""The process that runs the model in the box: `python -m textor.models.box_process`.

It is a process of its own so that it can be killed and cannot take the runtime down. The parent
writes one JSON line (`BoxSettings`) to its stdin and keeps the pipe open; the child answers one
JSON line on stdout, `{"base_url": …}` or `{"error": …}`, and serves the OpenAI protocol on
127.0.0.1 until its stdin ends. A pipe ends on every way a parent can die, SIGKILL too, and,
unlike PR_SET_PDEATHSIG, does not mind which thread started the child.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import NoReturn

import msgspec


class BoxSettings(msgspec.Struct, frozen=True):
    """How to serve the model file at `path` under a `name`.

    `window` is in tokens and is one pool that the `conversations` (requests at the same time)
    share; `threads` are compute threads; `cache_mib` bounds the memory for the prompts of
    conversations that wait; `reply_limit` is the most tokens of any reply.
    """

    path: str
    name: str
    api_key: str
    threads: int
    window: int = 8192
    conversations: int = 2
    cache_mib: int = 256
    reply_limit: int = 1024


def main() -> NoReturn:
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=BoxSettings)
    # The engine may print; stdout belongs to the one line that the parent waits for.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Before the loading, so that a parent that dies meanwhile is noticed as well.
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    try:
        server = _serve(settings)
        answer = {"base_url": f"{server.listening_address}/v1"}
    except Exception as error:  # whatever the engine raises is told to the parent, not to a terminal
        server = None
        answer = {"error": f"{type(error).__name__}: {error}"}
    # A parent that is gone cannot be told; the thread above ends this process.
    with contextlib.suppress(BrokenPipeError):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    if server is None:
        os._exit(1)
    threading.Event().wait()
    raise AssertionError("unreachable")


def _leave_with_the_parent() -> None:
    # `os.read` and not `sys.stdin`: its lock must not be held while the process ends.
    while os.read(0, 4096):
        pass
    # Not `sys.exit`: the engine's threads would be joined, and nothing here needs saving.
    os._exit(0)


def _serve(settings: BoxSettings) -> xllamacpp.Server:  # type: ignore[name-defined]  # noqa: F821
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.model_alias = {settings.name}
    params.n_gpu_layers = 0
    params.fit_params = False
    params.warmup = False  # half a second that the first request pays anyhow
    params.verbosity = 1  # errors only
    params.n_ctx = settings.window
    params.n_parallel = settings.conversations
    params.kv_unified = True
    params.n_predict = settings.reply_limit
    params.cache_ram_mib = settings.cache_mib
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = settings.threads
        cpu.poll = 0  # waiting threads sleep: spinning ones starve everybody on a busy machine
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings.api_key]
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
