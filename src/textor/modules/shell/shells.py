"""The shells of this machine, and how each is made to say that it is idle."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

#: Those that can be driven, best first. Python is a shell like the others.
KNOWN = ("bash", "zsh", "dash", "ksh", "ash", "sh", "python")

_BASH = """\
unset HISTFILE PS1 PS0
PS1='' PS2=''
PROMPT_COMMAND='printf "\\033]7717;%s;%d\\007" {nonce} $?'
"""
_ZSH = """\
unsetopt zle prompt_sp prompt_cr
unset HISTFILE
PS1='' PS2=''
precmd() {{ printf '\\033]7717;%s;%d\\007' {nonce} $? }}
"""


@dataclass(frozen=True)
class Shell:
    """`argv` starts it; `send` is what makes it run a file."""

    name: str
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)

    def send(self, file: Path) -> str:
        return f"{file}\n" if self.name == "python" else f" . {shlex.quote(str(file))}\n"


def found() -> dict[str, str]:
    """The shells that exist here, name to program."""
    shells = {name: program for name in KNOWN if (program := shutil.which(name))}
    return {**shells, "python": sys.executable}


def prepare(name: str, program: str, nonce: str, folder: Path) -> Shell:
    """A shell that prints a mark with the last status whenever it is idle."""
    if name == "python":
        driver = Path(__file__).with_name("driver.py")
        return Shell(name, [program, "-u", str(driver), nonce])
    if name == "bash":
        rc = folder / "rc.bash"
        rc.write_text(_BASH.format(nonce=nonce))
        return Shell(name, [program, "--noprofile", "--noediting", "--rcfile", str(rc), "-i"])
    if name == "zsh":
        (folder / ".zshrc").write_text(_ZSH.format(nonce=nonce))
        return Shell(name, [program, "-d", "-i"], {"ZDOTDIR": str(folder)})
    # the prompt of a plain shell is expanded, which is enough
    return Shell(
        "sh",
        [program, "-i"],
        {"PS1": f"\x1b]7717;{nonce};$?\x07", "PS2": "", "ENV": "", "HISTFILE": os.devnull},
    )
