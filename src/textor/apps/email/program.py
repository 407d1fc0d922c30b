"""The email program: what it keeps and what it can do."""

from __future__ import annotations

import asyncio
import base64
import binascii
import mimetypes
from datetime import datetime
from pathlib import Path

import msgspec

from textor.apps.email.account import load_account
from textor.apps.email.addresses import parse_addresses
from textor.apps.email.send import compose, send
from textor.apps.files import find_file
from textor.apps.sdk import App, Refused, Result, State
from textor.apps.store import write_atomically

LARGEST = 25_000_000  #: bytes of all attachments, as most mail servers have it


class Attachment(msgspec.Struct):
    """A copy of a file, kept beside the draft under `name`. `size` in bytes."""

    name: str
    type: str
    size: int


class Email(State):
    """One email. `sent` is the local time of sending, "" for a draft."""

    recipients: list[str] = msgspec.field(default_factory=list)
    subject: str = ""
    body: str = ""
    attachments: list[Attachment] = msgspec.field(default_factory=list)
    sent: str = ""


def title(email: Email) -> str:
    return f"{'' if email.sent else 'Draft: '}{email.subject or 'No subject'}"


app: App[Email] = App(
    "email",
    Email,
    title="Email",
    page=Path(__file__).parent / "page",
    documents=title,
    may_edit=lambda email, field: field in ("subject", "body") and not email.sent,
    purpose="launch an empty email in the email app",
)
_sending = asyncio.Lock()


def draft() -> Email:
    """The open email, which must not have been sent."""
    if app.state.sent:
        raise Refused(f"This email was sent at {app.state.sent}.", "Start a new one.", status=409)
    return app.state


# -- the text ----------------------------------------------------------------------------------


@app.action(
    "set email subject to []",
    route="subject",
    repeat="idempotent",
    examples=["set [] as the email subject", "the email is about []"],
)
def set_subject(text: str) -> None:
    """set the subject of the email"""
    draft().subject = " ".join(text.split())


@app.action(
    "append email body with []",
    route="body",
    examples=["write [] in the email body", "add a line [] to the email"],
)
def append_body(text: str) -> None:
    """append a line to the body of the email; an empty text makes an empty line"""
    email = draft()
    email.body = f"{email.body}\n{text}" if email.body else text


@app.action(
    "set email body to []",
    route="body/text",
    repeat="idempotent",
    examples=["replace the email body by []"],
)
def set_body(text: str) -> None:
    """write the whole body of the email anew"""
    draft().body = text


@app.action("read email", method="GET", route="email", examples=["show me the open email"])
def read() -> Result:
    """the open email: recipients, subject, body, attachments"""
    email = app.state
    names = ", ".join(a.name for a in email.attachments)
    text = f"To: {', '.join(email.recipients)}\nSubject: {email.subject}\n\n{email.body}"
    return Result(f"{text}\n\nAttachments: {names}" if names else text, msgspec.to_builtins(email))


# -- recipients --------------------------------------------------------------------------------


@app.action(
    "add recipient email address []",
    route="recipient",
    repeat="idempotent",
    examples=["send the email to []", "email recipient []"],
)
def add_recipient(address: str) -> str:
    """add one recipient to the email, or several separated by commas"""
    email = draft()
    known = {parse_addresses(r)[0].bare.lower() for r in email.recipients}
    for found in parse_addresses(address):
        if found.bare.lower() not in known:
            email.recipients.append(str(found))
            known.add(found.bare.lower())
    return f"To: {', '.join(email.recipients)}"


@app.action("remove recipient email address []", route="recipient/remove", repeat="idempotent")
def remove_recipient(address: str) -> str:
    """take a recipient out of the email"""
    email = draft()
    wanted = {found.bare.lower() for found in parse_addresses(address)}
    left = [r for r in email.recipients if parse_addresses(r)[0].bare.lower() not in wanted]
    if len(left) == len(email.recipients):
        raise Refused(f"{address[:100]!r} is not among the recipients.", status=404)
    email.recipients = left
    return f"To: {', '.join(left)}"


# -- attachments -------------------------------------------------------------------------------


@app.action(
    "attach file [] to email",
    route="attachment",
    effects=["read"],
    examples=["attach [] to the email"],
    max_body=40_000_000,
)
def attach(name: str, data: str = "", type: str = "") -> str:
    """attach a file that an app has saved, by its name, or any file by its whole path

    With `data` (base64) and `type` (say image/png) the content itself is attached under that name.
    """
    email = draft()
    content, name = (_decoded(data), name) if data else _file(name)
    name = Path(name.replace("\\", "/")).name.strip()
    if not name or any(ord(c) < 32 for c in name):
        raise Refused("An attachment needs a name.")
    if name in {a.name for a in email.attachments}:
        raise Refused(f"{name!r} is attached already.", status=409)
    if sum(a.size for a in email.attachments) + len(content) > LARGEST:
        raise Refused(f"Attachments may have {LARGEST // 1_000_000} MB together.", status=413)
    kind = type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    write_atomically(app.files / name, content)
    email.attachments.append(Attachment(name, kind, len(content)))
    return f"Attached {name} ({len(content):,} bytes)."


def _file(name: str) -> tuple[bytes, str]:
    path = find_file(name)
    try:
        if path.stat().st_size > LARGEST:
            raise Refused(f"{path.name} has more than {LARGEST // 1_000_000} MB.", status=413)
        return path.read_bytes(), path.name
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("The data of the attachment is not base64.") from None


@app.action("remove attachment [] from email", route="attachment/remove")
def remove_attachment(name: str) -> None:
    """take an attachment off the email"""
    email = draft()
    left = [a for a in email.attachments if a.name != name.strip()]
    if len(left) == len(email.attachments):
        raise Refused(f"No attachment is called {name[:100]!r}.", status=404)
    email.attachments = left


# -- keeping and sending -----------------------------------------------------------------------


@app.action("save email as draft", route="save", repeat="idempotent", examples=["keep the email for later"])
def save() -> str:
    """keep the email as a draft (every change is kept anyway)"""
    return f"The draft {draft().subject or 'without a subject'!r} is kept."


@app.action("open email draft []", route="draft", repeat="idempotent")
async def open_draft(subject: str) -> str:
    """open a kept email by its subject"""
    wanted = subject.strip().lower()
    for saved in app.saved():
        if wanted in saved.title.lower():
            app.open(saved.id)
            return f"{saved.title} is open."
    raise Refused(f"No email has the subject {subject[:100]!r}.", status=404)


@app.action(
    "send email",
    route="send",
    effects=["outward"],
    examples=["send the email now", "mail it"],
)
async def send_email() -> str:
    """send the open email to its recipients"""
    async with _sending:  # two clicks send one email
        email = draft()
        message = compose(email.recipients, email.subject, email.body, _attached(email))
        document = app.store.id
        refused = await asyncio.to_thread(send, load_account(), message)
        now = datetime.now().strftime("%Y-%m-%d %H:%M")
        if app.store.id == document:
            with app.change("sent the email", final=True):
                app.state.sent = now
    reached = [r for r in email.recipients if parse_addresses(r)[0].bare not in refused]
    told = f"Sent to {', '.join(reached)}."
    return told + (f" Refused by the server: {'; '.join(refused.values())}." if refused else "")


def _attached(email: Email) -> list[tuple[str, str, bytes]]:
    try:
        return [(a.name, a.type, (app.files / a.name).read_bytes()) for a in email.attachments]
    except OSError as error:
        raise Refused(f"An attachment cannot be read: {error}.") from None


app.example(
    "write an email to anna@example.org that the meeting is moved to Friday at ten",
    "start email application",
    "add recipient email address [anna@example.org]",
    "set email subject to [The meeting is moved to Friday]",
    "append email body with [Hello Anna,]",
    "append email body with []",
    "append email body with [our meeting is moved to Friday at ten o'clock.]",
    "append email body with [Is that fine with you?]",
)
app.example(
    "mail the picture sales.png to bob@example.com and carol@example.com right away",
    "start email application",
    "add recipient email address [bob@example.com]",
    "add recipient email address [carol@example.com]",
    "set email subject to [Sales]",
    "append email body with [Hello, here is the picture of our sales.]",
    "attach file [sales.png] to email",
    "send email",
)
