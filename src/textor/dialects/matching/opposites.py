"""The contradiction guard: a line that says the opposite of an action is near it in every other way.

`close the email application` and `start email application` have a cosine of 0.8, and a negation
changes it even less. So three things are looked for in words:

* a negation in the line that no view of the capability has;
* a verb in the line whose opposite begins the views of the capability;
* a verb of which no view has a synonym, and that reverses something (`close`, `delete`, `undo` …)
  or is an operation of its own (`copy`, `print`, `rename` …).

Any of them keeps a line from being a match. English, with the negations of some other languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from textor.dialects.matching.words import stem

_NEGATIONS = frozenset(
    [
        "not",
        "never",
        "without",
        "no",
        "don't",
        "dont",
        "doesn't",
        "didn't",
        "won't",
        "can't",
        "cannot",
        "shouldn't",
        "mustn't",
        "isn't",
        "avoid",
        "refrain",
        "except",
        "unless",
        "neither",
        "nor",
        "instead",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "nie",
        "niemals",
        "ohne",
        "pas",
        "jamais",
        "sans",
        "nunca",
        "jamás",
        "sin",
        "nem",
        "não",
        "sem",
        "non",
        "mai",
        "senza",
        "nie",
        "bez",
        "nigdy",
        "не",
        "никогда",
        "без",
        "niet",
        "geen",
        "nooit",
    ]
)
_NEGATING_SIGNS = re.compile("[不别別勿没沒]")

#: Verbs that mean about the same. A line and a capability that share a group do not contradict.
_GROUPS = {
    "begin": "start open launch begin initiate boot compose",
    "make": "create make new build generate",
    "add": "add append attach insert include put enclose",
    "remove": "remove delete erase drop discard trash cancel clear purge wipe detach eliminate exclude "
    "withdraw revoke uninvite scrap empty bin destroy unlink omit",
    "close": "close quit exit terminate shut kill end leave abort finish minimize",
    "stop": "stop pause halt hold suspend interrupt freeze",
    "play": "play",
    "resume": "resume continue unpause proceed",
    "restore": "restore recover undelete unarchive reinstate",
    "undo": "undo revert rollback reset reverse cancel",
    "back": "previous back backward backwards preceding prior rewind",
    "forward": "next following forward skip advance",
    "decline": "decline reject refuse deny dismiss ignore",
    "accept": "accept approve confirm allow invite permit agree",
    "send": "send dispatch deliver submit mail post forward",
    "get": "receive fetch download pull recall unsend",
    "upload": "upload push",
    "lock": "lock secure encrypt",
    "unlock": "unlock decrypt",
    "enable": "enable activate",
    "disable": "disable deactivate mute silence",
    "show": "show display reveal unhide expand",
    "hide": "hide collapse conceal",
    "raise": "increase raise louder brighter enlarge maximize higher up",
    "lower": "decrease lower reduce quieter darker shrink lessen down",
    "save": "save keep store remember",
    "connect": "connect link pair subscribe follow pin bookmark install mount",
    "disconnect": "disconnect unlink unpair unsubscribe unfollow unpin unbookmark uninstall unmount",
    "buy": "buy purchase order",
    "sell": "sell refund return",
    "block": "block ban forbid prevent",
    "archive": "archive",
    "copy": "copy duplicate clone",
    "rename": "rename",
    "print": "print",
    "share": "share publish",
    "reschedule": "reschedule postpone delay",
    "translate": "translate",
    "convert": "convert export import",
    "order": "sort shuffle rotate",
    "join": "merge combine",
    "mark": "mark flag rate",
}
#: Two words, with others between them, that are one verb.
_WRITTEN_PAIRS = {
    ("call", "off"): "remove",
    ("take", "off"): "remove",
    ("take", "out"): "remove",
    ("throw", "away"): "remove",
    ("throw", "trash"): "remove",
    ("get", "rid"): "remove",
    ("turn", "off"): "disable",
    ("switch", "off"): "disable",
    ("power", "off"): "disable",
    ("turn", "on"): "enable",
    ("switch", "on"): "enable",
    ("log", "out"): "close",
    ("sign", "out"): "close",
    ("bring", "back"): "restore",
    ("put", "back"): "restore",
    ("bring", "up"): "begin",
    ("set", "up"): "make",
    ("put", "on"): "play",
}
_OPPOSITES = (
    ("begin", "close stop remove"),
    ("make", "remove close"),
    ("add", "remove disconnect"),
    ("play", "stop close"),
    ("resume", "stop close"),
    ("restore", "remove"),
    ("save", "remove"),
    ("send", "remove get"),
    ("upload", "get"),
    ("forward", "back"),
    ("accept", "decline block remove"),
    ("lock", "unlock"),
    ("enable", "disable"),
    ("show", "hide close"),
    ("raise", "lower"),
    ("connect", "disconnect remove"),
    ("buy", "sell"),
)
#: Groups that reverse something or are an operation of their own: not to be guessed by likeness
#: when no view names them.
_NAMED = frozenset(
    (
        *("remove", "close", "stop", "resume", "restore", "undo", "back", "decline", "unlock", "disable"),
        *("hide", "disconnect", "block", "get", "archive", "copy", "rename", "print", "share"),
        *("reschedule", "translate", "convert", "order", "join", "mark"),
    )
)

_PAIRS = {(stem(verb), particle): group for (verb, particle), group in _WRITTEN_PAIRS.items()}

_OPPOSITE_OF: dict[str, set[str]] = {}
for _one, _others in _OPPOSITES:
    for _other in _others.split():
        _OPPOSITE_OF.setdefault(_one, set()).add(_other)
        _OPPOSITE_OF.setdefault(_other, set()).add(_one)

_GROUPS_OF: dict[str, set[str]] = {}
for _name, _members in _GROUPS.items():
    for _member in _members.split():
        _GROUPS_OF.setdefault(stem(_member), set()).add(_name)


def negated(words: Iterable[str], text: str = "") -> bool:
    return not _NEGATIONS.isdisjoint(words) or bool(_NEGATING_SIGNS.search(text))


def groups(words: Sequence[str]) -> frozenset[str]:
    """The groups that some of these words are in."""
    found: set[str] = set()
    for at, word in enumerate(words):
        found |= _groups_of(word)
        for later in words[at + 1 :]:
            if (pair := _PAIRS.get((stem(word), later))) is not None:
                found.add(pair)
    return frozenset(found)


def verb_group(words: Sequence[str]) -> frozenset[str]:
    """The groups of the verb that a text begins with, alone or with a particle after it."""
    if not words:
        return frozenset()
    pairs = (_PAIRS.get((stem(words[0]), later)) for later in words[1:])
    return _groups_of(words[0]).union(pair for pair in pairs if pair)


@lru_cache(maxsize=20_000)
def _groups_of(word: str) -> frozenset[str]:
    return frozenset(_GROUPS_OF.get(stem(word), ()))


def opposed(line: frozenset[str], heads: frozenset[str], verbs: frozenset[str]) -> bool:
    """Whether a line with verbs of these groups contradicts a capability whose views begin with
    `heads` and hold `verbs` anywhere."""
    for group in line - heads:
        if not line.issuperset(heads & _OPPOSITE_OF.get(group, set())):
            return True
    return any(group in _NAMED and group not in verbs for group in line)
