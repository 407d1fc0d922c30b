"""Names of capabilities, made from what programs call themselves: `email.set_subject`.

A name is given once, when a capability is registered, and kept with it; so the way back is the
book itself, and a name never changes hands because something else came or went.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from textor.values import free_name, sha256_of

#: Words that say nothing in a name.
_SMALL = frozenset(
    re.findall(r"\w+", "a an the to at with of in for by my your its this that from and as into")
)
LONGEST = 40  #: characters of a part; the whole has to fit the wires (64)


def slug(text: str) -> str:
    """Lower-case ASCII words joined by `_`; of a text without any, a hash."""
    plain = text.encode("ascii", "ignore").decode().lower()
    found = "_".join(re.findall(r"[a-z0-9]+", plain))[:LONGEST].strip("_")
    if not found or found[0].isdigit():
        found = f"x{found or sha256_of(text.encode())[:8]}"
    return found


def area_of(app_class: str, taken: Collection[str]) -> str:
    """`column chart` -> `column_chart`; with a number where another class or provider has it."""
    return free_name(slug(app_class)[: LONGEST // 2].rstrip("_"), taken)


def verb_of(action: str, app_class: str, given: str, taken: Collection[str]) -> str:
    """`set email subject to []` of the class email -> `set_subject`; a given name as it is."""
    if given:
        return free_name(slug(given), taken)
    own = set(re.findall(r"\w+", app_class.lower()))
    words = re.findall(r"\w+", re.sub(r"\[[^\[\]]*\]", " ", action).lower())
    kept = [w for w in words if w not in own and w not in _SMALL] or words
    return free_name(slug(" ".join(kept)), taken)


def in_words(action: str) -> str:
    """`set email subject to []` -> `set email subject`, for a sentence."""
    words = re.sub(r"\[[^\[\]]*\]", " ", action).split()
    while len(words) > 1 and words[-1].lower() in _SMALL:
        words.pop()
    return " ".join(words)
