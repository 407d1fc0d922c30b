"""The account that sends: `[apps.email]` of the configuration, and its password.

The password is in the keyring (`keyring set textor-email USER`; needs `textor[keyring]`), in the
environment (TEXTOR_APPS_EMAIL_PASSWORD) or in the file.
"""

from __future__ import annotations

from textor.apps.store import Refused
from textor.config import load
from textor.errors import ConfigError
from textor.secrets import EMAIL, KNOWN, from_keyring
from textor.settings import EmailSettings

SERVICE = EMAIL  #: the name in the keyring
PORTS = {"tls": 465, "starttls": 587, "none": 25}


def load_account() -> EmailSettings:
    """The account, as the configuration is now. Raises `Refused` that says where to write what."""
    try:
        config = load()
    except ConfigError as error:
        raise Refused(error.message, error.hint, status=409) from None
    account = config.apps.email
    for key, example in (("host", "smtp.example.org"), ("sender", "Anna Berg <anna@example.org>")):
        if not getattr(account, key):
            raise Refused(
                f"There is no account for sending: apps.email.{key} is not set.",
                f'Write {key} = "{example}" below [apps.email] in {config.path}.',
                status=409,
            )
    return account


def password(account: EmailSettings) -> str:
    """The password, as it is set or from the keyring; "" where there is none."""
    found = account.password or from_keyring(SERVICE, account.user)
    KNOWN.add("apps.email.password", found)
    return found
