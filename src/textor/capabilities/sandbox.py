"""The sandbox that generated commands run in, without network, over the workspace.

Here are the port and what needs no engine; `textor.containers.sandbox` has the one by container.

Bubblewrap (https://github.com/containers/bubblewrap) makes a fresh view of the machine from
nothing: the system's programs to read, the workspace to write, and no way to anything else.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from textor.capabilities.doors import PLACE, Door
from textor.capabilities.live import SAYS, standing
from textor.capabilities.processes import Ended, Limits, run
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
    """Runs commands shut in: `workspace` to write and as current folder, nothing else of ours.

    Both ways raise `CapabilityError` when the workspace cannot be shut in.
    """

    @property
    def name(self) -> str: ...

    @property
    def shell(self) -> str:
        """The shell inside, for `[shell, "-c", text]`."""
        ...

    @property
    def env(self) -> dict[str, str]:
        """What `command` is started with: nothing of ours, so no keys."""
        ...

    def command(self, argv: Sequence[str], workspace: Path, door: Door | None = None) -> list[str]:
        """For a program that stays: `argv` as a command of this machine, its input and output as
        usual, with `door` as the way in or out.

        The command it gives is a supervisor: it ends after the last process inside, with the
        exit status of `argv`.
        """
        ...

    async def run(
        self,
        argv: Sequence[str],
        workspace: Path,
        *,
        timeout: float,
        limits: Limits,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Ended:
        """Run `argv` to its end with nothing on stdin, within limits. When the calling task is
        cancelled, all is ended for certain and the reason is "cancelled"."""
        ...

    async def close(self) -> None:
        """Let go of what is held between two runs."""
        ...


class _CommandBefore(ABC):
    """What the sandboxes have in common that are no more than a command before the command."""

    supervised = True  #: whether it ends with the last process inside, and takes all along when killed

    def __init__(self, program: str, door: Door | None = None) -> None:
        self.program = program
        self.door = door  #: the way out of all commands: the proxy with the allowed hosts

    @functools.cached_property
    def shell(self) -> str:
        return shutil.which("bash") or "/bin/sh"

    @property
    @abstractmethod
    def env(self) -> dict[str, str]: ...

    @abstractmethod
    def command(self, argv: Sequence[str], workspace: Path, door: Door | None = None) -> list[str]: ...

    async def run(
        self,
        argv: Sequence[str],
        workspace: Path,
        *,
        timeout: float,
        limits: Limits,
        on_output: Callable[[bytes], None] | None = None,
    ) -> Ended:
        limited = [self.shell, "-c", limited_script(limits), "sh", *argv]
        try:  # in a thread: it looks around in the workspace, which may be big
            command = await asyncio.to_thread(self.command, limited, workspace, self.door)
        except asyncio.CancelledError:
            return Ended("cancelled", None, b"", 0)
        return await run(
            command,
            cwd=workspace,
            env={**self.env, **(self.door.environment if self.door else {})},
            timeout=timeout,
            limits=limits,
            supervised=self.supervised,
            on_output=on_output,
        )

    async def close(self) -> None:
        """Close the way out; nothing else is held between two runs."""
        if self.door is not None:
            self.door.close()

    def trouble(self) -> str:
        """Why it does not work here, in its own words; empty when it does. Runs it once."""
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


def limited_script(limits: Limits) -> str:
    """The script that sets the kernel's limits inside, then becomes the command itself.

    They bind each process at once where the watch from outside takes a moment. They do not
    bind the number of processes of root; for that there is only the watch.
    """
    kilobytes = limits.memory // 1024
    return (
        f"ulimit -c 0; ulimit -d {kilobytes}; "
        f"{{ ulimit -u {limits.processes} || ulimit -p {limits.processes}; }} 2>/dev/null; "
        'exec "$@"'
    )


class Bubblewrap(_CommandBefore):
    """Sandbox by unprivileged Linux namespaces; `program` is the path of `bwrap`."""

    name = "bubblewrap"

    def __init__(self, program: str, door: Door | None = None, shown: Sequence[Path] = ()) -> None:
        super().__init__(program, door)
        self._tools = tuple(p for p in (*_pythons(), *shown) if not p.is_relative_to("/usr"))

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

    def command(self, argv: Sequence[str], workspace: Path, door: Door | None = None) -> list[str]:
        folder = shut_in(workspace)
        if door is not None:
            argv = door.through(argv)
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
            *_live(folder),
            *_hidden(folder),
            *(("--bind", str(door.folder), PLACE) if door is not None else ()),
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", str(folder), "--", *argv),
        ]


def shut_in(workspace: Path) -> Path:
    """The real place of a workspace. `CapabilityError` when it is the whole file system."""
    folder = workspace.resolve()
    if folder == Path(folder.anchor):
        raise CapabilityError(
            "The workspace is the whole file system, so nothing can be shut in.",
            "Work in a folder of its own.",
        )
    return folder


def _pythons() -> tuple[Path, ...]:
    """The Python that runs us, a tool worth having inside, wherever it is installed; with its
    environment, in which the modules that agents write find the package mcp."""
    return tuple(dict.fromkeys(Path(folder).resolve() for folder in (sys.base_prefix, sys.prefix)))


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


def _live(folder: Path) -> list[str]:
    """What would be run outside is read only inside; a repository cannot be put aside either, since
    what something is mounted on is not renamed."""
    found = standing(folder)
    kept = [word for path in found.kept for word in ("--bind-try", str(path), str(path))]
    return kept + [word for path in found.fixed for word in ("--ro-bind-try", str(path), str(path))]


def _hidden(folder: Path) -> list[str]:
    words: list[str] = []
    for name in SECRETS:
        path = folder / name
        if path.is_symlink() or not path.exists():  # a link leads outside, where nothing is
            continue
        words += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    return words


class Seatbelt(_CommandBefore):
    """Sandbox of macOS; `program` is the path of `sandbox-exec`.

    The profile forbids what it does not name (https://reverse.put.as/wp-content/uploads/2011/09/
    Apple-Sandbox-Guide-v1.0.pdf); the network is not named.
    """

    name = "sandbox-exec"
    supervised = False  # it becomes the command, so the process group is what can be ended

    @property
    def env(self) -> dict[str, str]:
        path = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return {"PATH": path, "HOME": "/private/tmp", "LANG": "en_US.UTF-8", "TERM": "dumb"}

    def command(self, argv: Sequence[str], workspace: Path, door: Door | None = None) -> list[str]:
        folder = shut_in(workspace)
        if door is not None:
            raise CapabilityError(
                "A way in or out of the sandbox is not to be had with sandbox-exec.",
                "Install Docker or Podman.",
            )
        return [self.program, "-p", self.profile(folder), *argv]

    def profile(self, folder: Path) -> str:
        """The rules, in the language of the sandbox: the last that fits decides."""
        readable = (
            "/usr",
            "/bin",
            "/sbin",
            "/System",
            "/Library",
            "/opt",
            "/dev",
            "/private/var/db/timezone",
        )
        rules = [
            "(version 1)",
            "(deny default)",
            "(allow process-exec process-fork sysctl-read file-read-metadata)",
            "(allow signal (target same-sandbox))",
            "(allow file-read* " + " ".join(f"(subpath {_quoted(path)})" for path in readable) + ")",
            *(f"(allow file-read* (subpath {_quoted(str(path))}))" for path in _pythons()),
            f'(allow file-read* file-write* (subpath {_quoted(str(folder))}) (subpath "/private/tmp"))',
            '(allow file-write-data (literal "/dev/null") (literal "/dev/tty"))',
        ]
        found = standing(folder)
        rules += [f"(deny file-write* (subpath {_quoted(str(path))}))" for path in found.fixed]
        for path in found.kept:  # it cannot be put aside, nor get what would steer it
            rules.append(f"(deny file-write-unlink (literal {_quoted(str(path))}))")
            rules += [f"(deny file-write* (literal {_quoted(str(path / name))}))" for name in SAYS]
        rules += [f"(deny file* (subpath {_quoted(str(folder / name))}))" for name in SECRETS]
        return "\n".join(rules)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def find_sandbox(door: Door | None = None) -> Sandbox | None:
    """The sandbox of this machine that needs no engine, tried by really running it (some 10 ms);
    None without one."""
    kind, program = _kind(), shutil.which(_kind_program())
    if program is None:
        return None
    sandbox = kind(program, door)
    return None if sandbox.trouble() else sandbox


def why_no_sandbox() -> str:
    """One sentence for a person when `find_sandbox` gave None; empty when there is one."""
    name, program = _kind().name, shutil.which(_kind_program())
    if program is None:
        return f"{name} ({_kind_program()}) is not installed."
    trouble = _kind()(program).trouble()
    return f"{name} does not work here: {trouble}" if trouble else ""


def _kind() -> type[Bubblewrap] | type[Seatbelt]:
    return Seatbelt if sys.platform == "darwin" else Bubblewrap


def _kind_program() -> str:
    return "sandbox-exec" if sys.platform == "darwin" else "bwrap"
