"""A module for the tests, run as a program: `odd_server.py MARKS [--http PORT]`.

MARKS is a folder in which its tools leave a line for each run, so that a test can count them.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

MARKS = Path(sys.argv[1])
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"

server = MCPServer("odd", version="1.2")


def mark(name: str) -> None:
    with (MARKS / name).open("a") as file:
        file.write("run\n")


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    mark("echo")
    return text


@server.tool()
def crash() -> str:
    """Die in the middle."""
    mark("crash")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def crash_once() -> str:
    """Die the first time."""
    mark("crash_once")
    if (MARKS / "crash_once").read_text().count("run") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@server.tool()
async def hang() -> str:
    """Never answer; leaves a mark when it is told to stop."""
    mark("hang")
    try:
        await asyncio.sleep(1000)
    finally:
        mark("hang_stopped")
    return "never"


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def look() -> dict[str, Any]:
    """Only reads."""
    return {"seen": 3}


@server.tool()
async def steps(context: Context) -> str:
    """Tell how far it is."""
    for step in (1, 2):
        await context.report_progress(step, 2, f"step {step}")
    await context.info("steps were made")
    return "done"


@server.tool()
def media() -> list[Any]:
    """All kinds of content."""
    links = [
        ResourceLink(type="resource_link", uri=f"https://pictures.example/{n}.png", name=f"p{n}")
        for n in range(40)
    ]
    return [
        TextContent(type="text", text="Here you are."),
        ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png"),
        AudioContent(type="audio", data=base64.b64encode(b"RIFFsound").decode(), mime_type="audio/wav"),
        ImageContent(type="image", data="not base64!", mime_type="image/png"),
        EmbeddedResource(
            type="resource", resource=TextResourceContents(uri="memo://a/note.txt", text="a note")
        ),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(
                uri="memo://a/scan.pdf", blob=base64.b64encode(b"%PDF").decode(), mime_type="application/pdf"
            ),
        ),
        *links,
    ]


@server.tool()
def fail() -> str:
    """Fail with a reason."""
    raise ToolError("no such town: Atlantis")


class Colour(BaseModel):
    colour: str = "blue"


def which(context: Context) -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


@server.tool()
def paint(colour: Annotated[Colour, Resolve(which)]) -> str:
    """Ask the person for a colour."""
    mark("paint")
    return f"painted {colour.colour}"


@server.tool()
def noisy() -> str:
    """Print to stdout, which belongs to the protocol."""
    print("a forgotten print", flush=True)
    os.write(1, b"another one\n")
    return "said"


@server.tool()
def big() -> str:
    """A text of a megabyte."""
    return "x" * 1_000_000


@server.tool(name="weird/name [v2].x")
def weird(kind: str, title: str = "Dr") -> str:
    """A name with slashes, brackets, dots; parameters called kind and title."""
    return f"{title} {kind}"


@server.tool()
async def grow(context: Context) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: "new", name="extra", description="It was not there before.")
    await context.session.send_tool_list_changed()
    await context.notify_tools_changed()
    return "grown"


@server.tool()
def spawn() -> int:
    """Start a process that outlives its parent, in a session of its own."""
    import subprocess

    child = subprocess.Popen(
        ["sleep", "1000"],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return child.pid


if __name__ == "__main__":
    print("the odd server starts", file=sys.stderr, flush=True)
    mark("started")
    if "--http" in sys.argv:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[-1]))
    else:
        server.run()
