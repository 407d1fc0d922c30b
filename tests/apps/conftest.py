"""Apps in tests keep their data and look for their settings in the folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TEXTOR_CONFIG", str(tmp_path / "config" / "config.toml"))
    return tmp_path / "data"
