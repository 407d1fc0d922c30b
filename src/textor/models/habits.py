"""What was found out about a server while talking to it; remembered as long as the process lives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from textor.models.server import Server, SystemRole
from textor.values import Value

#: Reported tokens for one that we estimate, where nothing was reported yet.
UNKNOWN_RATIO = 1.0

#: A prompt that took less than this share of the tokens that it should was cut by the server.
CUT_SHARE = 0.6

#: The same where no earlier prompt told how far our estimate is off for this model and language.
CUT_SHARE_UNKNOWN = 0.35

#: How servers say that they take no system messages at all.
_REFUSALS = ("not support", "unsupported", "unknown role", "invalid role")

#: What complaints about media speak of, and how they say that none of its kind is taken.
_MEDIA = ("image", "audio", "video", "file", "modal", "vision", "content", "string")
_NONE_TAKEN = ("support", "must be a string", "expected", "unknown variant", "not a multimodal", "at most 0")

#: Prompts shorter than this (estimated tokens) say nothing of the server's window.
TELLING = 1_000


@dataclass
class Habits:
    """How one model on one server behaves.

    `system_role` is where it takes system messages; `alternate`: it wants user and assistant to
    take turns; `after_outcome`: it takes a user message behind an outcome; `ratio` is reported
    tokens for one that we estimate, a running mean.
    """

    system_role: SystemRole
    alternate: bool = False
    after_outcome: bool = True
    ratio: float = UNKNOWN_RATIO
    reports: int = 0
    told_window: int = 0  #: the cut that was already told, in tokens; 0: none
    refused: set[str] = field(default_factory=set)  #: kinds of media, and handles of single ones

    def tokens(self, estimate: float) -> int:
        """An estimate, corrected by what the server reported so far."""
        return max(1, round(estimate * self.ratio)) if estimate > 0 else 0

    def reported(self, estimate: float, tokens: int) -> bool:
        """Learn from a prompt's reported tokens. False: the server has read much less than was
        sent (case S5); such a report teaches nothing about the ratio."""
        if estimate <= 0 or tokens <= 0:
            return True
        share = tokens / (estimate * self.ratio)
        if estimate >= TELLING and share < (CUT_SHARE if self.reports else CUT_SHARE_UNKNOWN):
            return False
        self.reports += 1
        weight = 1 / min(self.reports, 8)
        self.ratio += weight * (tokens / estimate - self.ratio)
        return True

    def learn_from(self, complaint: str, later_system: bool, media: Iterable[Value] = ()) -> str:
        """Change manners after a refused request, from the server's own words (case S1).

        `later_system`: the prompt had system messages after the first; `media` are those in it.
        Returns what will be done differently, for a person, or "" when the complaint is about
        something else.
        """
        text = complaint.casefold()
        if "only user and assistant" in text and self.system_role != "none":
            self.system_role = "none"
            return "it takes no system messages; they go as the user's"
        if "system" in text and any(word in text for word in ("role", "message", "prompt")):
            if later_system and self.system_role == "all":
                self.system_role = "first"
                return "it takes a system message only at the beginning; later ones go as the user's"
            if self.system_role != "none" and any(word in text for word in _REFUSALS):
                self.system_role = "none"
                return "it takes no system messages; they go as the user's"
        if "alternat" in text and not self.alternate:
            self.alternate = True
            if self.system_role == "all":
                self.system_role = "first"
            return "it wants user and assistant to take turns; neighbouring messages go as one"
        if re.search(r"role\W+user\W+after role\W+tool", text) and self.after_outcome:  # Mistral
            self.after_outcome = False
            return "it takes no user message behind an outcome; the two go as one"
        return self._without(text, [v for v in media if not {v.kind, v.handle} & self.refused])

    def _without(self, complaint: str, media: list[Value]) -> str:
        """Leave out media that were complained of: all of the kind, or these alone."""
        if not media or not any(word in complaint for word in _MEDIA):
            return ""
        kinds = sorted({v.kind for v in media})
        kinds = [kind for kind in kinds if kind in complaint] or kinds
        if any(word in complaint for word in _NONE_TAKEN):
            self.refused.update(kinds)
            return f"it takes no {' and no '.join(kinds)}; a note goes instead"
        self.refused.update(v.handle for v in media if v.kind in kinds)
        return f"it does not take the {' and '.join(kinds)} of this prompt; a note goes instead"


_habits: dict[tuple[str, str], Habits] = {}


def habits_of(server: Server) -> Habits:
    """The habits of a model on a server, shared by all that talk to it."""
    return _habits.setdefault((server.base_url, server.name), Habits(server.system_role))


def estimate(text: str) -> float:
    """Tokens of `text` by a rule of thumb: four ASCII characters or one and a half others."""
    if text.isascii():
        return len(text) / 4
    others = len(text.encode("utf-8", "surrogatepass")) - len(text)  # 1 for é, 2 for 中, 3 for an emoji
    return (len(text) + 1.5 * others) / 4
