"""Laws 1 to 3 under SIGKILL at every point of a session with containers and children."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from textor.containers.engine import Engine


@pytest.mark.timeout(900)  # about a minute on two quiet cores
def test_a_kill_at_every_point_of_a_session_with_containers_and_children(
    engine: Engine, tmp_path: Path
) -> None:
    root = tmp_path / f"sweep-{abs(hash(tmp_path)) % 10**6}"
    root.mkdir()
    sweep = Path(__file__).with_name("session_sweep.py")
    ran = subprocess.run([sys.executable, str(sweep), str(root)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    *reports, whole = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [report for report in reports if report["faults"]] == []
    assert whole["points"]["append"] >= 30 and whole["points"]["request"] >= 9, whole
    # the last points are not always reached: what several agents do at once is appended together
    assert len(reports) >= 2 * sum(whole["points"].values()) - 8
    # no action made or started a container twice, whatever became of it
    assert (whole["twice"], whole["made"] >= 6 * len(reports)) == ([], True)
    # a write that was under way is not repeated, and the model is told that it is not known
    assert {report["unknown"] for report in reports} == {0, 1}
