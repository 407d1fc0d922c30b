"""The real embedding model, fetched once and shared, and the labelled lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from textor.actions import Capability, Catalogue
from textor.capabilities.listed import read_capabilities
from textor.dialects.matching import Matcher
from textor.memory.embedder import MiniLM

DATA = Path(__file__).resolve().parent.parent / "data"


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    made = MiniLM()
    made.fetch()
    return made


@pytest.fixture(scope="session")
def matcher(minilm: MiniLM) -> Matcher:
    return Matcher(minilm)


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue(read_capabilities(DATA / "action_matching_capabilities.json"))


@pytest.fixture(scope="session")
def labelled() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "action_matching_dev.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="session")
def article() -> tuple[Catalogue, list[dict[str, Any]]]:
    """The capabilities and the 25 lines of the AIE article: phrases and nothing else."""
    told = json.loads((DATA / "aie_lines.json").read_text("utf-8"))
    return Catalogue([phrased(phrase) for phrase in told["capabilities"]]), told["lines"]


def phrased(phrase: str, name: str = "", purpose: str = "", examples: tuple[str, ...] = ()) -> Capability:
    """A capability with one phrase, whose brackets are texts."""
    names = [f"p{number}" for number in range(phrase.count("[]"))]
    schema = {"type": "object", "properties": {n: {"type": "string"} for n in names}, "required": names}
    return Capability(name or phrase, purpose, schema, phrases=(phrase,), examples=examples)
