"""An MCP server written by hand, of an older protocol, that lists whatever a JSON file says.

`raw_server.py FILE`: a list of tools, or of pages of tools. A call gives its arguments back. Lines
that are no protocol come first, as from a program that forgot a print.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LISTED = json.loads(Path(sys.argv[1]).read_text())
PAGES = LISTED if LISTED and isinstance(LISTED[0], list) else [LISTED]


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        info = {"name": "raw", "version": "0"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "tools/list":
        page = int(params.get("cursor") or 0)
        more = {"nextCursor": str(page + 1)} if page + 1 < len(PAGES) else {}
        return {"tools": PAGES[page], **more}
    if method == "tools/call":
        text = json.dumps({"called": params["name"], "with": params.get("arguments")})
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"n": "no number"}}
    if method == "ping":
        return {}
    return None


print("Loading ...", flush=True)
print("{not json", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    told = (
        {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
    )
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **told}), flush=True)
