"""Installing and running an app: what Textor is told, the process, its window, and its port."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from app_parts import ask, needs_chromium, opened, process, window

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("email", "chart", "calendar", "drawing")


class Broker(BaseHTTPRequestHandler):
    """Keeps what is registered, as the document's broker would read it; answers as it is told to."""

    server: Any

    def _answer(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.heard.append((self.command, self.path, self.headers.get("authorization"), body))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(
            b'{"error": "Another program owns this class."}' if self.server.status >= 400 else b""
        )

    do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def broker(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    server = HTTPServer(("127.0.0.1", 0), Broker)
    server.heard, server.status = [], status  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.heard  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(*command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    given = os.environ | (env or {})
    return subprocess.run([sys.executable, *command], env=given, capture_output=True, text=True, timeout=60)


@pytest.fixture
def note(tmp_path: Path) -> str:
    """The app of the documentation, as a file."""
    text = (ROOT / "docs" / "apps.md").read_text("utf-8")
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    assert len([line for line in found[1].splitlines() if line.strip()]) <= 10
    (tmp_path / "note.py").write_text(found[1])
    return str(tmp_path / "note.py")


# -- registering -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_registers_in_the_form_of_the_document(name: str) -> None:
    with broker() as (url, heard):
        done = run("-m", f"textor.apps.{name}", "--install", env={"TEXTOR_URL": url, "TEXTOR_TOKEN": "mine"})
        assert done.returncode == 0, done.stderr
    assert {(method, bearer) for method, _, bearer, _ in heard} == {("POST", "Bearer mine")}
    capabilities = [body for _, path, _, body in heard if path == "/capability"]
    examples = [body for _, path, _, body in heard if path == "/example"]
    assert [path for _, path, _, _ in heard] == ["/capability"] * len(capabilities) + ["/example"] * len(
        examples
    )
    launch, *actions = capabilities
    app_class = "column chart" if name == "chart" else name
    assert launch["Action"] == f"start {app_class} application"
    assert (launch["ActionType"], launch["Method"], launch["Route"]) == (0, 4, "")
    assert (launch["AppPath"], launch["AppArguments"]) == (
        sys.executable,
        ["-P", "-m", f"textor.apps.{name}"],
    )
    assert launch["Icon"].startswith("<svg")
    assert {one["AppClass"] for one in capabilities + examples} == {app_class}
    assert all(one["ActionType"] == 1 and one["Vector"] is None for one in actions)
    assert len({one["Action"] for one in actions}) == len({one["Name"] for one in actions}) == len(actions)
    known = {re.sub(r"\[.*?\]", "[]", one["Action"]) for one in capabilities}
    for example in examples:
        lines = {re.sub(r"\[.*\]", "[]", line) for line in example["Answers"]}
        assert example["Question"] and lines <= known, lines - known


DOCUMENT = {
    "email": {"set email subject to []": "subject", "append email body with []": "body",
              "add recipient email address []": "recipient"},
    "chart": {"set column chart title to []": "subject", "add column chart series []": "series"},
    "calendar": {"set calendar event title to []": "title",
                 "append calendar event description with []": "description",
                 "set calendar event date and time to []": "from"},
    "drawing": {"add text to drawing at []": "text", "add line to drawing at []": "line"},
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_capabilities_of_the_document_are_there(name: str) -> None:
    import importlib

    app = importlib.import_module(f"textor.apps.{name}.program").app
    told = {a.phrase: a.capability(app.name, "1") for a in app.actions.values()}
    for phrase, route in DOCUMENT[name].items():
        one = told[phrase]
        assert (one["Route"], one["Method"], one["Contract"]) == (route, 1, "SingleText")
        assert one["ContentType"] == "application/json"


def test_registering_tells_what_came_of_it(note: str) -> None:
    with broker() as (url, heard):
        done = run(note, "7801", "-install", "--url", url + "/")  # as the document's apps are called
        assert (done.returncode, heard[0][2]) == (0, None)
        assert heard[0][3]["AppArguments"] == [note]
        assert done.stdout == "Note: 2 capabilities and 0 examples are registered.\n"
    with broker(401) as (url, _):
        done = run(note, "--install", "--url", url)
        assert done.returncode == 3 and "waits for your yes" in done.stderr
        done = run(note, "--install", "--url", url, "--token", "wrong")
        assert done.returncode == 2 and "Textor refused (401)" in done.stderr
    with broker(403) as (url, _):
        done = run(note, "--install", "--url", url)
        assert done.returncode == 2 and "Another program owns this class." in done.stderr
    done = run(note, "--install", "--url", "http://127.0.0.1:1")
    assert done.returncode == 2 and "No Textor answers" in done.stderr and "Traceback" not in done.stderr
    with broker() as (url, heard):
        assert run("-m", "textor.apps.chart", "--uninstall", "--url", url).returncode == 0
        assert heard[0][:2] == ("DELETE", "/capability/column%20chart")


# -- running -----------------------------------------------------------------------------------


def test_a_process_answers_with_its_token_and_keeps_its_document(note: str, data: Path) -> None:
    with process(note, data=data, token="secret") as (started, port):
        told = ask(port, "/health?nonce=n1").json
        assert told["pid"] == started.pid
        assert told["proof"] == hmac.new(b"secret", b"n1", hashlib.sha256).hexdigest()
        assert ask(port, "/append", {"Text": "milk"}).status == 401
        assert ask(port, "/append", {"Text": "milk"}, authorization="Bearer secret").status == 200
        taken = run(note, str(port))
        assert taken.returncode == 2 and f"Port {port} cannot be used" in taken.stderr
        with process(note, data=data) as (_, second):  # another window over the same document
            assert ask(second, "/append", {"line": "bread"}).status == 200
            state = ask(port, "/app/state", authorization="Bearer secret").json["state"]
            assert state == {"text": "milk\nbread\n"}
    assert run(note, "port").returncode == 2
    kept = json.loads((data / "apps" / "note" / "document.json").read_text())
    assert kept["state"] == {"text": "milk\nbread\n"}


@needs_chromium
@pytest.mark.browser
def test_two_windows_of_the_ten_lines_are_one_document(note: str, data: Path) -> None:
    from playwright.async_api import expect

    async def run() -> None:
        with process(note, data=data) as (_, port):
            async with window(port, dark=True) as page:
                other = await page.context.new_page()
                await opened(other, port)
                await page.get_by_label("Text").fill("By hand\n")
                await expect(other.get_by_label("Text")).to_have_value("By hand\n")
                await page.get_by_role("heading", name="Note").click()
                await asyncio.to_thread(ask, port, "/append", {"Text": "by the AI"})
                for one in (page, other):
                    await expect(one.get_by_label("Text")).to_have_value("By hand\nby the AI\n")

    asyncio.run(run())


@needs_chromium
@pytest.mark.browser
def test_a_window_without_its_token_and_one_whose_app_ended_say_so(note: str, data: Path) -> None:
    from playwright.async_api import expect

    async def run() -> None:
        with process(note, data=data, token="secret") as (started, port):
            async with window(port, "secret") as page:
                context = await page.context.browser.new_context()  # type: ignore[union-attr]
                stranger = await context.new_page()
                await stranger.goto(f"http://127.0.0.1:{port}/")
                await expect(stranger.get_by_role("status")).to_contain_text("needs the address")
                await page.reload()
                await page.locator("html[data-live=yes]").wait_for()
                started.terminate()
                await expect(page.get_by_role("status")).to_contain_text("The app does not answer")

    asyncio.run(run())
