"""Secrets are replaced before anything is written down."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import stat
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from gate_parts import Case, Step, World, do, make_folder, open_world
from hypothesis import given
from hypothesis import strategies as st

from textor.assembly import services
from textor.config import Config
from textor.events import Definition
from textor.journal.sqlite import SqliteJournal
from textor.secrets import Handed, Masking, Secrets, from_environment, from_keyring
from textor.settings import AppSettings, EmailSettings

KEY = 'sk-"7/gP+q zÄ93'


def test_a_secret_is_masked_in_all_its_forms() -> None:
    secrets = Secrets({"oai": KEY})
    for form in (
        KEY,
        quote(KEY),
        quote(KEY, safe=""),
        "sk-%227%2fgP%2bq%20z%c3%8493",
        json.dumps({"key": KEY}),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(b"Authorization: Bearer " + KEY.encode() + b"!").decode(),
        KEY.encode().hex(),
    ):
        masked = secrets.mask(f"before {form} after")
        assert "[secret oai]" in masked, form
        assert masked.startswith("before ")
        assert masked.endswith(" after")
    assert secrets.masked({"a": [KEY, 1, None]}) == {"a": ["[secret oai]", 1, None]}
    assert secrets.masked_bytes(KEY.encode()) == b"[secret oai]"
    assert secrets.masked_bytes(b"\xff" + KEY.encode()) == b"\xff" + KEY.encode()


@given(st.binary(max_size=5), st.binary(max_size=5), st.binary(min_size=12, max_size=30))
def test_base64_of_a_longer_text_hides_no_secret(before: bytes, after: bytes, secret: bytes) -> None:
    text = secret.hex()  # so that it is a text without white space at its ends
    encoded = base64.b64encode(before + text.encode() + after).decode()
    assert "[secret x]" in Secrets({"x": text}).mask(encoded)


def test_what_is_short_or_a_path_is_no_secret() -> None:
    secrets = Secrets({"a": "short", "b": ""})
    assert not secrets
    assert secrets.mask("short") == "short"
    env = {"OPENAI_API_KEY": "k" * 20, "SSH_AUTH_SOCK": "/tmp/agent.1", "EDITOR": "vi" * 8}
    assert list(from_environment(env)) == [("OPENAI_API_KEY", "k" * 20)]


def test_logs_are_masked_with_their_arguments_and_tracebacks() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(Masking(Secrets({"oai": KEY})))
    log = logging.getLogger("textor.test.secrets")
    log.propagate = False
    log.addHandler(handler)
    log.warning("sent %s", KEY)
    try:
        raise ValueError(KEY)
    except ValueError:
        log.exception("failed")
    assert KEY not in out.getvalue()
    assert out.getvalue().count("[secret oai]") == 2


def test_no_secret_gets_into_journal_blobs_or_context(tmp_path: Path) -> None:
    secret = "s3cr3t-of-this-test"
    big = f"{secret}\n" + "line of a log\n" * 2000

    async def run() -> None:
        script: list[Step] = [do("files_read", path="log.txt"), do("files_read", path="env"), "done"]
        case = Case("", script, files={"log.txt": big, "env": f"KEY={secret}"})
        work = make_folder(tmp_path, case)
        journal = SqliteJournal(tmp_path / "own" / "journal.db")
        made, [model, _] = await open_world(World(), case, tmp_path, journal)
        made.services.registry.secrets = Secrets({"mine": secret})
        definition = Definition("tester", capabilities=("*",), prompt="Work.")
        session = await made.create(workspace=work, definition=definition, model=model.id)
        assert (await session.ask("Read.")).text == "done"
        shown = str([asked.context for asked in model.asked])
        assert secret not in shown
        assert "[secret mine]" in shown
        assert made.host is not None
        await made.host.close()
        await journal.close()

    asyncio.run(run())
    for path in (tmp_path / "own").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_an_answer_is_handed_to_the_host_and_nothing_of_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "handed"
    face, host = Handed(folder), Handed(folder)
    host.host(now=0)
    face.put("s1 a1", "open sesame!")
    [place] = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(place.stat().st_mode)) == (0o700, 0o600)
    assert host.take("s1 a2") is None
    assert host.take("s1 a1") == "open sesame!"
    assert host.take("s1 a1") is None and list(folder.iterdir()) == []
    host.put("s1 a3", "from its own page")  # the host itself keeps it in memory
    assert list(folder.iterdir()) == [] and host.take("s1 a3") == "from its own page"
    face.put("s1 a4", "of one that died")
    host.host(now=place_time(folder) + 10_000)
    assert list(folder.iterdir()) == []


def place_time(folder: Path) -> float:
    [place] = folder.iterdir()
    return place.stat().st_mtime


def test_a_keyring_that_does_not_work_has_no_password() -> None:
    """What it raises is its own affair."""
    import keyring
    from keyring.backend import KeyringBackend

    class Broken(KeyringBackend):
        priority = 1.0

        def get_password(self, service: str, username: str) -> str | None:
            raise OSError("its socket is gone")

        def set_password(self, service: str, username: str, password: str) -> None:
            raise AssertionError

        def delete_password(self, service: str, username: str) -> None:
            raise AssertionError

    before = keyring.get_keyring()
    keyring.set_keyring(Broken())
    try:
        assert from_keyring("textor-email", "anna") == ""
    finally:
        keyring.set_keyring(before)


def test_the_password_in_the_keyring_is_masked_as_one_in_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    asked = threading.Event()

    class Memory(KeyringBackend):
        """A real backend, in memory."""

        priority = 1.0

        def get_password(self, service: str, username: str) -> str | None:
            asked.set()
            return "pa55-in-the-keyring" if (service, username) == ("textor-email", "anna") else None

        def set_password(self, service: str, username: str, password: str) -> None:
            raise AssertionError("nothing is set here")

    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    known = Secrets()
    monkeypatch.setattr(services, "KNOWN", known)
    try:
        mail = EmailSettings(host="smtp.example", sender="anna@example.org", user="anna")
        services.known_secrets(Config(tmp_path / "c.toml", tmp_path, apps=AppSettings(email=mail)))
        assert asked.wait(10)
        for thread in threading.enumerate():
            if thread.name == "keyring":
                thread.join(10)
    finally:
        keyring.set_keyring(before)
    assert known.mask("it is pa55-in-the-keyring") == "it is [secret apps.email.password]"
