"""`--install` and `--uninstall`: telling Textor what an app can do, in the JSON of the document."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from textor.apps.action import LAUNCH, METHODS
from textor.errors import UseError

if TYPE_CHECKING:
    from textor.apps.sdk import App

ADDRESS = "http://127.0.0.1:7771"  #: where the document has its broker
TIMEOUT = 30  #: seconds for one request


class Waits(UseError):
    """The registration was received, and a person has to say yes."""


def capabilities(app: App[Any]) -> list[dict[str, Any]]:
    """LAUNCH first, since it replaces whatever the class had registered before.

    `AppPath` is the program and `AppArguments` what comes before the port.
    """
    path, arguments = command()
    launch = {
        "Action": app.start,
        "AppClass": app.name,
        "AppPath": path,
        "ActionType": LAUNCH,
        "Description": app.purpose,
        "Route": "",
        "Method": METHODS["NA"],
        "ContentType": "",
        "Contract": "",
        "Vector": None,
        "AppArguments": arguments,
        "Title": app.title,
        "Version": app.version,
        "Icon": app.icon,
    }
    shown = [action for action in app.actions.values() if not action.hidden]
    return [launch, *(action.capability(app.name, app.version) for action in shown)]


def command() -> tuple[str, list[str]]:
    """How this program is started again: the interpreter, and the module or file that it runs."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        name = spec.name.removesuffix(".__main__")
        # -P for ours: what lies in the folder of the moment must not be taken for modules
        return sys.executable, [*(["-P"] if name.startswith("textor.") else []), "-m", name]
    file = getattr(main, "__file__", None)
    if file is None:
        raise UseError("An app without a file cannot be started again.", "Put it into a .py file.")
    return sys.executable, [str(Path(file).resolve())]


def install(app: App[Any], address: str, token: str) -> str:
    """Register everything: the sentence to print. Raises `UseError`, `Waits` when a person must agree."""
    waits = False
    told = capabilities(app)
    for capability in told:
        waits |= _send(f"{address}/capability", "POST", token, capability)
    for example in app.examples:
        told_example = {"AppClass": app.name, "Question": example.question, "Answers": list(example.answers)}
        waits |= _send(f"{address}/example", "POST", token, told_example)
    if waits:
        raise Waits(f"{app.title} waits for your yes in Textor.", "With TEXTOR_TOKEN it counts at once.")
    return f"{app.title}: {len(told)} capabilities and {len(app.examples)} examples are registered."


def uninstall(app: App[Any], address: str, token: str) -> str:
    _send(f"{address}/capability/{quote(app.name)}", "DELETE", token, None)
    return f"{app.title} is no longer registered. Its documents stay in {app.folder}."


def _send(url: str, method: str, token: str, body: Any) -> bool:
    """One request; True when it waits for a person (401). Raises `UseError` with what was answered."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"content-type": "application/json"}, method=method)
    if token:
        request.add_header("authorization", f"Bearer {token}")
    if not url.startswith(("http://", "https://")):
        raise UseError(f"{url!r} is no address of Textor.", f"It looks like {ADDRESS}.")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT):
            return False
    except urllib.error.HTTPError as error:
        if error.code == 401 and not token and method == "POST":
            return True
        raise UseError(f"Textor refused ({error.code}): {_sentence(error)}") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise UseError(
            f"No Textor answers at {url}: {reason}.", "Start `textor serve`, or give --url."
        ) from None


def _sentence(error: urllib.error.HTTPError) -> str:
    text = error.read(10_000).decode("utf-8", "replace")
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text[:300] or error.reason
