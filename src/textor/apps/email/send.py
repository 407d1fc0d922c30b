"""Composing a message and handing it to a mail server."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.headerregistry import Address as Header
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from textor.apps.email.account import SERVICE, Account, password
from textor.apps.email.addresses import Address, parse_addresses
from textor.apps.store import Refused

TIMEOUT = 30  #: seconds that the server is waited for
HERE = ("127.0.0.1", "localhost", "::1")


def compose(
    recipients: Sequence[str], subject: str, body: str, attachments: Sequence[tuple[str, str, bytes]] = ()
) -> EmailMessage:
    """The message without its sender; attachments are (name, media type, content)."""
    if not recipients:
        raise Refused("The email has no recipient.", "Add one.")
    if not (subject or body or attachments):
        raise Refused("The email is empty.")
    message = EmailMessage()
    message["To"] = [_header(parse_addresses(one)[0]) for one in recipients]
    message["Subject"] = subject
    message["Date"] = formatdate(localtime=True)
    message.set_content(body + ("" if body.endswith("\n") else "\n"))
    for name, kind, content in attachments:
        main, _, sub = kind.partition("/")
        message.add_attachment(content, maintype=main, subtype=sub or "octet-stream", filename=name)
    return message


def send(account: Account, message: EmailMessage) -> dict[str, str]:
    """Send it; returns the addresses that the server refused, with its reason. Raises `Refused` when
    nobody gets it."""
    sender = parse_addresses(account.sender)[0]
    message["From"] = _header(sender)
    message["Message-ID"] = make_msgid(domain=sender.bare.partition("@")[2])
    secret = password(account.user) if account.user else ""
    if account.user and not secret:
        hint = f"Run `keyring set {SERVICE} {account.user}`, or set TEXTOR_EMAIL_PASSWORD."
        raise Refused(f"There is no password for {account.user}.", hint, status=409)
    if secret and account.security == "none" and account.host not in HERE:
        raise Refused("The password would go over the network in the clear.", 'Set security = "starttls".')
    try:
        with _connect(account) as server:
            if secret:
                server.login(account.user, secret)
            refused = server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        reasons = "; ".join(_reason(r) for r in error.recipients.values())
        raise Refused(f"The server refused every recipient: {reasons}.", status=422) from None
    except smtplib.SMTPAuthenticationError as error:
        raise Refused(f"The server refused the password of {account.user}: {_reason(error.args)}.") from None
    except smtplib.SMTPResponseException as error:
        raise Refused(f"The server refused the email: {_reason(error.args)}.") from None
    except (OSError, smtplib.SMTPException) as error:
        where = f"{account.host}:{account.port}"
        raise Refused(f"The mail server {where} cannot be used: {error}.", status=424) from None
    return {address: _reason(reason) for address, reason in refused.items()}


def _connect(account: Account) -> smtplib.SMTP:
    if account.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(account.host, account.port, timeout=TIMEOUT, context=context)
    server = smtplib.SMTP(account.host, account.port, timeout=TIMEOUT)
    if account.security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _header(address: Address) -> Header:
    try:
        return Header(address.name, addr_spec=address.bare)
    except ValueError as error:
        raise Refused(f"{address.bare} cannot be written to: {error}.") from None


def _reason(answer: object) -> str:
    """(550, b"No such user") as a sentence."""
    match answer:
        case (int() as code, bytes() as text, *_):
            return f"{code} {text.decode('utf-8', 'replace')}"
        case (int() as code, str() as text, *_):
            return f"{code} {text}"
    return str(answer)
