"""The policy of the gate: what is allowed, asked about or denied, by effect and place.

First form: effects x place x the session's policy, and the digests that a person allowed.
"""

from __future__ import annotations

from pathlib import Path

from textor.actions import Action, Capability, Effect
from textor.capabilities.places import Place, place
from textor.kernel.gate import Ruling, digest_of
from textor.kernel.state import AgentState, State

POLICIES: dict[str, str] = {
    "ask": "reading is allowed, everything else is asked about",
    "edits": "reading and writing in the workspace are allowed",
    "yes": "all is allowed but sending, deleting of others' things and paying",
    "deny": "only reading is allowed, nothing is asked",
}

#: What a policy allows without asking, as (effect, place). `sandbox` execution is separate.
_ALLOWED: dict[str, frozenset[tuple[Effect, Place]]] = {
    "ask": frozenset({("read", "workspace")}),
    "deny": frozenset({("read", "workspace")}),
    "edits": frozenset({("read", "workspace"), ("write", "workspace")}),
    "yes": frozenset(
        (effect, place)
        for effect in ("read", "write", "execute", "network")
        for place in ("workspace", "host")
    ),
}

_REASONS: dict[Effect, str] = {
    "read": "it reads outside the workspace",
    "write": "it writes files",
    "execute": "it runs a program on this machine",
    "network": "it uses the network",
    "outward": "it sends, publishes or changes something of others",
    "spend": "it spends money",
}


def rule(action: Action, capability: Capability, state: State, agent: AgentState) -> Ruling:
    """The ruling for one action of an agent, as things stand."""
    assert state.created is not None
    where = place(action, capability, Path(state.created.workspace))
    digest = digest_of(action, where)
    allowed = _ALLOWED[state.policy]
    open_effects = [
        effect
        for effect in capability.effects
        if (effect, where) not in allowed
        and not (effect == "execute" and capability.sandboxed)
        and not (digest in state.rules and effect not in ("outward", "spend"))
    ]
    if not open_effects:
        return Ruling("allow", "", digest)
    reason = "; ".join(_REASONS[effect] for effect in open_effects)
    if state.policy == "deny":
        return Ruling("deny", f"the policy of this session denies it: {reason}", digest)
    if not state.attended:
        why = f"{reason}, and nobody is here to be asked (a person can allow it with --yes)"
        return Ruling("deny", why, digest)
    return Ruling("ask", reason, digest)
