"""The client library is imported when a request is made, not before."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import textor.models.registry, textor.models.discovery, textor.testing
from textor.models.remote import RemoteModel
model = RemoteModel(textor.models.registry.resolve("oai:gpt-4o", {}, {"OPENAI_API_KEY": "k"}))
model.count("text")
heavy = {"pydantic_ai", "openai", "httpx2", "genai_prices", "pydantic"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


def test_nothing_heavy_is_imported_before_the_first_request() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=100)
