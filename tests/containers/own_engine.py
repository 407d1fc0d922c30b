"""A Docker of a test's own, that can be stopped and started without harm to anybody."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

from textor.containers.engine import Engine, until_back

from .conftest import BUSYBOX


class OwnEngine:
    """`live_restore`: whether its containers go on while it is stopped."""

    def __init__(self, *, live_restore: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="textor-engine-"))
        self.address = f"unix://{self.folder}/s"
        self.live_restore = live_restore
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> Engine:
        # in a network of its own: with `--bridge none` it would remove that of the other engine
        argv = ["unshare", "--net", "dockerd", "--host", self.address, "--pidfile", f"{self.folder}/pid"]
        argv += ["--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec"]
        argv += ["--bridge", "none", "--iptables=false", "--ip6tables=false"]
        argv += ["--live-restore"] if self.live_restore else []
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it must outlive this loop
                argv, stdout=log, stderr=log, start_new_session=True
            )
        engine = Engine(self.address)
        async with asyncio.timeout(60):
            await until_back(engine, longest=0.2)
        return engine

    async def with_image(self, source: Engine) -> Engine:
        """Start it for the first time, with the image that `source` has."""
        engine = await self.start()
        stream = await source.client.open("GET", f"/images/{BUSYBOX}/get")
        content = b"".join([piece async for piece in stream.pieces()])
        stream.close()
        await engine.client.call("POST", "/images/load", body=content)
        return engine

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        if self.live_restore and self._process is not None:  # what a test left would outlive it
            docker = f"docker -H {self.address}"
            subprocess.run(f"{docker} rm -f $({docker} ps -aq)", shell=True, capture_output=True, check=False)
        self.stop()
        if self.live_restore:  # it leaves its folder mounted onto itself
            subprocess.run(["umount", "--lazy", "--recursive", f"{self.folder}/data"], check=False)
        subprocess.run(["rm", "-rf", str(self.folder)], check=True)
