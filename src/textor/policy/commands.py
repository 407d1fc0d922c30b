"""What a rule about a shell command covers: exactly what it says (case H4).

A pattern covers a command line only when the line is one simple command of literal words. Any
operator, substitution, redirection, glob, variable, brace, comment or line break, a variable set in
front, a quoting that we do not read ourselves: not covered, and so it is asked about. `*` as the
last word stands for any further words, but not for an option by which the program runs another.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from textor.policy.programs import OPAQUE, hands_on, hands_on_first, is_wrapper, program

#: What a shell does something with, outside quotes.
_SPECIAL = frozenset(";&|<>()$`\\*?[]{}~!#\n\r")
#: Inside double quotes.
_SPECIAL_QUOTED = frozenset("$`\\!\n\r")


def words_of(line: str) -> list[str] | None:
    """The words of a simple command of literal words; None for anything else."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    for letter in line:
        if letter in "\n\r" or (letter != "\t" and not letter.isprintable()):
            return None
        if quote:
            if letter == quote:
                quote = ""
            elif quote == '"' and letter in _SPECIAL_QUOTED:
                return None
            elif word is not None:
                word.append(letter)
        elif letter in "'\"":
            quote, word = letter, word if word is not None else []
        elif letter in " \t":
            if word is not None:
                words.append("".join(word))
                word = None
        elif letter in _SPECIAL or letter.isspace():
            return None
        else:
            word = [*(word or ()), letter]
    if quote:
        return None
    if word is not None:
        words.append("".join(word))
    return None if not words or "=" in words[0] else words


def covers(pattern: str, line: str) -> bool:
    """Whether a pattern such as `git status` or `git log *` covers a command line."""
    words, wanted = words_of(line), pattern.split()
    if words is None or not wanted or words[0] != wanted[0]:
        return False
    more = wanted[-1] == "*"
    if more:
        if is_wrapper(wanted[0]):
            return False
        wanted = wanted[:-1]
    if len(words) < len(wanted) or (len(words) > len(wanted) and not more):
        return False
    for at, (word, want) in enumerate(zip(words, wanted, strict=False)):
        if word != want and (not _fits(word, want) or _hands_on(words, at)):
            return False
    return not any(_hands_on(words, at) for at in range(len(wanted), len(words)))


def may_concern(pattern: str, line: str) -> bool:
    """Whether a rule that forbids might mean this line: it does where it matches, with options in
    between as well, and where nobody can say what the line runs."""
    words, wanted = words_of(line), pattern.split()
    if words is None or program(words[0]) in OPAQUE:
        return True
    if not wanted:
        return False
    handed = is_wrapper(words[0]) or any(_hands_on(words, at) for at in range(1, len(words)))
    if handed and re.search(rf"(?<![\w-]){re.escape(program(wanted[0]))}(?![\w-])", line.casefold()):
        return True
    if not fnmatch.fnmatchcase(program(words[0]), program(wanted[0])):
        return False
    rest, known = wanted[1:], words[1:]
    if rest and rest[-1] == "*":
        rest = rest[:-1]
    elif bool(rest) != bool(known) or (rest and not _means(known[-1], rest[-1])):
        return False  # it forbids this very line
    for want in rest:
        at = next((n for n, word in enumerate(known) if _means(word, want)), None)
        if at is None:
            return False
        known = known[at + 1 :]
    return True


def _means(word: str, want: str) -> bool:
    """Whether a word is one of a rule that forbids, or a long option of it cut short."""
    cut = word.startswith("--") and len(word) > 3 and want.startswith(word.partition("=")[0])
    return cut or fnmatch.fnmatchcase(word, want)


def _hands_on(words: Sequence[str], at: int) -> bool:
    return (hands_on_first if at == 1 else hands_on)(words[0], words[at])


def _fits(word: str, want: str) -> bool:
    """Whether a word of a pattern that holds `*` or `?` stands for this word."""
    return want != "*" and any(c in want for c in "*?") and fnmatch.fnmatchcase(word, want)
