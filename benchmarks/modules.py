"""What the supervision of modules costs: the median of an echo call through `Module`, and through the
SDK's client alone, in turns within one run.

    python benchmarks/modules.py [--calls 300] [--rounds 6]

Both talk to a server of their own over stdio. The aim is at most 1.3 times the bare client.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp import Client, StdioServerParameters

from textor.capabilities.modules.module import Module
from textor.capabilities.modules.spec import ModuleSpec
from textor.journal.blobs import MemoryBlobs
from textor.values import Value

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("echo")
@server.tool()
async def echo(text: str) -> str:
    return text
server.run()
"""
AIM = 1.3


class Desk:
    """The scope of a call."""

    session, agent, key = "s", "main", "a"
    workspace = Path()
    blobs = MemoryBlobs()

    def value(self, handle: str) -> Value:
        raise KeyError(handle)

    def progress(self, text: str) -> None:
        return None


async def timed(call: Callable[[], Awaitable[object]], count: int) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await call()
        times.append(time.perf_counter() - began)
    return times


async def main(calls: int, rounds: int, file: Path) -> int:
    module = Module(ModuleSpec("echo", (sys.executable, str(file))))
    await module.ready()
    tool, desk = module.tools.usable["echo.echo"], Desk()
    target = StdioServerParameters(command=sys.executable, args=[str(file)])
    ours: list[float] = []
    bare: list[float] = []
    async with Client(target) as client:
        await client.list_tools()

        async def through() -> object:
            return await module.call(tool, {"text": "hello"}, desk)

        async def plainly() -> object:
            return await client.call_tool("echo", {"text": "hello"})

        for _ in range(rounds):
            await timed(through, 10), await timed(plainly, 10)
            ours += await timed(through, calls)
            bare += await timed(plainly, calls)
    await module.close()
    a, b = statistics.median(ours) * 1000, statistics.median(bare) * 1000
    print(f"echo over stdio, median of {len(ours)}: module {a:.2f} ms, bare SDK client {b:.2f} ms")
    print(f"{a / b:.2f} times (aim: at most {AIM})")
    return 0 if a <= b * AIM else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        echo = Path(folder) / "echo.py"
        echo.write_text(SERVER)
        raise SystemExit(asyncio.run(main(args.calls, args.rounds, echo)))
