"""The client under test for `@modelcontextprotocol/conformance`: a Textor module at an address.

The suite starts it as `conformance_client.py URL` with the scenario's name in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
from module_parts import Desk

from textor.capabilities.modules.module import Module
from textor.capabilities.modules.questions import Answer, Question
from textor.capabilities.modules.spec import Login, ModuleSpec
from textor.capabilities.port import Scope

METADATA = "https://conformance-test.local/client-metadata.json"
ARGUMENTS: dict[str, dict[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}


async def accept(question: Question, scope: Scope | None) -> Answer:
    """A person who takes what is proposed, with a browser that follows where it is led."""
    if question.url:
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            await browser.get(question.url)
    return Answer("accept")


def login() -> Login | None:
    """What the suite hands to the scenarios that have credentials."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if not scenario.startswith("auth/"):
        return None
    return Login(
        "client_credentials" if "client-credentials" in scenario else "authorization_code",
        given.get("client_id", ""),
        given.get("client_secret", ""),
        metadata_url=METADATA if scenario == "auth/basic-cimd" else "",
    )


async def main(address: str) -> int:
    """List the tools and call each once."""
    module = Module(ModuleSpec("tested", address=address, login=login()), ask=accept)
    try:
        await module.ready()
        print(f"{module.server}, protocol {module.protocol}, tools: {', '.join(module.tools.usable)}")
        for tool in module.tools.usable.values():
            outcome = await module.call(tool, ARGUMENTS.get(tool.wire, {}), Desk(Path()))
            print(f"{tool.wire}: {outcome.state}: {outcome.text}")
            if outcome.state != "done":
                return 1
        return 0
    finally:
        await module.close()


if __name__ == "__main__":
    print(os.environ.get("MCP_CONFORMANCE_SCENARIO", ""))
    raise SystemExit(asyncio.run(main(sys.argv[-1])))
