"""Secrets that must not be written down: known by their exact text, replaced by `[secret NAME]`.

Nothing is guessed: a secret is masked where its text stands, as it is, in base64, encoded for an
address or quoted for JSON. What a program makes of it otherwise (encrypted, reversed) is not seen;
against that stand the sandbox and the gate.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

log = logging.getLogger("textor.secrets")

#: Shorter texts would be found in everything.
SHORTEST = 8

#: The name of the email account's password in the keyring.
EMAIL = "textor-email"

#: Seconds after which an answer that nobody fetched is swept away.
KEPT = 600

#: Names of variables that hold secrets.
SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|(^|_)auth(_|$)")


class Secrets:
    """The secrets known so far, by name."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._names: dict[str, str] = {}  # form -> name of the secret
        self._pattern: re.Pattern[str] | None = None
        for name, secret in (known or {}).items():
            self.add(name, secret)

    def add(self, name: str, secret: str) -> None:
        """From now on mask this text; one that is too short, or known already, changes nothing."""
        secret = secret.strip()
        if len(secret) < SHORTEST or secret in self._names:
            return
        for form in _forms(secret):
            self._names.setdefault(form, name)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def __bool__(self) -> bool:
        return self._pattern is not None

    def mask(self, text: str) -> str:
        """The text with `[secret NAME]` wherever a secret stood; the same object where none did."""
        if self._pattern is None or not self._pattern.search(text):
            return text
        return self._pattern.sub(lambda found: f"[secret {self._names[found[0]]}]", text)

    def masked(self, data: Any) -> Any:
        """JSON data with all its texts masked, keys as well."""
        if isinstance(data, str):
            return self.mask(data)
        if isinstance(data, dict):
            return {self.masked(key): self.masked(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.masked(item) for item in data]
        return data

    def masked_bytes(self, content: bytes) -> bytes:
        """As `mask` for bytes that are text in UTF-8; others are given back as they are."""
        if self._pattern is None:
            return content
        try:
            return self.mask(content.decode()).encode()
        except UnicodeDecodeError:
            return content


#: The secrets of this process, for the places that have no better one to ask.
KNOWN = Secrets()


class Masking(logging.Filter):
    """Masks what is logged: the message with its arguments, and tracebacks."""

    def __init__(self, secrets: Secrets = KNOWN) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        record.msg, record.args = self._secrets.mask(message), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._secrets.mask(record.exc_text)
        return True


def from_keyring(service: str, user: str) -> str:
    """A password in the keyring of the platform; "" where there is none, or the keyring does not work.
    May wait for a person, who is asked to unlock it."""
    try:
        import keyring
    except ImportError:
        return ""
    try:
        return keyring.get_password(service, user) or ""
    except Exception as error:  # keyrings are of strangers, who raise what they like
        log.warning("The keyring does not answer: %s", error)
        return ""


class Handed:
    """Secret answers on their way from the process where a person gave them to the one that hosts.

    Within one process (`here`) they stay in memory. Else they pass through a file that only the
    person can read, in `folder`; it is gone as soon as it is fetched, and the next host sweeps what a
    dead one left. No secret is ever in the journal.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.here = folder is None
        self._texts: dict[str, str] = {}

    def put(self, key: str, text: str) -> None:
        if self.here or self.folder is None:
            self._texts[key] = text
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self._place(key)
        place.unlink(missing_ok=True)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    def take(self, key: str) -> str | None:
        """The answer to this question, once; None when it did not come here."""
        text = self._texts.pop(key, None)
        if self.folder is None:
            return text
        place = self._place(key)
        try:
            found = place.read_text("utf-8")
            place.unlink()
        except (OSError, UnicodeDecodeError):
            return text
        return found if text is None else text

    def host(self, now: float) -> None:
        """This process is the host from now on (seconds since 1970)."""
        self.here = True
        for place in [] if self.folder is None else self.folder.glob("*"):
            with suppress(OSError):
                if now - place.stat().st_mtime > KEPT:
                    place.unlink()

    def __len__(self) -> int:
        return len(self._texts)

    def _place(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def from_environment(env: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """The variables whose names say that they hold a secret; paths are none."""
    for name, text in (os.environ if env is None else env).items():
        if SECRET_NAME.search(name) and not text.startswith(("/", "~", "./")):
            yield name, text


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    forms = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    for written in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        forms |= {written, re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), written)}
    forms |= {raw.hex(), raw.hex().upper()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in range(3):  # where it begins within a longer text that was encoded
            text = encode(b"\0" * before + raw).decode().rstrip("=")
            start = -(-before * 8 // 6)
            end = (before + len(raw)) * 8 // 6
            forms.add(text[start:end])
    return {form for form in forms if len(form) >= SHORTEST}
