"""The email program: by the calls of the document, by hand in Chromium, and to a real mail server."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from app_parts import Served, needs_chromium, served, window

from textor.apps.email.addresses import parse_addresses
from textor.apps.email.program import app
from textor.apps.files import files_folder
from textor.apps.store import Refused
from textor.config import config_path


class Box:
    """What a mail server received; it knows one recipient that it refuses."""

    def __init__(self) -> None:
        self.letters: list[EmailMessage] = []
        self.recipients: list[list[str]] = []

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address.startswith("nobody@"):
            return "550 No such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.recipients.append(envelope.rcpt_tos)
        letter = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(letter, EmailMessage)
        self.letters.append(letter)
        return "250 OK"


@asynccontextmanager
async def mail_server(monkeypatch: pytest.MonkeyPatch, **options: Any) -> AsyncIterator[Box]:
    """A real SMTP server on a free port, and the account that uses it."""
    from aiosmtpd.smtp import SMTP

    box = Box()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(box, enable_SMTPUTF8=True, **options), "127.0.0.1", 0)
    account(monkeypatch, server.sockets[0].getsockname()[1])
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()


def account(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    settings = {
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "SECURITY": "none",
        "SENDER": "Robert Henry <r@example.org>",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"TEXTOR_APPS_EMAIL_{name}", value)


async def letter(site: Served) -> None:
    await site.say("recipient", "anna@example.org")
    await site.say("recipient", "Bob Stone <bob@example.com>; anna@example.org")
    await site.say("subject", "Café & Grüße")
    for line in ("Hello,", "", "see [this]."):
        await site.say("body", line)


# -- the calls ---------------------------------------------------------------------------------


def test_an_email_is_written_line_by_line() -> None:
    async def run() -> None:
        async with served(app) as site:
            await letter(site)
            assert app.state.recipients == ["anna@example.org", "Bob Stone <bob@example.com>"]
            assert app.state.body == "Hello,\n\nsee [this]."
            await site.say("recipient/remove", "BOB@example.com")
            assert (await site.ok("/email"))["text"].startswith("To: anna@example.org\nSubject: Café & Grüße")
            said = await site.refusal("/recipient", {"Text": "carol@example.com, nonsense"})
            assert said == "'nonsense' is no email address. Write one such as anna@example.org."
            assert app.state.recipients == ["anna@example.org"]
            assert "not among" in await site.refusal("/recipient/remove", {"Text": "x@example.org"}, 404)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a@b.de", ["a@b.de"]),
        ("a@b.de, c@d.eu;e@f.gh", ["a@b.de", "c@d.eu", "e@f.gh"]),
        ('"Stone, Bob" <bob@b.de>, A B <a@b.de>', ['"Stone, Bob" <bob@b.de>', "A B <a@b.de>"]),
        ("mailto:a@b.de", ["a@b.de"]),
        ("müller@exämple.de", ["müller@exämple.de"]),
    ],
)
def test_addresses_are_read(text: str, found: list[str]) -> None:
    assert [str(one) for one in parse_addresses(text)] == found


@pytest.mark.parametrize(
    "text", ["", "a", "a@", "@b", "a b@c.de", "a@b..c", "a@b.de\r\nBcc: x@y.z", "a@-b.de"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse_addresses(text)


def test_attachments_are_files_of_other_apps_or_content(tmp_path: Path) -> None:
    async def run() -> None:
        files_folder().mkdir(parents=True)
        (files_folder() / "chart.png").write_bytes(b"PNG")
        (tmp_path / "notes.txt").write_text("notes")
        async with served(app) as site:
            assert (await site.say("attachment", "chart.png"))["text"] == "Attached chart.png (3 bytes)."
            await site.say("attachment", str(tmp_path / "notes.txt"))
            data = base64.b64encode(b"\0\1").decode()
            await site.ok("/attachment", {"name": "../../a.bin", "data": data})
            assert [(a.name, a.type) for a in app.state.attachments] == [
                ("chart.png", "image/png"),
                ("notes.txt", "text/plain"),
                ("a.bin", "application/octet-stream"),
            ]
            assert (app.files / "a.bin").read_bytes() == b"\0\1"
            assert "Did you mean chart.png?" in await site.refusal("/attachment", {"Text": "chrt.png"}, 404)
            assert "attached already" in await site.refusal("/attachment", {"Text": "chart.png"}, 409)
            assert "base64" in await site.refusal("/attachment", {"name": "x", "data": "ü"})
            await site.say("attachment/remove", "a.bin")
            assert len(app.state.attachments) == 2

    asyncio.run(run())


def test_drafts_are_kept_and_opened_again() -> None:
    async def run() -> None:
        async with served(app) as site:
            await site.say("subject", "Garden")
            await site.ok("/save", {})
            await site.ok("/app/new", {})
            assert app.state.subject == ""
            await site.say("subject", "House")
            titles = [one["title"] for one in (await site.ok("/app/documents"))["documents"]]
            assert sorted(titles) == ["Draft: Garden", "Draft: House"]
            assert (await site.say("draft", "garden"))["text"] == "Draft: Garden is open."
            assert app.state.subject == "Garden"
            assert "no" in (await site.refusal("/draft", {"Text": "cellar"}, 404)).lower()
            assert "no document" in await site.refusal("/app/open", {"id": "../../x"}, 404)

    asyncio.run(run())


# -- sending -----------------------------------------------------------------------------------


def test_an_email_arrives_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with mail_server(monkeypatch) as box, served(app) as site:
            await letter(site)
            picture = base64.b64encode(b"\x89PNG").decode()
            await site.ok("/attachment", {"name": "chart.png", "data": picture, "type": "image/png"})
            answers = await asyncio.gather(site.ask("/send", {}), site.ask("/send", {}))
            assert sorted(a.status for a in answers) == [200, 409]
            (got,) = box.letters
            assert box.recipients == [["anna@example.org", "bob@example.com"]]
            assert got["To"] == "anna@example.org, Bob Stone <bob@example.com>"
            assert got["From"] == "Robert Henry <r@example.org>"
            assert got["Subject"] == "Café & Grüße"
            body = got.get_body()
            assert body is not None and body.get_content().splitlines() == ["Hello,", "", "see [this]."]
            (attached,) = got.iter_attachments()
            assert (attached.get_filename(), attached.get_content()) == ("chart.png", b"\x89PNG")
            assert "was sent at" in await site.refusal("/subject", {"Text": "again"}, 409)
            edit = {"path": "subject", "value": "x", "base": None}
            assert "cannot be edited" in await site.refusal("/app/edit", edit, 409)

    asyncio.run(run())


def test_what_the_server_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with mail_server(monkeypatch) as box, served(app) as site:
            await site.say("subject", "x")
            assert "no recipient" in await site.refusal("/send", {})
            await site.say("recipient", "nobody@example.org")
            assert "No such user" in await site.refusal("/send", {})
            assert app.state.sent == ""
            await site.say("recipient", "anna@example.org")
            told = (await site.ok("/send", {}))["text"]
            assert told == "Sent to anna@example.org. Refused by the server: 550 No such user."
            assert box.recipients == [["anna@example.org"]]

    asyncio.run(run())


def test_an_account_that_cannot_send_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with served(app) as site:
            await letter(site)
            said = await site.refusal("/send", {}, 409)
            assert "no account" in said and "[apps.email]" in said and str(config_path()) in said
            account(monkeypatch, 1)
            assert "mail server 127.0.0.1:1 cannot be used" in await site.refusal("/send", {}, 424)
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_USER", "anna")
            assert "no password for anna" in await site.refusal("/send", {}, 409)
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_PASSWORD", "secret")
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_HOST", "mail.example.org")
            assert "in the clear" in await site.refusal("/send", {})
            assert app.state.sent == ""

    asyncio.run(run())


def test_the_password_is_asked_of_the_keyring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import keyring
    from aiosmtpd.smtp import AuthResult
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):
        """A real backend, in memory."""

        priority = 1.0

        def __init__(self) -> None:
            self.kept: dict[tuple[str, str], str] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

    def check(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        right = (given.login, given.password) == (b"anna", b"s3cret")
        return AuthResult(success=right, handled=False)

    async def run() -> None:
        before = keyring.get_keyring()
        keyring.set_keyring(Memory())
        keyring.set_password("textor-email", "anna", "s3cret")
        server = mail_server(monkeypatch, authenticator=check, auth_require_tls=False)
        try:
            async with server as box, served(app) as site:
                await letter(site)
                monkeypatch.setenv("TEXTOR_APPS_EMAIL_USER", "anna")
                await site.ok("/send", {})
                assert len(box.letters) == 1
                await site.ok("/app/new", {})
                await letter(site)
                monkeypatch.setenv("TEXTOR_APPS_EMAIL_PASSWORD", "wrong")
                assert "refused the password of anna" in await site.refusal("/send", {})
        finally:
            keyring.set_keyring(before)

    asyncio.run(run())


def test_the_account_stands_in_the_configuration(tmp_path: Path) -> None:
    async def run() -> None:
        async with served(app) as site:
            await letter(site)
            path = config_path()
            path.parent.mkdir(parents=True)
            for text, told in (
                ('sender = "a@b.de"', "apps.email.host is not set"),
                ('host = "h"', "apps.email.sender is not set"),
                ('host = "h"\nsender = "a@b.de"\nport = 0', "port"),
                ('host = "h"\nsender = "a@b.de"\npasword = "x"', "did you mean password?"),
                ("host =", "TOML"),
            ):
                path.write_text(f"[apps.email]\n{text}")
                said = await site.refusal("/send", {}, 409)
                assert str(path) in said and told in said
            path.write_text(
                '[apps.email]\nhost = "127.0.0.1"\nport = 1\nsecurity = "none"\nsender = "a@b.de"'
            )
            assert "mail server 127.0.0.1:1 cannot be used" in await site.refusal("/send", {}, 424)

    asyncio.run(run())


# -- over TLS ----------------------------------------------------------------------------------


class Certificate:
    """One that is made here, for "localhost" alone; nobody else vouches for it."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        self.path, secret = folder / "mail.pem", folder / "mail.key"
        self.path.write_bytes(made.public_bytes(pem))
        secret.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(self.path, secret)


@asynccontextmanager
async def tls_server(
    monkeypatch: pytest.MonkeyPatch, certificate: Certificate, security: str
) -> AsyncIterator[Box]:
    """A mail server that takes nothing and no password in the clear."""
    from aiosmtpd.smtp import SMTP, AuthResult

    def check(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        return AuthResult(success=given.password == b"s3cret", handled=False)

    def smtp() -> SMTP:
        starts = {"tls_context": certificate.context, "require_starttls": True}
        # Where TLS is there from the first byte, aiosmtpd is not told of it.
        options = starts if security == "starttls" else {"auth_require_tls": False}
        return SMTP(box, authenticator=check, auth_required=True, **options)

    box = Box()
    outer = certificate.context if security == "tls" else None
    server = await asyncio.get_running_loop().create_server(smtp, "127.0.0.1", 0, ssl=outer)
    account(monkeypatch, server.sockets[0].getsockname()[1])
    for name, value in (
        ("HOST", "localhost"),
        ("SECURITY", security),
        ("USER", "anna"),
        ("PASSWORD", "s3cret"),
    ):
        monkeypatch.setenv(f"TEXTOR_APPS_EMAIL_{name}", value)
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_goes_over_tls_to_a_server_that_is_vouched_for(
    security: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate = Certificate(tmp_path)

    async def run() -> None:
        async with tls_server(monkeypatch, certificate, security) as box, served(app) as site:
            await letter(site)
            said = await site.refusal("/send", {}, 424)
            assert "is not trusted: self-signed certificate. Nothing was sent." in said
            assert "certificates = …" in said
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_CERTIFICATES", str(certificate.path))
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_HOST", "127.0.0.1")
            said = await site.refusal("/send", {}, 424)
            assert "IP address mismatch" in said and "as its certificate has it" in said
            assert (box.letters, app.state.sent) == ([], "")
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_HOST", "localhost")
            assert (await site.ok("/send", {}))["text"].startswith("Sent to anna@example.org")
            assert [got["Subject"] for got in box.letters] == ["Café & Grüße"]

    asyncio.run(run())


def test_the_other_kind_of_tls_and_a_file_without_a_certificate_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate = Certificate(tmp_path)

    async def run() -> None:
        async with tls_server(monkeypatch, certificate, "starttls") as box, served(app) as site:
            await letter(site)
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_SECURITY", "tls")
            said = await site.refusal("/send", {}, 424)
            assert "does not speak TLS as it should" in said and 'security = "starttls"' in said
            for name, told in (("no.pem", "No such file"), ("mail.key", "no certificate in PEM form")):
                monkeypatch.setenv("TEXTOR_APPS_EMAIL_CERTIFICATES", str(tmp_path / name))
                assert told in await site.refusal("/send", {}, 409)
            assert box.letters == []
        async with mail_server(monkeypatch), served(app) as site:
            await letter(site)
            monkeypatch.delenv("TEXTOR_APPS_EMAIL_CERTIFICATES")
            monkeypatch.setenv("TEXTOR_APPS_EMAIL_SECURITY", "starttls")
            assert "It offers no STARTTLS here" in await site.refusal("/send", {}, 424)

    asyncio.run(run())


# -- by hand -----------------------------------------------------------------------------------


@needs_chromium
@pytest.mark.browser
def test_a_person_and_the_ai_write_one_email(monkeypatch: pytest.MonkeyPatch) -> None:
    from playwright.async_api import expect

    async def run() -> None:
        async with (
            mail_server(monkeypatch) as box,
            served(app, "secret") as site,
            window(site.port, "secret") as page,
        ):
            assert "secret" not in page.url
            bearer = {"authorization": "Bearer secret"}
            to = page.get_by_label("Add a recipient")
            await to.fill("anna@example.org")
            await to.press("Enter")
            await page.get_by_role("listitem").get_by_text("anna@example.org").wait_for()
            await to.fill("nonsense")
            await to.press("Enter")
            await page.get_by_role("status").get_by_text("is no email address").wait_for()
            subject, text = page.get_by_label("Subject"), page.get_by_label("Body")
            await subject.fill("The garden")
            await text.press_sequentially("Dear Anna,")
            # The AI writes on while the person has the focus: nothing of either is lost.
            await site.ok("/body", {"Text": "the beans are ripe."}, **bearer)
            await page.get_by_role("status").get_by_text("Textor: append email body").wait_for()
            assert await text.input_value() == "Dear Anna,"
            await text.press_sequentially(" hello!")
            await subject.focus()
            await expect(text).to_have_value("Dear Anna, hello!\nthe beans are ripe.")
            await site.ok("/recipient", {"Text": "bob@example.com"}, **bearer)
            await page.get_by_role("listitem").get_by_text("bob@example.com").wait_for()
            await page.get_by_role("button", name="Undo the AI").click()
            await page.get_by_role("listitem").get_by_text("bob@example.com").wait_for(state="detached")
            await page.set_input_files(
                "#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"beans"}
            )
            await page.get_by_role("listitem").get_by_text("a.txt").wait_for()
            await page.get_by_role("button", name="Send").click()
            await page.get_by_text("Sent at").first.wait_for()
            (got,) = box.letters
            assert (got["To"], got["Subject"]) == ("anna@example.org", "The garden")
            assert [a.get_filename() for a in got.iter_attachments()] == ["a.txt"]

    asyncio.run(run())
