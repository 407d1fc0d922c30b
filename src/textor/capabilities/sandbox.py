"""The sandbox that generated commands run in: bubblewrap, without network, over the workspace.

Bubblewrap (https://github.com/containers/bubblewrap) makes a fresh view of the machine from
nothing: the system's programs to read, the workspace to write, and no way to anything else.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from textor.errors import CapabilityError

#: What programs need of the system, read only. Of `/etc` only what holds no secrets.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
ETC = (
    "alternatives",
    "ca-certificates",
    "fonts",
    "group",
    "hosts",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "protocols",
    "services",
    "ssl/certs",
    "timezone",
)

#: Where people keep keys. Hidden when the workspace is a home folder and so holds them.
SECRETS = (
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/textor",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/share/textor",
    ".netrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
)

#: Bytes that `/tmp` and `/dev/shm` may hold each; they live in memory.
SCRATCH = 512 << 20


class Sandbox(Protocol):
    """Turns a command into one that runs shut in."""

    @property
    def name(self) -> str: ...

    def command(self, argv: Sequence[str], workspace: Path) -> list[str]:
        """`argv` in the sandbox with `workspace` to write and as current folder.

        The command it gives is a supervisor: it ends after the last process inside, with the
        exit status of `argv`. `CapabilityError` when the workspace cannot be shut in.
        """
        ...

    @property
    def env(self) -> dict[str, str]:
        """The whole environment inside: nothing of ours, so no keys."""
        ...


class Bubblewrap:
    """Sandbox by unprivileged Linux namespaces; `program` is the path of `bwrap`."""

    name = "bubblewrap"

    def __init__(self, program: str) -> None:
        self.program = program
        # the Python that runs us is a tool worth having inside, wherever it is installed
        python = Path(sys.base_prefix).resolve()
        self._tools = () if python.is_relative_to("/usr") else (python,)

    @property
    def env(self) -> dict[str, str]:
        path = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]
        path += [str(tool / "bin") for tool in self._tools]
        return {
            "PATH": ":".join(path),
            "HOME": "/tmp",
            "TMPDIR": "/tmp",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }

    def command(self, argv: Sequence[str], workspace: Path) -> list[str]:
        folder = workspace.resolve()
        if folder == Path(folder.anchor):
            raise CapabilityError(
                "The workspace is the whole file system, so nothing can be shut in.",
                "Work in a folder of its own.",
            )
        return [
            self.program,
            # named one by one: `--unshare-all` goes on quietly when there is no user namespace,
            # and a root without one would be root of the host
            *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
            *("--unshare-cgroup-try", "--cap-drop", "ALL", "--die-with-parent", "--new-session"),
            *("--uid", str(os.getuid()), "--gid", str(os.getgid())),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", str(SCRATCH), "--tmpfs", "/dev/shm", "--size", str(SCRATCH), "--tmpfs", "/tmp"),
            *[word for tool in self._tools for word in ("--ro-bind", str(tool), str(tool))],
            *("--bind", str(folder), str(folder)),
            *_hidden(folder),
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", str(folder), "--", *argv),
        ]

    def trouble(self) -> str:
        """Why it does not work here, in the words of `bwrap`; empty when it does. Runs it once."""
        try:
            probe = subprocess.run(
                self.command(["true"], Path("/tmp")),
                env=self.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{error}"
        if probe.returncode == 0:
            return ""
        return probe.stderr.decode("utf-8", "replace").strip() or f"exit status {probe.returncode}"


def _system() -> list[str]:
    words: list[str] = []
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():  # /bin -> usr/bin on merged systems
            words += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            words += ["--ro-bind", name, name]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def _hidden(folder: Path) -> list[str]:
    words: list[str] = []
    for name in SECRETS:
        path = folder / name
        if path.is_symlink() or not path.exists():  # a link leads outside, where nothing is
            continue
        words += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    return words


@functools.cache
def find_sandbox() -> Sandbox | None:
    """The sandbox of this machine, tried once by really running it (some 10 ms); None without one."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    sandbox = Bubblewrap(program)
    return None if sandbox.trouble() else sandbox


def why_no_sandbox() -> str:
    """One sentence for a person when `find_sandbox` gave None; empty when there is one."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed."
    trouble = Bubblewrap(program).trouble()
    return f"bubblewrap does not work here: {trouble}" if trouble else ""
