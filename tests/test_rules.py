"""The rules of this repository that are checked by programs of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_long_function_and_a_long_kernel_are_told(tmp_path: Path) -> None:
    check = script("check_kernel")
    kernel = tmp_path / "kernel"
    (kernel / "hosts").mkdir(parents=True)
    (kernel / "a.py").write_text("def f():\n" + "    x = 1\n" * 59)
    assert check.faults(kernel) == []
    (kernel / "hosts" / "b.py").write_text("async def g():\n" + "    x = 1\n" * 60)
    (sentence,) = check.faults(kernel)
    assert sentence == "kernel/hosts/b.py:1: g has 61 lines; 60 are allowed."
    (kernel / "c.py").write_text("x = 1\n" * 1400)
    assert check.faults(kernel)[-1] == "kernel/ has 1521 lines; 1500 are allowed."


SKIPPING = """
import pytest

def test_bare():
    pytest.skip("no reason")

@pytest.mark.needs_data
def test_excused():
    pytest.skip("no data")

@pytest.mark.xfail
def test_expected():
    assert False

def test_well():
    pass
"""


@pytest.mark.parametrize(("ci", "code", "closing"), [("true", 1, "1 failed"), ("", 0, "2 skipped")])
def test_ci_lets_no_test_skip_without_an_excuse(tmp_path: Path, ci: str, code: int, closing: str) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_a.py").write_text(SKIPPING)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  needs_data: x\n  needs_hardware: x\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == code, done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert closing in last and "1 passed" in last and "1 xfailed" in last
    assert "needs_data: 1 left out" in done.stdout
