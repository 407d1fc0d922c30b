"""The machine's load in figures: processor, graphics processor, memory, disk (after SIA)."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Seconds for which a figure of the graphics processor counts as present.
GPU_FRESH = 5.0


@dataclass(frozen=True)
class Load:
    """`cpu` and `gpu` in per cent since the last look (`gpu` 0 without one); the rest in bytes."""

    cpu: int
    gpu: int
    memory_used: int
    memory_total: int
    disk_used: int
    disk_total: int


class System:
    """Looks at this machine. `gpu` gives the use of the graphics processor in per cent."""

    def __init__(self, gpu: Callable[[], int] | None = None) -> None:
        self._gpu = gpu or (Nvidia() if shutil.which("nvidia-smi") else lambda: 0)

    def load(self, folder: Path) -> Load:
        """The load now; the disk is the one that `folder` lies on."""
        import psutil

        memory = psutil.virtual_memory()
        used = total = 0
        with suppress(OSError):
            disk = shutil.disk_usage(folder)
            used, total = disk.used, disk.total
        cpu = round(psutil.cpu_percent(interval=None))
        return Load(cpu, self._gpu(), memory.total - memory.available, memory.total, used, total)


class Nvidia:
    """The use of the busiest NVIDIA processor. The program takes its time, so it is asked in a
    thread and the last known figure is given at once."""

    def __init__(self, program: str = "nvidia-smi") -> None:
        self._program = program
        self._last = 0
        self._asked = float("-inf")
        self._thread: threading.Thread | None = None

    def __call__(self) -> int:
        idle = self._thread is None or not self._thread.is_alive()
        if idle and time.monotonic() - self._asked > GPU_FRESH:
            self._asked = time.monotonic()
            self._thread = threading.Thread(target=self.ask, name="nvidia-smi", daemon=True)
            self._thread.start()
        return self._last

    def ask(self) -> None:
        """Ask the program; what it cannot tell leaves the last figure."""
        query = [self._program, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        with suppress(OSError, subprocess.SubprocessError, ValueError):
            told = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True)
            self._last = max(int(line) for line in told.stdout.split())
