"""Law 2 under SIGKILL at every append."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_a_kill_at_every_append_of_a_ten_action_task(tmp_path: Path) -> None:
    sweep = Path(__file__).with_name("crash_sweep.py")
    ran = subprocess.run([sys.executable, str(sweep), str(tmp_path)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    reports = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(reports) >= 2 * 2 * 10  # two writes an iteration, each side of each
    for report in reports:
        assert report["reply"] == "All ten are dealt with.", report
        assert not report["gaps"], report
        assert report["outcomes"] == report["distinct"] == 10, report
        # what may not be repeated ran at most once; only the one under way was run again
        assert all(name.startswith("again") for name in report["repeated"]), report
        assert len(report["repeated"]) <= 1, report
        assert len(report["unknown"]) <= 1, report
        # an action whose fate is unknown either took effect or did not: nothing else was lost
        assert report["effects"] >= 10 - len(report["unknown"]), report
    assert any(report["unknown"] for report in reports)
    assert any(report["repeated"] for report in reports)
