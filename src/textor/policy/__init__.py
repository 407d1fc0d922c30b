"""The policy of the gate: what is allowed, asked about or denied (law 8).

table       effects x place x the session's policy: what is open by default
look        one action as the gate looks at it: where it acts, what it depends on, what it names
concerns    why an action is asked about
commands    what a rule about a shell command covers
rules       rules of the configuration, and answers that hold for longer than once
gate        all of it together: the ruling
labels      how outside data keeps its labels through files and outcomes
"""

from textor.policy.gate import Gate
from textor.policy.labels import Labelling
from textor.policy.table import POLICIES

__all__ = ["POLICIES", "Gate", "Labelling"]
