"""What it costs to begin: CPU of `textor --help`, modules and memory of `import textor`.

Goals (issue 2): at most 250 ms of CPU, 350 modules and 45 MB. `import textor` is measured with its
public names loaded, since a program that imports them uses them. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys

RUNS = 7
GOALS = {"help_cpu_ms": 250.0, "modules": 350.0, "memory_mb": 45.0}

IMPORT = """
import json, resource, sys
import textor
from textor import {names}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform != "darwin" else 1024)
print(json.dumps([len(sys.modules), peak / 1024]))
"""


def cpu_ms(command: list[str]) -> float:
    """User and system time of a command, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def imported(names: str) -> tuple[int, float]:
    """Modules and peak memory in MB after `from textor import names`."""
    command = [sys.executable, "-c", IMPORT.format(names=names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules, memory = json.loads(done.stdout)
    return modules, memory


def main() -> int:
    help_cpu = statistics.median(cpu_ms([sys.executable, "-m", "textor", "--help"]) for _ in range(RUNS))
    modules, memory = imported("Agent, capability")
    measured = {"help_cpu_ms": help_cpu, "modules": modules, "memory_mb": memory}
    for name, value in measured.items():
        print(f"{name:12} {value:8.1f}   goal {GOALS[name]:g}")
    return int(any(value > GOALS[name] for name, value in measured.items()))


if __name__ == "__main__":
    sys.exit(main())
