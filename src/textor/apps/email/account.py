"""The account that sends: `apps/email.toml` beside the configuration, or the environment.

    host = "smtp.example.org"
    port = 587                  # 465 for security = "tls"
    security = "starttls"       # "tls", or "none" on this machine
    user = "anna"
    sender = "Anna Berg <anna@example.org>"

The password is in the keyring (`keyring set textor-email USER`; needs `textor[keyring]`) or in
TEXTOR_EMAIL_PASSWORD; TEXTOR_EMAIL_HOST and so on lie over the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from textor.apps.store import Refused
from textor.config import config_path

SERVICE = "textor-email"  #: the name in the keyring


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How mail is sent; see the module. The password is never kept in the file."""

    host: str
    sender: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""


def account_path() -> Path:
    return config_path().parent / "apps" / "email.toml"


def load_account() -> Account:
    """The account. Raises `Refused` that says where to write what."""
    path = account_path()
    try:
        tree = msgspec.toml.decode(path.read_bytes()) if path.exists() else {}
        for name in Account.__struct_fields__:
            if value := os.environ.get(f"TEXTOR_EMAIL_{name.upper()}"):
                tree[name] = value
        return msgspec.convert(tree, Account, strict=False)
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        if not path.exists():
            hint = f'Write host = "…" and sender = "…" into {path}, or set TEXTOR_EMAIL_HOST and _SENDER.'
            raise Refused("There is no account for sending.", hint, status=409) from None
        raise Refused(f"{path}: {error}.", status=409) from None


def password(user: str) -> str:
    """The password, from the environment or the keyring; "" where there is none."""
    if given := os.environ.get("TEXTOR_EMAIL_PASSWORD"):
        return given
    try:
        import keyring
    except ImportError:
        return ""
    try:
        return keyring.get_password(SERVICE, user) or ""
    except keyring.errors.KeyringError:
        return ""
