"""The gate: the one place where an action is allowed, asked about or denied (law 8).

First form: by effect and place. A verdict is bound to the digest of capability, arguments and
place, so an approval covers exactly what was shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from textor.actions import Action, Capability, Effect
from textor.capabilities.places import Place
from textor.values import sha256_of

Verdict = Literal["allow", "ask", "deny"]

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


def digest_of(action: Action, place: Place) -> str:
    """What an approval is bound to."""
    told = (action.capability, action.arguments, place)
    return sha256_of(msgspec.json.encode(told, order="sorted"))


def judge(
    action: Action,
    capability: Capability,
    place: Place,
    *,
    policy: str,
    attended: bool,
    rules: Collection[str] = (),
) -> tuple[Verdict, str, str]:
    """(verdict, reason, digest) for one action.

    `rules` are digests that a person allowed for good; they never cover `outward` and `spend`.
    """
    digest = digest_of(action, place)
    allowed = _ALLOWED[policy]
    open_effects = [
        effect
        for effect in capability.effects
        if (effect, place) not in allowed
        and not (effect == "execute" and capability.sandboxed)
        and not (digest in rules and effect not in ("outward", "spend"))
    ]
    if not open_effects:
        return "allow", "", digest
    reason = "; ".join(_REASONS[effect] for effect in open_effects)
    if policy == "deny":
        return "deny", f"the policy of this session denies it: {reason}", digest
    if not attended:
        return "deny", f"{reason}, and nobody is here to be asked (a person can allow it with --yes)", digest
    return "ask", reason, digest
