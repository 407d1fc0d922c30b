"""Why an action is asked about: each reason, with the effect that it is about.

`grave` ones hold under every policy, also under `yes`; only a rule that names the action lifts them.
"""

from __future__ import annotations

from typing import NamedTuple

from textor.actions import Effect
from textor.errors import CapabilityError
from textor.making.review import review, source_of, summary
from textor.policy.look import Look
from textor.policy.table import ALLOWED, ALWAYS_ASKED, REASONS


class Concern(NamedTuple):
    text: str
    effect: Effect | None = None
    grave: bool = False


def concerns(call: Look, policy: str) -> list[Concern]:
    """What speaks against doing it at once; nothing: it is allowed."""
    found: list[Concern] = []
    if call.action.doubt:  # understood by its meaning, and not for certain
        found.append(Concern(call.action.doubt, grave=True))
    if call.guarded:
        found.append(Concern("it reaches Textor's own files", grave=True))
    if call.live:
        found.append(Concern("it changes files that run or steer agents by themselves", grave=True))
    for effect in call.capability.effects:
        if (concern := _about(call, effect, policy)) is not None:
            found.append(concern)
    if call.capability.name == "modules.keep":  # what runs in all sessions to come is a person's to decide
        found.append(Concern("it keeps a module for all sessions", grave=True))
    if found and call.capability.name == "modules.load":
        found += _reviewed(call)
    if found and call.labels:
        found.append(Concern(f"what it goes by came from outside ({_sources(call)})"))
    return found


def _about(call: Look, effect: Effect, policy: str) -> Concern | None:
    tainted = bool(call.labels)
    if effect == "network":
        return _network(call, policy)
    if effect == "execute" and call.capability.sandboxed and not call.guarded:
        return None
    if effect in ALWAYS_ASKED:
        return Concern(REASONS[effect], effect, grave=True)
    on_host = call.place == "host"
    if tainted and on_host and effect in ("execute", "write"):
        return Concern(_told(effect, on_host), effect, grave=True)
    if (effect, call.place) not in ALLOWED[policy]:
        return Concern(_told(effect, on_host), effect)
    return None


def _reviewed(call: Look) -> list[Concern]:
    """What rules find in the code of a module, for the person who is asked about loading it."""
    given = call.action.arguments.get("source")
    if not isinstance(given, str) or not given:
        return []
    try:
        text, path = source_of(given, call.workspace, call.judged.get(given))
    except CapabilityError:
        return []  # it cannot be loaded either
    return [Concern(summary(review(text, path.name if path else "")))]


def _told(effect: Effect, on_host: bool) -> str:
    if effect == "write" and on_host:
        return "it writes outside the workspace"
    return REASONS[effect]


def _network(call: Look, policy: str) -> Concern | None:
    """An address that a person or a page named is open; others once there is something to tell."""
    unnamed = [address for address in call.addresses if not call.named(address)]
    if call.addresses and not unnamed and "execute" not in call.capability.effects:
        return None if policy != "deny" else Concern(REASONS["network"], "network")
    text = f"it goes to {unnamed[0]:.100}, which nobody named" if unnamed else REASONS["network"]
    if call.labels and (unnamed or call.private or "execute" in call.capability.effects):
        return Concern(text, "network", grave=True)
    if policy == "yes":
        return None
    local = any("://" in each and not each.lower().startswith(("http://", "https://")) for each in unnamed)
    quiet = policy != "deny" and not call.private and not local and not _reaches_in(unnamed)
    return None if quiet and "execute" not in call.capability.effects else Concern(text, "network")


def _reaches_in(unnamed: list[str]) -> bool:
    from textor.addresses import host_of, is_local

    return any((host := host_of(each)) is None or is_local(host) for each in unnamed)


def _sources(call: Look) -> str:
    shown = ", ".join(call.labels[:3])
    return shown if len(call.labels) <= 3 else f"{shown} and {len(call.labels) - 3} more"
