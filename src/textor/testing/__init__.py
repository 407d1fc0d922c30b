"""Stand-ins for language models, for tests of agents and of Textor itself.

`ScriptedModel` answers in process; `ScriptedServer` is a real OpenAI-compatible HTTP server.

```python
from textor.testing import Call, Reply, ScriptedServer

with ScriptedServer([Reply(calls=(Call("files_list", {"path": "."}),)), "Two files."]) as server:
    ...  # point a provider's base_url at server.url, run, then look at server.requests
```
"""

from __future__ import annotations

from textor.testing.model import Asked, ScriptedModel
from textor.testing.script import Call, Flag, Gate, Reply
from textor.testing.server import DONE, Raw, Request, ScriptedServer, Status, sse

__all__ = [
    "DONE",
    "Asked",
    "Call",
    "Flag",
    "Gate",
    "Raw",
    "Reply",
    "Request",
    "ScriptedModel",
    "ScriptedServer",
    "Status",
    "sse",
]
