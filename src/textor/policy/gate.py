"""The gate's ruling: rules first, then what speaks against the action, then kept answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textor.actions import Action, Capability
from textor.kernel.gate import Policy, Ruling
from textor.kernel.state import AgentState, State
from textor.policy.concerns import Concern, concerns
from textor.policy.look import Look, look
from textor.policy.rules import first, kept, names
from textor.policy.table import ALWAYS_ASKED
from textor.settings import RuleSettings


class Gate:
    """A `kernel.gate.Policy`.

    `rules` are those of the configuration, `stored` gives what the journal of `machine` holds (the
    "always" answers among it), `guarded` are Textor's own files, which no policy opens.
    """

    def __init__(
        self,
        rules: Sequence[RuleSettings] = (),
        stored: Callable[[], Mapping[tuple[str, str], Any]] = dict,
        guarded: Sequence[Path] = (),
    ) -> None:
        self.rules = tuple(rules)
        self.guarded = tuple(guarded)
        self._stored = stored

    def __call__(self, action: Action, capability: Capability, state: State, agent: AgentState) -> Ruling:
        """The ruling for one action of an agent, as things stand."""
        call = look(action, capability, state, agent, self.guarded)
        rule = first(self.rules, call)
        if rule is not None and rule.verdict == "deny":
            return Ruling("deny", "a rule of the configuration denies it", call.digest)
        if call.own:
            return Ruling("allow", "", call.digest)
        against = concerns(call, state.policy)
        if rule is not None and rule.verdict == "ask":
            against = [Concern("a rule of the configuration says so"), *against]
        elif rule is not None:
            against = [] if names(rule) else _with_grave(against)
        elif against and self._answered(call, state):
            against = [c for c in against if c.effect in ALWAYS_ASKED]
        return _ruled(against, state, call.digest)

    def _answered(self, call: Look, state: State) -> bool:
        """Whether a person answered this beforehand, for the session or for always."""
        if call.digest in state.rules:
            return True
        answers = [*kept(state.stored), *kept(self._stored())]
        return any(answer.covers(call) for _, answer in answers)


def guarded_by(policy: Policy) -> tuple[Path, ...]:
    """The files that a policy guards; none for one that is not ours."""
    return policy.guarded if isinstance(policy, Gate) else ()


def _with_grave(against: list[Concern]) -> list[Concern]:
    """A rule for many capabilities at once lifts only what a policy could as well."""
    return against if any(c.grave for c in against) else []


def _ruled(against: list[Concern], state: State, digest: str) -> Ruling:
    if not against:
        return Ruling("allow", "", digest)
    reason = "; ".join(dict.fromkeys(c.text for c in against))
    if state.policy == "deny":
        return Ruling("deny", f"the policy of this session denies it: {reason}", digest)
    if not state.attended:
        way = "a rule in the configuration" if any(c.grave for c in against) else "--yes"
        why = f"{reason}, and nobody is here to be asked (a person can allow it with {way})"
        return Ruling("deny", why, digest)
    return Ruling("ask", reason, digest)
