"""The default policy: which effects are open where, by the name of the session's policy."""

from __future__ import annotations

from textor.actions import Effect
from textor.capabilities.places import Place

POLICIES: dict[str, str] = {
    "ask": "reading is allowed, everything else is asked about",
    "edits": "reading and writing in the workspace are allowed",
    "yes": "all is allowed but sending, deleting of others' things and paying",
    "deny": "only reading is allowed, nothing is asked",
}

#: What a policy allows without asking, as (effect, place). Apart from it: execution in the sandbox,
#: which is allowed, and the network, which depends on the address.
ALLOWED: dict[str, frozenset[tuple[Effect, Place]]] = {
    "ask": frozenset({("read", "workspace")}),
    "deny": frozenset({("read", "workspace")}),
    "edits": frozenset({("read", "workspace"), ("write", "workspace")}),
    "yes": frozenset(
        (effect, place)
        for effect in ("read", "write", "execute", "network")
        for place in ("workspace", "host")
    ),
}

#: What no policy and no answer at the gate allows beforehand; only a rule that names it does.
ALWAYS_ASKED: frozenset[Effect] = frozenset({"outward", "spend"})

REASONS: dict[Effect, str] = {
    "read": "it reads outside the workspace",
    "write": "it writes files",
    "execute": "it runs a program on this machine",
    "network": "it uses the network",
    "outward": "it sends, publishes or changes something of others",
    "spend": "it spends money",
}
