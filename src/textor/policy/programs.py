"""What is known of programs that run others: by which words, or whatever their words are.

No such list is complete. It is for rules that a person wrote with `*` at their end: what is not on it,
they have allowed with all that it can do.
"""

from __future__ import annotations

import re

#: Options and commands by which a program runs another, takes on other settings, or writes elsewhere
#: than its name suggests. They are only covered where the pattern spells them out.
HANDS_ON: dict[str, tuple[str, ...]] = {
    "git": (
        *("-c", "-C", "-x", "-O", "-u", "--config-env", "--exec-path", "--git-dir", "--work-tree"),
        *("--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager", "--ext-diff"),
        *("--textconv", "--filters", "--template", "--config", "--output", "--gpg-sign", "-S", "-o"),
        *("config", "bisect", "submodule", "filter-branch", "difftool", "mergetool", "daemon", "hook"),
        *("instaweb", "send-email", "web--browse", "for-each-repo", "fast-import", "gui", "p4", "svn"),
        *("remote-ext", "remote-fd", "credential", "maintenance", "shell", "imap-send", "cvsserver"),
        *("upload-pack", "receive-pack", "upload-archive", "http-backend", "fsmonitor--daemon", "lfs"),
    ),
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"),
    "tar": (
        *("-I", "-F", "-T", "--to-command", "--checkpoint-action", "--use-compress-program"),
        *("--info-script", "--new-volume-script", "--rsh-command", "--rmt-command", "--files-from"),
    ),
    "rsync": ("-e", "-M", "--rsh", "--rsync-path", "--remote-option", "--daemon", "--config"),
    "sort": ("--compress-program", "-o", "--output", "-T"),
    "split": ("--filter",),
    "zip": ("-TT", "--unzip-command"),
    "rg": ("--pre", "--hostname-bin"),
    "pip": ("--config-settings", "-C", "--index-url", "-i", "--extra-index-url", "--find-links", "-f"),
    "curl": (
        *("-K", "--config", "-o", "--output", "-O", "--remote-name", "--remote-name-all", "--output-dir"),
        *("-T", "--upload-file", "-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--trace-ascii"),
        *("--libcurl", "--stderr", "--engine", "--hsts", "--alt-svc", "--etag-save"),
    ),
    "wget": (
        *("--use-askpass", "-e", "--execute", "-O", "--output-document", "--config", "-o", "-a", "-P"),
        *("--output-file", "--append-output", "--directory-prefix", "--save-cookies", "--post-file"),
        *("--body-file", "--warc-file"),
    ),
    "npm": ("exec", "run", "run-script", "start", "test", "x", "explore"),
    "cargo": ("--config", "run"),
    "go": ("run", "generate", "tool", "-exec", "-toolexec", "-overlay", "-vettool", "env"),
    "gcc": ("-wrapper", "-specs", "--specs", "-B"),
    "make": ("--eval", "-E", "-f", "-C", "-I", "--file", "--makefile", "--directory", "--include-dir"),
    "scp": ("-o", "-S", "-F", "-D"),
    "sftp": ("-o", "-S", "-F", "-D", "-b"),
    "man": ("-P", "--pager", "-H", "--html", "-C", "--config-file", "-l", "-X"),
    "python": ("-c", "-m", "-", "-i", "-x"),
    "pytest": ("-p", "-c", "--rootdir", "--confcutdir", "-o", "--override-ini", "--pyargs"),
    "apt": ("-o", "--option", "-c", "--config-file"),
    "dpkg": ("--pre-invoke", "--post-invoke", "--admindir", "--root", "--instdir"),
    "rpm": ("--pipe", "--eval", "-E", "--define", "-D", "--rcfile", "--macros"),
    "patch": ("-e", "--ed", "-o", "--output"),
    "ctags": ("--options",),
}


def _names(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


#: Programs that run what stands in a file or a variable, so that nobody can say what they do.
OPAQUE = _names(
    "env sh bash dash zsh ksh mksh fish csh tcsh busybox toybox xargs sudo doas su pkexec runuser nohup",
    "timeout nice ionice setsid stdbuf time command exec eval builtin coproc source . parallel watch script",
    "chroot unshare nsenter ssh-agent strace ltrace gdb flock systemd-run at batch awk gawk perl ruby node",
    "php lua osascript expect",
)

#: Programs whose words are another command: behind these, `*` stands for anything at all, so that a
#: pattern for them must spell out the whole line.
WRAPPERS = OPAQUE | _names(
    "setpriv capsh fakeroot proot bwrap firejail taskset chrt prlimit ssh lldb perf valgrind crontab",
    "run-parts start-stop-daemon dbus-run-session xvfb-run unbuffer rlwrap entr hyperfine torsocks",
    "proxychains sshpass screen tmux direnv mise asdf nix nix-shell docker podman kubectl npx pnpx bunx",
    "uvx uv pipx poetry pdm hatch conda just task mawk nawk sed gsed ed ex vi vim nvim emacs deno bun",
    "luajit tclsh wish guile open java jshell rscript julia sqlite3 psql mysql",
)


def program(word: str) -> str:
    """The program that a first word names, without folders, case or the number of its version."""
    name = word.rpartition("/")[2].casefold()
    return re.sub(r"^(python|pip|lua|gcc|clang|perl|ruby|php)[\d.-]+$", r"\1", name)


def is_wrapper(word: str) -> bool:
    return program(word) in WRAPPERS


def hands_on(first: str, word: str) -> bool:
    """Whether by this word the program would run another one. Long options may be cut short."""
    name, sets, _ = word.partition("=")
    known = program(first)
    if known == "make" and sets and word[:1] != "-":
        return True  # a variable, such as the shell that it runs
    for option in HANDS_ON.get(known, ()):
        if word == option or name == option:
            return True
        if option.startswith("--") and len(name) > 2 and option.startswith(name):
            return True
        # a short one also in a heap of them, with what it takes right behind it
        short = len(option) == 2 and option[0] == "-" and word[:1] == "-" and word[1:2] != "-"
        if short and option[1] in word[1:]:
            return True
    return False


def hands_on_first(first: str, word: str) -> bool:
    """The same for the word right behind the program: `tar` takes a heap of options without a dash."""
    return hands_on(first, word) or (
        program(first) == "tar" and word[:1] != "-" and hands_on(first, f"-{word}")
    )
