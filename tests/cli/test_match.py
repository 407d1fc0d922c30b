"""`textor match`: lines of a plan among the capabilities of a file, and their calibration."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from textor import weights
from textor.memory import embedder_fetch

from .conftest import Program

DATA = Path(__file__).resolve().parent.parent / "data"
CAPABILITIES = str(DATA / "action_matching_capabilities.json")
LABELLED = str(DATA / "action_matching_dev.jsonl")


@pytest.fixture
def equipped(textor: Program) -> Program:
    """With the embedding model in its data folder."""
    folder = Path(textor.env["TEXTOR_DATA"]) / "models"
    folder.mkdir(parents=True)
    for wanted in (embedder_fetch.MODEL, embedder_fetch.VOCABULARY):
        (folder / wanted.file).symlink_to(weights.fetch(wanted))
    return textor


def compiled(program: Program, lines: list[str], *args: str) -> list[dict[str, Any]]:
    told = "".join(json.dumps({"line": line}) + "\n" for line in lines)
    done = program("match", "--capabilities", CAPABILITIES, "-", "--json", *args, stdin=told)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lines_are_compiled(equipped: Program) -> None:
    lines = ["pause music", "3. trash [old.log]", "order a pizza [Margherita]", "set level to [40] percent"]
    exact, trash, pizza, level = compiled(equipped, lines)
    assert (exact["state"], exact["capability"], exact["exact"]) == ("match", "music.pause", True)
    assert (trash["state"], trash["capability"], trash["line"]) == (
        "match",
        "files.delete",
        "trash [old.log]",
    )
    assert trash["parameters"] == ["old.log"] and trash["arguments"] == {"text": "old.log"}
    assert pizza["state"] in ("fail", "ambiguous") and pizza["fault"]
    assert level["state"] in ("ambiguous", "weak") and len(level["candidates"]) == 5
    assert set(level["candidates"][0]) == {"capability", "score", "probability", "objection"}
    # The vectors of the capabilities are kept beside the journal.
    assert (Path(equipped.env["TEXTOR_DATA"]) / "vectors.db").exists()
    assert compiled(equipped, lines) == [exact, trash, pizza, level]


def test_the_rule_of_the_article(equipped: Program) -> None:
    exact, near = compiled(equipped, ["pause music", "pause the music"], "--mode", "aie")
    assert (exact["state"], near["state"]) == ("match", "weak")


def test_words_alone_need_no_model_and_a_person_can_read_it(textor: Program) -> None:
    (textor.folder / "lines.jsonl").write_text('{"line": "pause music"}\n\n{"line": "make it loud"}\n')
    done = textor("match", "--capabilities", CAPABILITIES, "lines.jsonl", "--mode", "lexical")
    assert done.returncode == 0, done.stderr
    first, second, *candidates = done.stdout.splitlines()
    assert first == "match      pause music  ->  music.pause"
    assert second.split()[0] in ("weak", "fail", "ambiguous") and len(candidates) == 5
    assert not (Path(textor.env["TEXTOR_DATA"]) / "models").exists()


def test_a_calibration_is_written_and_used(textor: Program) -> None:
    args = ("--capabilities", CAPABILITIES, "--mode", "lexical")
    done = textor("match", "calibrate", *args, "--out", "made.json", "--json", LABELLED)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert json.loads((textor.folder / "made.json").read_text()) == told["calibration"]
    assert told["calibration"]["model_id"] == "words" and told["calibration"]["lines"] == 153
    assert told["cross_validation"]["precision"] >= 0.9
    (found,) = compiled(textor, ["pause music"], "--mode", "lexical", "--calibration", "made.json")
    assert found["state"] == "match"
    shown = textor("match", "calibrate", *args, LABELLED).stdout
    assert shown.startswith("{") and "by cross-validation matches have precision" in shown
    strict = {**told["calibration"], "match": 1.1, "model_id": "all-MiniLM-L6-v2.int8"}
    (textor.folder / "other.json").write_text(json.dumps(strict))
    wrong = textor("match", *args, "--calibration", "other.json", LABELLED)
    assert wrong.returncode == 2 and "was made for the embedding model all-MiniLM" in wrong.stderr


class Handler(BaseHTTPRequestHandler):
    """Embeddings by how often the letters a to z occur."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = [[text.count(chr(97 + at)) for at in range(26)] for text in body["input"]]
        data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
        sent = json.dumps({"data": data}).encode()
        self.send_response(200 if self.path == "/v1/embeddings" and body["model"] == "letters" else 404)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *args: Any) -> None:
        """Nothing on stderr."""


def test_an_embedder_of_a_server(textor: Program) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        textor.configure(f'[providers.mine]\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n')
        near, far = compiled(textor, ["pause the music", "xyz"], "--embedder", "mine:letters")
        assert near["candidates"][0]["capability"] == "music.pause"
        assert near["candidates"][0]["probability"] == 0.0, "nothing is calibrated for this model"
        assert far["state"] != "match"
        args = ("match", "--capabilities", CAPABILITIES, "-", "--embedder", "mine:other")
        wrong = textor(*args, stdin='{"line": "a"}')
        assert wrong.returncode == 1 and "status 404" in wrong.stderr
        server.shutdown()


@pytest.mark.parametrize(
    ("text", "args", "says"),
    [
        ('{"line": 3}', [], "stdin, line 1: {'line': 3} is no object with a text \"line\"."),
        ('{"line": "a"}\n{"line"}', [], "stdin, line 2, column 8: this is no valid JSON"),
        ('{"line": "a"}', ["--calibration", "none.json"], "none.json cannot be read"),
        ('{"line": "a"}', ["--calibration", "bad.json"], "bad.json is no calibration"),
        ('{"line": "a"}', ["--out", "x"], "--out belongs to `textor match calibrate`."),
    ],
)
def test_wrong_use_is_told(textor: Program, text: str, args: list[str], says: str) -> None:
    (textor.folder / "bad.json").write_text("{}")
    done = textor("match", "--capabilities", CAPABILITIES, "--mode", "lexical", "-", *args, stdin=text)
    assert done.returncode == 2 and says in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"line": "a"}', 'entry 1: "expected" is missing.'),
        ('{"line": "a", "expected": "no.such"}', 'entry 1: there is no capability "no.such" in the list.'),
        ('{"line": "a", "expected": null}', "A calibration needs 10 lines"),
    ],
)
def test_lines_that_cannot_calibrate_are_told(textor: Program, text: str, says: str) -> None:
    args = ("--capabilities", CAPABILITIES, "--mode", "lexical", "-")
    done = textor("match", "calibrate", *args, stdin=text)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1


def test_without_a_network_the_model_is_asked_for(textor: Program) -> None:
    textor.env["PIP_NO_INDEX"] = "1"
    done = textor("match", "--capabilities", CAPABILITIES, "-", stdin='{"line": "a"}')
    assert done.returncode == 1
    assert "The embedding model could not be fetched" in done.stderr.splitlines()[-1]
    assert "--mode lexical" in done.stderr
