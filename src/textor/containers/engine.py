"""The port to a container engine: Docker or Podman, by the API that both speak.

One class serves both; where they differ (`kind`) it says so in place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from textor.containers.client import Client, EngineError, EngineGone, Missing, Stream, frames
from textor.values import Json

Kind = Literal["docker", "podman"]


#: Open files of one program; processes of one user, which `Allowance.processes` bounds already.
FILES, PROCESSES = 4096, 30_000


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host inside a container."""

    source: Path
    target: str
    writable: bool = True


@dataclass(frozen=True)
class Allowance:
    """What one container may use: bytes of memory, cpus, processes, bytes of each scratch folder."""

    memory: int = 2 << 30
    cpus: float = 2.0
    processes: int = 256
    scratch: int = 256 << 20


@dataclass(frozen=True)
class Spec:
    """A container to be. By default it can do nothing to anybody: no network, no capabilities, no
    new privileges, a root that is read only, no more than `allowance`."""

    name: str
    image: str
    command: Sequence[str] = ()
    entrypoint: Sequence[str] | None = None  #: None: that of the image
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    covers: Sequence[str] = ()  #: folders hidden under an empty one
    folder: str = ""  #: the working folder inside; "" is that of the image
    user: str = ""  #: "uid:gid"; "" is that of the image
    stdin: Literal["none", "open", "once"] = "none"  #: once: ends when the first writer goes
    logged: bool = True  #: whether the engine keeps the output
    writable: bool = False  #: whether the root may be written
    allowance: Allowance = Allowance()


@dataclass(frozen=True)
class State:
    """A container as the engine sees it. Times as the engine writes them (ISO 8601)."""

    id: str
    name: str
    image: str
    status: str  #: created, running, paused, exited, dead…
    exit_status: int | None
    out_of_memory: bool
    error: str
    started_at: str
    labels: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        return self.status in ("running", "paused", "restarting", "stopping")


@dataclass(frozen=True)
class Info:
    """Which engine answers."""

    kind: Kind
    version: str
    address: str


class Engine:
    """Docker or Podman at `address`. Its methods raise `EngineError`; `Missing` for what is not
    there, `EngineGone` while the engine does not answer."""

    def __init__(self, address: str, kind: Kind = "docker", *, patience: float = 30.0) -> None:
        self.client = Client(address, patience=patience)
        self.kind: Kind = kind

    @property
    def address(self) -> str:
        return self.client.address

    async def info(self, *, patience: float = 5.0) -> Info:
        """Ask the engine who it is; sets `kind`."""
        told = await self.client.call("GET", "/version", patience=patience)
        words = [part.get("Name", "") for part in told.get("Components") or ()]
        self.kind = "podman" if any("Podman" in word for word in words) else "docker"
        return Info(self.kind, told.get("Version", "?"), self.address)

    async def has_image(self, image: str) -> bool:
        try:
            await self.client.call("GET", f"/images/{image}/json")
        except Missing:
            return False
        return True

    async def pull(self, image: str) -> None:
        """Fetch an image from its registry. `EngineError` when it cannot be had."""
        name, colon, tag = image.rpartition(":")
        if not colon or "/" in tag or "@" in image:
            name, tag = image, "" if "@" in image else "latest"
        query = {"fromImage": name, **({"tag": tag} if tag else {})}
        stream = await self.client.open("POST", "/images/create", query, patience=None)
        try:
            told = b"".join([piece async for piece in stream.pieces()]).decode("utf-8", "replace")
        finally:
            stream.close()
        for line in told.splitlines():
            with contextlib.suppress(ValueError):
                if error := json.loads(line).get("error"):
                    raise EngineError(f"The image {image} cannot be fetched: {error}")

    async def create(self, spec: Spec) -> str:
        """Make a container and give its id. `EngineError` with status 409 when the name is taken."""
        made = await self.client.call("POST", "/containers/create", {"name": spec.name}, self._json(spec))
        return str(made["Id"])

    async def start(self, id: str) -> None:
        """Start it; nothing happens when it runs already."""
        await self.client.call("POST", f"/containers/{id}/start", patience=120.0)

    async def stop(self, id: str, grace: int = 2) -> None:
        """Ask it to end, and kill it after `grace` seconds."""
        await self.client.call("POST", f"/containers/{id}/stop", {"t": grace}, patience=grace + 60.0)

    async def kill(self, id: str) -> None:
        """Kill it now. One that does not run is left as it is."""
        try:
            await self.client.call("POST", f"/containers/{id}/kill", {"signal": "KILL"})
        except EngineError as error:
            if error.status not in (404, 409):  # gone, or not running
                raise

    async def remove(self, id: str) -> None:
        """Kill and remove it with its anonymous volumes; nothing happens when it is gone or going."""
        for again in (True, True, False):
            try:
                await self.client.call(
                    "DELETE", f"/containers/{id}", {"force": True, "v": True}, patience=60.0
                )
                return
            except EngineError as error:
                if error.status in (404, 409):  # gone, or being removed by another
                    return
                if not (again and error.status == 500):
                    raise
                # Podman trips over one that is just ending; when it has ended, it can be removed
                with contextlib.suppress(EngineError):
                    await self.wait(id)

    async def pause(self, id: str) -> None:
        await self._switch(id, "pause")

    async def unpause(self, id: str) -> None:
        await self._switch(id, "unpause")

    async def _switch(self, id: str, verb: str) -> None:
        try:
            await self.client.call("POST", f"/containers/{id}/{verb}")
        except EngineError as error:
            if error.status not in (404, 409, 500):  # gone, ended or so already
                raise

    async def wait(self, id: str) -> int:
        """The exit status, once it has ended."""
        ended = await self.client.call("POST", f"/containers/{id}/wait", patience=None)
        return int(ended["StatusCode"])

    async def inspect(self, id: str) -> State:
        told = await self.client.call("GET", f"/containers/{id}/json")
        state, config = told["State"], told["Config"]
        status = str(state["Status"])
        over = status in ("exited", "dead", "stopped")
        return State(
            id=told["Id"],
            name=told["Name"].lstrip("/"),
            image=config.get("Image", ""),
            status="exited" if status == "stopped" else status,
            exit_status=int(state["ExitCode"]) if over else None,
            out_of_memory=bool(state.get("OOMKilled")),
            error=state.get("Error", ""),
            started_at=state.get("StartedAt", ""),
            labels=dict(config.get("Labels") or {}),
            environment=dict(line.partition("=")[::2] for line in config.get("Env") or ()),
        )

    async def list(self, labels: Mapping[str, str]) -> list[State]:
        """All containers, running or not, that have these labels ("" matches any content), the oldest
        first."""
        wanted = [f"{name}={text}" if text else name for name, text in labels.items()]
        query = {"all": True, "filters": {"label": wanted}}
        rows = await self.client.call("GET", "/containers/json", query)
        return [
            State(
                id=row["Id"],
                name=(row.get("Names") or [""])[0].lstrip("/"),
                image=row.get("Image", ""),
                status=row.get("State", ""),
                exit_status=None,
                out_of_memory=False,
                error="",
                started_at="",
                labels=dict(row.get("Labels") or {}),
            )
            for row in sorted(rows, key=lambda row: int(row.get("Created", 0)))
        ]

    async def attach(self, id: str, *, stdin: bool = False, output: bool = True) -> Stream:
        """A live connection: write with `send`, read with `output_of`. The caller closes it."""
        query = {"stream": True, "stdin": stdin, "stdout": output, "stderr": output}
        return await self.client.open("POST", f"/containers/{id}/attach", query, upgrade=True)

    async def logs(self, id: str, *, follow: bool) -> Stream:
        """All output so far and, with `follow`, what comes until it ends. The caller closes it."""
        query = {"stdout": True, "stderr": True, "follow": follow}
        return await self.client.open("GET", f"/containers/{id}/logs", query, patience=None)

    async def execute(self, id: str, argv: Sequence[str]) -> Stream:
        """A further program in a running container, its input and output as one connection."""
        wishes = {"Cmd": list(argv), "AttachStdin": True, "AttachStdout": True, "AttachStderr": True}
        made = await self.client.call("POST", f"/containers/{id}/exec", body=wishes)
        begin = {"Detach": False, "Tty": False}
        return await self.client.open("POST", f"/exec/{made['Id']}/start", body=begin, upgrade=True)

    def _json(self, spec: Spec) -> Json:
        allowed = spec.allowance
        scratch = f"rw,nosuid,nodev,size={allowed.scratch},mode=1777"
        if self.kind == "podman":
            scratch += ",notmpcopyup"  # it would copy what lies below, and so show what is covered
        folders = [] if spec.writable else ["/tmp", "/run", "/var/tmp"]
        log = "local" if self.kind == "docker" else "k8s-file"
        host: dict[str, Json] = {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "ReadonlyRootfs": not spec.writable,
            "Tmpfs": dict.fromkeys((*folders, *spec.covers), scratch),
            "ShmSize": min(allowed.scratch, 64 << 20),
            "IpcMode": "private",
            "Memory": allowed.memory,
            "MemorySwap": allowed.memory,  # the same: no swap on top
            "NanoCpus": int(min(allowed.cpus, os.cpu_count() or 1) * 1e9),
            "PidsLimit": allowed.processes,
            # Podman's own defaults need a privilege that it does not have everywhere
            "Ulimits": [
                {"Name": name, "Soft": most, "Hard": most}
                for name, most in (("core", 0), ("nofile", FILES), ("nproc", PROCESSES))
            ],
            "Mounts": [_bind(mount) for mount in spec.mounts],
            "RestartPolicy": {"Name": "no"},
            # `local` keeps bytes as they are; Docker's default turns what is no UTF-8 into U+FFFD
            "LogConfig": {"Type": log, "Config": {"max-size": "1g"}} if spec.logged else {"Type": "none"},
        }
        return {
            "Image": spec.image,
            "Cmd": list(spec.command),
            **({} if spec.entrypoint is None else {"Entrypoint": list(spec.entrypoint)}),
            "Env": [f"{name}={text}" for name, text in spec.environment.items()],
            "Labels": dict(spec.labels),
            "WorkingDir": spec.folder,
            "User": spec.user,
            "AttachStdin": spec.stdin != "none",
            "AttachStdout": True,
            "AttachStderr": True,
            "OpenStdin": spec.stdin != "none",
            "StdinOnce": spec.stdin == "once",
            "HostConfig": host,
        }


def _bind(mount: Mount) -> Json:
    return {
        "Type": "bind",
        "Source": str(mount.source),
        "Target": mount.target,
        "ReadOnly": not mount.writable,
        "BindOptions": {"Propagation": "rprivate"},
    }


async def output_of(stream: Stream) -> AsyncIterator[tuple[int, bytes]]:
    """(1 or 2, data) as it comes from an attached program or a log."""
    async for frame in frames(stream.pieces()):
        yield frame


def addresses(environment: Mapping[str, str]) -> list[str]:
    """Where an engine may answer, the likeliest first: what the variables name, then the usual
    sockets that exist and are ours to use."""
    found = [environment[name] for name in ("DOCKER_HOST", "CONTAINER_HOST") if environment.get(name)]
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    home = environment.get("HOME", "")
    usual = ["/var/run/docker.sock"]
    usual += [f"{runtime}/docker.sock", f"{runtime}/podman/podman.sock"] if runtime else []
    usual += [f"{home}/.docker/run/docker.sock"] if home else []
    usual += ["/run/podman/podman.sock"]
    found += [f"unix://{path}" for path in usual if _is_usable_socket(path)]
    return [a for a in dict.fromkeys(found) if a.startswith(("unix://", "tcp://"))]


def _is_usable_socket(path: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(Path(path).stat().st_mode) and os.access(path, os.R_OK | os.W_OK)
    return False


async def find_engine(
    environment: Mapping[str, str] | None = None, *, patience: float = 3.0
) -> Engine | None:
    """The first engine that answers; None without one. Costs some milliseconds."""
    for address in addresses(os.environ if environment is None else environment):
        engine = Engine(address)
        try:
            await engine.info(patience=patience)
        except EngineError:
            continue
        return engine
    return None


async def until_back(engine: Engine, *, longest: float = 2.0) -> None:
    """Return when the engine answers again, asking with growing pauses."""
    pause = 0.05
    while True:
        try:
            await engine.info()
        except EngineGone:
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
        else:
            return
