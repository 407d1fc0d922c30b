"""A module that a person added serves a session, found by meaning and used through `use`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from textor.testing import Call, Reply

from .conftest import Program

Scripted = Callable[..., Any]

SERVER = '''
from mcp.server import MCPServer

server = MCPServer("tides")

@server.tool()
def high_tide(harbour: str) -> str:
    """When the tide is high in a harbour."""
    return f"In {harbour} the tide is high at 14:07."

server.run()
'''


def test_a_module_is_added_found_and_used(textor: Program, scripted: Scripted) -> None:
    program = textor.home / "tides.py"
    program.write_text(SERVER)
    added = textor("modules", "add", "tides", "--", sys.executable, str(program))
    assert added.returncode == 0, added.stderr
    tested = textor("modules", "test", "tides")
    assert tested.returncode == 0 and "high_tide" in tested.stdout, tested.stdout + tested.stderr
    use = Call("use", {"name": "tides.high_tide", "arguments": {"harbour": "Ostend"}})
    with scripted([Reply(calls=(use,)), "High tide in Ostend is at 14:07."]) as server:
        done = textor("run", "--yes", "When is high tide in the harbour of Ostend?")
        assert (done.returncode, done.stdout) == (0, "High tide in Ostend is at 14:07.\n"), done.stderr
        first = json.dumps(server.requests[0].messages)
        assert "tides.high_tide(harbour: string)" in first
        assert "the tide is high at 14:07" in json.dumps(server.requests[1].messages)
    assert "tides" in textor("modules").stdout
    assert textor("modules", "remove", "tides").returncode == 0
