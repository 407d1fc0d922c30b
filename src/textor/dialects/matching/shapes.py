"""What a text in brackets looks like: a number, an address, a file, pairs …

The text itself must not choose the action: `set email subject to [delete all files]` is about a
subject. Its shape may: `view [data.csv]` is about a file, because the slot of `show the document
[notes.txt]` holds one too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from textor.dialects.matching.words import stem

#: The first that fits counts.
_SHAPES = {
    "number": re.compile(r"[-+]?\d[\d.,\s]*%?"),
    "email": re.compile(r"[^\s@]+@[^\s@]+\.\w+"),
    "url": re.compile(r"[a-z][a-z+.-]*://\S+|www\.\S+", re.IGNORECASE),
    "file": re.compile(
        r"(?:.*[/\\])?[^/\\]*\.(?:txt|md|pdf|docx?|odt|rtf|xlsx?|ods|csv|tsv|pptx?|json|ya?ml|xml|html?|"
        r"css|js|ts|py|sh|log|ini|toml|png|jpe?g|gif|svg|webp|mp3|wav|ogg|flac|mp4|mkv|avi|mov|zip|gz|tar|"
        r"7z|exe|iso|db|sql|bak|tmp)",
        re.IGNORECASE,
    ),
    "path": re.compile(r"(?:~|\.{1,2}|[a-z]:)?(?:[/\\][\w .-]+)+[/\\]?", re.IGNORECASE),
    "domain": re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/\S*)?", re.IGNORECASE),
    "time": re.compile(
        r"(?:(?:\d{1,4}(?:st|nd|rd|th|[ap]\.?m\.?)?|[ap]\.?m\.?|at|on|in|the|this|next|last|of|to|from|until|"
        r"to(?:day|morrow|night)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|noon|midnight|morning|"
        r"afternoon|evening|day|week|weekend|month|year|january|february|march|april|may|june|july|"
        r"august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
        r"(?:[\s.,:/+-]+|(?<=\d)T(?=\d)|$)){1,12}",
        re.IGNORECASE,
    ),
}
_SAME = {"url": "domain", "path": "file"}
#: Longer texts are only text.
_LONGEST = 300


def shape(text: str) -> str:
    """One of number, email, domain, pairs, file, time, text, and "" for nothing at all."""
    text = text.strip()
    if not text:
        return ""
    if len(text) <= _LONGEST:
        if _pairs(text):
            return "pairs"
        for name, pattern in _SHAPES.items():
            if pattern.fullmatch(text):
                return _SAME.get(name, name)
    return "text"


def _pairs(text: str) -> bool:
    """`name=value`, or several with a sign between them."""
    parts = [part.strip() for part in text.split("=")]
    between = all(re.search(r"\S\s*[:;,\n]\s*\S", part) for part in parts[1:-1])
    return len(parts) > 1 and all(parts) and between and not _SHAPES["url"].match(text)


def shapes_of(slots: Iterable[Sequence[str]]) -> tuple[frozenset[str], ...]:
    """The shapes seen at each place, from the slots of several examples."""
    seen: list[set[str]] = []
    for example in slots:
        for place, text in enumerate(example):
            if place == len(seen):
                seen.append(set())
            seen[place].add(shape(text))
    return tuple(frozenset(each - {""}) for each in seen)


def fit(slots: Sequence[str], seen: Sequence[frozenset[str]]) -> float:
    """How well texts go into places where such shapes were seen: -1 to 1, 0 if nothing is known."""
    points = [_fit(shape(text), known) for text, known in zip(slots, seen, strict=False)]
    return sum(points) / len(points) if points else 0.0


def _fit(own: str, known: frozenset[str]) -> float:
    if not own or not known:
        return 0.0
    if own in known:
        return 0.0 if own == "text" else 1.0
    if "number" in known and len(known) == 1:
        return -1.0
    return 0.0 if "text" in known and own in ("number", "time") else -0.5


#: What stands before or behind a slot, or names its property, and what it then holds.
_HINTS = {
    "number": "percent number amount count level degree second minute hour size width price",
    "email": "email_address mail_address recipient attendee",
    "domain": "url link website site web_page page address",
    "file": "file filename path document attachment image picture photo",
    "time": "date time day deadline",
    "pairs": "pair series values",
}
_HINTED = {
    " ".join(map(stem, word.split("_"))): name for name, words in _HINTS.items() for word in words.split()
}


def hinted(before: Sequence[str], behind: Sequence[str], schema: object) -> frozenset[str]:
    """The shapes that a slot without examples should hold, by the words around it and the schema of
    its property; empty when nothing tells."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            return frozenset(["number"])
        if told := {"email": "email", "uri": "domain", "date": "time", "date-time": "time"}.get(
            str(schema.get("format"))
        ):
            return frozenset([told])
    near = [" ".join(before[-2:]), *before[-1:], *behind[:1]]
    found = [_HINTED[word] for word in near if word in _HINTED]
    return frozenset(found[:1])
