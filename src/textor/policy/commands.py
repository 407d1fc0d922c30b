"""What a rule about a shell command covers: exactly what it says (case H4).

A pattern covers a command line only when the line is one simple command of literal words. Any
operator, substitution, redirection, glob, variable, brace, comment or line break, a variable set in
front, a quoting that we do not read ourselves: not covered, and so it is asked about. `*` as the
last word stands for any further words, but not for an option by which the program runs another.
"""

from __future__ import annotations

import fnmatch

#: What a shell does something with, outside quotes.
_SPECIAL = frozenset(";&|<>()$`\\*?[]{}~!#\n\r")
#: Inside double quotes.
_SPECIAL_QUOTED = frozenset("$`\\!\n\r")

#: Options and commands by which a program runs another, or takes on other settings. They are only
#: covered where the pattern spells them out.
_HANDS_ON: dict[str, tuple[str, ...]] = {
    "git": (
        *("-c", "-C", "-x", "-O", "-u", "--config-env", "--exec-path", "--git-dir", "--work-tree"),
        *("--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "--ext-diff"),
        *("--textconv", "--template", "--config", "--output", "--gpg-sign", "-S"),
        *("config", "bisect", "submodule", "filter-branch", "difftool", "mergetool", "daemon", "hook"),
        *("instaweb", "send-email", "web--browse", "for-each-repo", "fast-import", "gui", "p4", "svn"),
    ),
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"),
    "tar": (
        *("-I", "-F", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script"),
        *("--new-volume-script", "--rsh-command", "--rmt-command"),
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program", "-o", "--output", "-T"),
    "rg": ("--pre", "--hostname-bin"),
    "pip": ("--config-settings", "-C", "--index-url", "-i", "--extra-index-url"),
    "curl": ("-K", "--config", "-o", "--output", "-T", "--upload-file"),
    "wget": ("--use-askpass", "-e", "--execute", "-O", "--output-document"),
    "npm": ("exec", "run", "run-script", "start", "test", "x"),
    "cargo": ("--config", "run"),
    "make": ("--eval", "-E", "SHELL"),
    "ssh": ("-o", "-F"),
    "scp": ("-o", "-S", "-F"),
    "man": ("-P", "--pager", "-H", "--html"),
}

#: Programs whose words are another command: behind these, `*` stands for anything at all, so that a
#: pattern for them must spell out the whole line.
_WRAPPERS = frozenset(
    (
        *(
            "env",
            "sh",
            "bash",
            "dash",
            "zsh",
            "ksh",
            "fish",
            "busybox",
            "xargs",
            "sudo",
            "doas",
            "su",
            "nohup",
        ),
        *("timeout", "nice", "ionice", "setsid", "stdbuf", "time", "command", "exec", "eval", "builtin"),
        *("source", ".", "parallel", "watch", "script", "chroot", "unshare", "nsenter", "ssh-agent"),
        *("strace", "ltrace", "gdb", "flock", "systemd-run", "at", "batch", "awk", "gawk", "perl", "ruby"),
        *("node", "php", "lua", "osascript", "expect"),
    )
)


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
        if wanted[0] in _WRAPPERS:
            return False
        wanted = wanted[:-1]
    if len(words) < len(wanted) or (len(words) > len(wanted) and not more):
        return False
    for word, want in zip(words, wanted, strict=False):
        if word != want and (not _fits(word, want) or _hands_on(words[0], word)):
            return False
    return not any(_hands_on(words[0], word) for word in words[len(wanted) :])


def may_concern(pattern: str, line: str) -> bool:
    """Whether a rule that forbids might mean this line: it does where it matches, and where nobody
    can say what the line runs."""
    words, wanted = words_of(line), pattern.split()
    if words is None or words[0] in _WRAPPERS:
        return True
    if words[0].rpartition("/")[2] != wanted[0].rpartition("/")[2]:
        return False
    rest, known = wanted[1:], words[1:]
    if rest and rest[-1] == "*":
        rest = rest[:-1]
        known = known[: len(rest)]
    return len(known) == len(rest) and all(
        fnmatch.fnmatchcase(*pair) for pair in zip(known, rest, strict=True)
    )


def _fits(word: str, want: str) -> bool:
    """Whether a word of a pattern that holds `*` or `?` stands for this word."""
    return want != "*" and any(c in want for c in "*?") and fnmatch.fnmatchcase(word, want)


def _hands_on(program: str, word: str) -> bool:
    """Whether by this word the program would run another one. Long options may be cut short."""
    name = word.partition("=")[0]
    for option in _HANDS_ON.get(program, ()):
        if word == option or name == option:
            return True
        if option.startswith("--") and len(name) > 2 and option.startswith(name):
            return True
        # a short one also in a heap of them, with what it takes right behind it
        short = len(option) == 2 and option[0] == "-" and word[:1] == "-" and word[1:2] != "-"
        if short and option[1] in word[1:]:
            return True
    return False
