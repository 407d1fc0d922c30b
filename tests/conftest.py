"""What holds for all tests: no settings of the machine reach them, and CI skips nothing unsaid."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Other programs run on the same machine, so a slow example is no fault.
settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("usual"), derandomize=True, print_blob=True)
settings.register_profile("fuzz", settings.get_profile("usual"), max_examples=20_000)
IN_CI = os.environ.get("CI") == "true"
settings.load_profile("ci" if IN_CI else "usual")

#: The only reasons for which CI may leave a test out.
EXCUSES = ("needs_hardware", "needs_data")


@pytest.fixture(scope="session", autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Configuration, keys and state of the person who runs the tests stay out of them.

    The data folder stays: that is where the model in the box lies.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.endswith(("_API_KEY", "_BASE_URL")) or name in ("TEXTOR_CONFIG", "TEXTOR_MODEL"):
                patch.delenv(name)
        home = tmp_path_factory.mktemp("home")
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        yield


def _excused(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in EXCUSES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips itself without an excuse has failed."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail") and not _excused(item):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI without one of the marks {EXCUSES}: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that is skipped as a whole."""
    report = yield
    if IN_CI and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped as a whole in CI: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests were left out, for which reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    for mark in EXCUSES:
        if count := sum(1 for report in skipped if mark in report.keywords):
            terminalreporter.write_line(f"{mark}: {count} left out")
