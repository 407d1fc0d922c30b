"""Composing a message and handing it to a mail server."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.headerregistry import Address as Header
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path

from textor.apps.email.account import PORTS, SERVICE, password
from textor.apps.email.addresses import Address, parse_addresses
from textor.apps.store import Refused
from textor.secrets import KNOWN
from textor.settings import EmailSettings

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


def send(account: EmailSettings, message: EmailMessage) -> dict[str, str]:
    """Send it; returns the addresses that the server refused, with its reason. Raises `Refused` when
    nobody gets it."""
    sender = parse_addresses(account.sender)[0]
    message["From"] = _header(sender)
    message["Message-ID"] = make_msgid(domain=sender.bare.partition("@")[2])
    secret = password(account) if account.user else ""
    if account.user and not secret:
        hint = f"Run `keyring set {SERVICE} {account.user}`, or set TEXTOR_APPS_EMAIL_PASSWORD."
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
    except ssl.SSLError as error:
        raise _insecure(account, error) from None
    except (OSError, smtplib.SMTPException) as error:
        told = f"The mail server {_where(account)} cannot be used: {str(error).rstrip('.')}."
        raise Refused(told, _other_way(account, error), status=424) from None
    return {address: _reason(reason) for address, reason in refused.items()}


def _where(account: EmailSettings) -> str:
    return f"{account.host}:{account.port or PORTS[account.security]}"


def _connect(account: EmailSettings) -> smtplib.SMTP:
    port = account.port or PORTS[account.security]
    if account.security == "tls":
        return smtplib.SMTP_SSL(account.host, port, timeout=TIMEOUT, context=_trusted(account))
    server = smtplib.SMTP(account.host, port, timeout=TIMEOUT)
    if account.security == "starttls":
        try:
            server.starttls(context=_trusted(account))
        except BaseException:
            server.close()
            raise
    return server


def _trusted(account: EmailSettings) -> ssl.SSLContext:
    """The certificates that count: those of the system, and the account's own."""
    context = ssl.create_default_context()
    if account.certificates:
        path = Path(account.certificates).expanduser()
        try:
            context.load_verify_locations(path)
        except (OSError, ssl.SSLError) as error:
            why = "it holds no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
            told = f"apps.email.certificates names {path}, which cannot be read: {why}."
            raise Refused(told, status=409) from None
    return context


def _insecure(account: EmailSettings, error: ssl.SSLError) -> Refused:
    """Why there is no secure connection. Nothing was sent, the password least of all."""
    where = _where(account)
    if not isinstance(error, ssl.SSLCertVerificationError):
        other = "starttls" if account.security == "tls" else "tls"
        told = f"The mail server {where} does not speak TLS as it should: {error.reason or error}."
        return Refused(told, f'Perhaps it wants security = "{other}" or another port.', status=424)
    if error.verify_code in _NAME:
        hint = "Give the host in [apps.email] as its certificate has it."
    elif error.verify_code in _UNKNOWN:
        hint = "If you know it, write the certificate (PEM) to a file and name it: certificates = …"
    else:
        hint = "Its owner has to mend that."
    told = f"The certificate of the mail server {where} is not trusted: {error.verify_message.rstrip('.')}."
    return Refused(f"{told} Nothing was sent.", hint, status=424)


_NAME = (62, 64)  #: X509_V_ERR_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH
_UNKNOWN = (18, 19, 20, 21)  #: self-signed, alone or in its chain; no issuer; not to be verified


def _other_way(account: EmailSettings, error: Exception) -> str:
    """A hint where the server speaks in another way than the account says."""
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return 'It offers no STARTTLS here; perhaps it wants security = "tls" and port 465.'
    if isinstance(error, TimeoutError | smtplib.SMTPServerDisconnected) and account.security == "starttls":
        return 'Where TLS is spoken from the first byte, set security = "tls".'
    return ""


def _header(address: Address) -> Header:
    try:
        return Header(address.name, addr_spec=address.bare)
    except ValueError as error:
        raise Refused(f"{address.bare} cannot be written to: {error}.") from None


def _reason(answer: object) -> str:
    """(550, b"No such user") as a sentence, without the password that a server may repeat."""
    match answer:
        case (int() as code, bytes() as text, *_):
            told = f"{code} {text.decode('utf-8', 'replace')}"
        case (int() as code, str() as text, *_):
            told = f"{code} {text}"
        case _:
            told = str(answer)
    return KNOWN.mask(told)
