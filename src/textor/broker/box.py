"""The programs that come with Textor: installed by their own `--install`, as any other is."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from textor.errors import UseError

IN_THE_BOX = ("email", "chart", "calendar", "drawing")
TIMEOUT = 60  #: seconds for an installation


def missing(programs: Iterable[tuple[str, ...]]) -> list[str]:
    """Which of them are not installed; `programs` are the arguments of the apps that are."""
    known = {word for arguments in programs for word in arguments}
    return [name for name in IN_THE_BOX if f"textor.apps.{name}" not in known]


async def install(name: str, address: str, token: str, data: Path) -> str:
    """Have a program of the box register at a server of ours; what it said. Raises `UseError`."""
    if name not in IN_THE_BOX:
        hint = f"There is: {', '.join(IN_THE_BOX)}. Any other program registers itself with its --install."
        raise UseError(f"No app {name[:80]!r} is in the box.", hint)
    given = {"TEXTOR_URL": address, "TEXTOR_TOKEN": token, "TEXTOR_DATA": str(data)}
    # -P: nothing that lies in the folder we happen to be in is taken for a module of ours
    command = (sys.executable, "-P", "-m", f"textor.apps.{name}", "--install")
    program = await asyncio.create_subprocess_exec(
        *command,
        env=os.environ | given,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(TIMEOUT):
            told, _ = await program.communicate()
    except TimeoutError:
        program.kill()
        raise UseError(f"{name} did not register within {TIMEOUT} seconds.") from None
    said = told.decode("utf-8", "replace").strip()
    if program.returncode:
        raise UseError(f"{name} could not be installed: {said[-500:].removeprefix('error: ')}")
    return said
