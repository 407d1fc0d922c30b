"""A terminal for a program under test: what it shows is read, and what a person types is sent."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

#: Nothing here takes as long; it ends a test that would otherwise hang.
PATIENCE = 60.0


class Screen:
    """A process with a pseudo terminal of its own, whose Ctrl-C reaches it alone."""

    def __init__(self, command: list[str], env: dict[str, str], folder: Path) -> None:
        self._main, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (30, 100))
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *command],  # without a terminal that controls it there is no Ctrl-C
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "PROMPT_TOOLKIT_NO_CPR": "1", "NO_COLOR": "1"},
            cwd=folder,
        )
        os.close(theirs)
        self.text = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._main)

    @property
    def pid(self) -> int:
        return self._process.pid  # `setsid` becomes the program

    def until(self, text: str) -> str:
        """Wait until the program shows `text`; returns what came since the last wait."""
        end = time.monotonic() + PATIENCE
        while text not in self.text[self._seen :]:
            assert self._read(end), f"{text!r} was not shown; there is:\n{self.text[self._seen :]}"
        upto = self.text.index(text, self._seen) + len(text)
        shown = self.text[self._seen : upto]
        self._seen = upto
        return shown

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def ended(self) -> int:
        """Wait for the program's end; returns its exit code."""
        end = time.monotonic() + PATIENCE
        while self._read(end):
            pass
        assert "Traceback" not in self.text, self.text
        return self._process.wait(PATIENCE)

    def _read(self, end: float) -> bool:
        """Take what there is; False at the program's end or when patience is over."""
        ready, _, _ = select.select([self._main], [], [], max(end - time.monotonic(), 0))
        if not ready:
            return False
        try:
            content = os.read(self._main, 65_536)
        except OSError:  # Linux's way of saying that the other side has closed
            return False
        self.text += content.decode("utf-8", "replace")
        return bool(content)
