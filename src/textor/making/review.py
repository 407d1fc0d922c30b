"""The rules by which the code of a module is reviewed, before the gate shows what they found.

They read the syntax tree and run nothing. What they find is no judgement: a module that looks pages
up must use the network. That they find nothing proves nothing either, since code can hide what it
does; therefore a module is tried in the sandbox, and loaded only through the gate.
"""

from __future__ import annotations

import ast
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from textor.capabilities.opening import opened_file, state_of
from textor.capabilities.places import Judged, resolve
from textor.errors import CapabilityError
from textor.values import sha256_of

Kind = Literal["syntax", "network", "program", "native", "secret", "code", "install", "delete", "import"]

#: Characters of the source of one module.
LONGEST = 1_000_000
#: Findings in the one line for the gate.
SHOWN = 5

_IMPORTS: dict[Kind, frozenset[str]] = {
    "network": frozenset(
        [
            "socket",
            "ssl",
            "http",
            "urllib",
            "ftplib",
            "smtplib",
            "poplib",
            "imaplib",
            "telnetlib",
            "xmlrpc",
            "socketserver",
            "requests",
            "httpx",
            "httpx2",
            "aiohttp",
            "urllib3",
            "websocket",
            "websockets",
            "paramiko",
            "pycurl",
        ]
    ),
    "program": frozenset(["subprocess", "pty", "multiprocessing", "pexpect", "sh"]),
    "native": frozenset(["ctypes", "_ctypes", "cffi"]),
    "secret": frozenset(["keyring", "secretstorage", "netrc", "getpass"]),
    "code": frozenset(["pickle", "marshal", "shelve", "dill", "importlib", "runpy", "code", "codeop"]),
    "install": frozenset(["pip", "ensurepip", "setuptools", "distutils"]),
}
#: Parts of these that do nothing of the kind.
_HARMLESS = ("urllib.parse", "urllib.error", "http.HTTPStatus", "importlib.metadata", "importlib.resources")
_CALLS: dict[Kind, re.Pattern[str]] = {
    "code": re.compile(r"(builtins\.)?(eval|exec|compile|__import__|globals)|getattr"),
    "program": re.compile(r"os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*|fork\w*|startfile|kill\w*)"),
    "network": re.compile(r"asyncio\.(open_connection|start_server|open_unix_connection)"),
    "delete": re.compile(r"shutil\.rmtree|os\.(remove|unlink|rmdir|removedirs)"),
    "secret": re.compile(r"os\.(getenv|environb?)(\..*)?|pathlib\.Path\.home"),
}
_TEXTS: dict[Kind, re.Pattern[str]] = {
    "secret": re.compile(
        r"\.(ssh|aws|azure|gnupg|kube|docker|netrc|pgpass|pypirc|npmrc|git-credentials|password-store)\b"
        r"|\.config/(gcloud|gh|textor)|keyrings|/etc/shadow|id_rsa|/proc/\S*environ"
    ),
    "install": re.compile(
        r"\b(pip3?|npm|uv|apt|apt-get|brew) (-\S+ )*(install|add)\b|(curl|wget) .*\|\s*(ba)?sh"
    ),
}


class Finding(msgspec.Struct, frozen=True):
    """One thing that a reader should look at; `line` is counted from 1."""

    line: int
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.text}"


def source_of(given: str, workspace: Path, seen: Judged | None = None) -> tuple[str, Path | None]:
    """The text of a module, and its real place when `given` is a path. What has a line break is text.

    `seen` is what the gate saw of it: then it is this text, or none. Raises `CapabilityError` for a
    file that cannot be read, or was changed since.
    """
    if "\n" in given:
        return _fitting(given), None
    path = resolve(given, workspace) if seen is None else seen.place
    try:
        if not stat.S_ISREG(state_of(path).st_mode):
            raise CapabilityError(f"{given:.200} is no file.", "Give the path of a Python file.")
        with opened_file(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(4 * LONGEST + 1)
        text = _fitting(content.decode("utf-8"))
        if seen is not None and seen.content and sha256_of(content) != seen.content:
            raise CapabilityError(f"{given:.200} was changed after it was allowed.", "Ask again.")
        return text, path
    except UnicodeDecodeError:
        raise CapabilityError(f"{given} is not UTF-8 text.", "A module is one Python file.") from None
    except OSError as error:
        raise CapabilityError(
            f"{given:.200} cannot be read: {error.strerror}.",
            "Give the path of a Python file, or the source itself.",
        ) from None


def _fitting(text: str) -> str:
    if len(text) > LONGEST:
        raise CapabilityError(f"The module has {len(text)} characters; {LONGEST} are allowed.")
    return text


def review(text: str, name: str = "") -> list[Finding]:
    """What the rules find in a source, by line. `name` is that of its file."""
    found = [Finding(1, "install", "it is a script that installs")] if name == "setup.py" else []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        return [*found, Finding(line, "syntax", f"it is no Python: {getattr(error, 'msg', error)}")]
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        found += _imported(node)
        found += _used(node, aliases)
    found += _at_import(tree, aliases)
    return sorted(set(found), key=lambda each: (each.line, each.kind, each.text))


def summary(findings: Sequence[Finding]) -> str:
    """One line for a person at the gate."""
    if not findings:
        return "the rules found nothing in its code, which proves nothing"
    told = "; ".join(str(each) for each in findings[:SHOWN])
    more = len(findings) - SHOWN
    return f"its code was reviewed by rules: {told}{f'; and {more} more' if more > 0 else ''}"


def _aliases(tree: ast.AST) -> dict[str, str]:
    """What the names of imports stand for: `from os import environ as e` is e -> os.environ."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                root = each.name.partition(".")[0]
                names[each.asname or root] = each.name if each.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
    return names


def _imported(node: ast.AST) -> Iterator[Finding]:
    if isinstance(node, ast.Import):
        names = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [f"{node.module}.{each.name}" for each in node.names]
    else:
        return
    for name in names:
        if name.startswith(_HARMLESS):
            continue
        for kind, roots in _IMPORTS.items():
            if name.partition(".")[0] in roots:
                yield Finding(node.lineno, kind, f"imports {name}")


def _dotted(node: ast.AST, aliases: dict[str, str]) -> str:
    """`os.environ` for what means it; "" for what is no name."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value, aliases)):
        return f"{base}.{node.attr}"
    return ""


def _used(node: ast.AST, aliases: dict[str, str]) -> Iterator[Finding]:
    if isinstance(node, ast.Call):
        name = _dotted(node.func, aliases)
        for kind, pattern in _CALLS.items():
            if pattern.fullmatch(name) and not _plain_getattr(name, node):
                yield Finding(node.lineno, kind, f"calls {name}")
    elif isinstance(node, ast.Attribute | ast.Name):
        name = _dotted(node, aliases)
        if name in ("os.environ", "os.environb", "environ"):
            yield Finding(node.lineno, "secret", f"reads {name}, where keys may stand")
        elif isinstance(node, ast.Attribute) and node.attr in ("__subclasses__", "__globals__", "__code__"):
            yield Finding(node.lineno, "code", f"reaches into Python by {node.attr}")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        for kind, pattern in _TEXTS.items():
            if match := pattern.search(node.value):
                yield Finding(node.lineno, kind, f"names {match[0]:.60}")


def _plain_getattr(name: str, node: ast.Call) -> bool:
    """`getattr` with a name that stands there hides nothing."""
    return name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant)


def _at_import(tree: ast.Module, aliases: dict[str, str]) -> Iterator[Finding]:
    """What is done by the mere import; that it serves at its end is what a module is for."""
    for node in tree.body:
        if isinstance(node, ast.For | ast.While | ast.With | ast.AsyncFor | ast.AsyncWith | ast.Delete):
            yield Finding(node.lineno, "import", "does work when it is imported")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = _dotted(node.value.func, aliases) or "something"
            if not re.fullmatch(r"\w+\.run", name) or name.partition(".")[0] in ("subprocess", "asyncio"):
                yield Finding(node.lineno, "import", f"calls {name} when it is imported")
