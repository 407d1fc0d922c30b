from pathlib import Path

import pytest

from textor.actions import Action, Capability
from textor.capabilities.files import READ, WRITE
from textor.capabilities.places import map_paths, place, resolve
from textor.capabilities.shell import RUN
from textor.errors import CapabilityError


def judged(path: str, workspace: Path) -> str:
    return place(Action("a", "files.read", {"path": path}), READ, workspace)


@pytest.mark.parametrize("path", ["a.txt", "new/deep/a.txt", ".", "", "sub/../a.txt", "inner-link/x"])
def test_inside(desk, path):
    (desk.workspace / "sub").mkdir()
    (desk.workspace / "inner-link").symlink_to("sub")
    assert judged(path, desk.workspace) == "workspace"
    assert judged(str(desk.workspace / path), desk.workspace) == "workspace"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "..",
        "../a",
        "sub/../../a",
        "~",
        "~/a",
        "link/new.txt",
        "to-be",
        "work2",
        "a\0b",
        "loop/x",
    ],
)
def test_outside(desk, path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    (desk.workspace / "sub").mkdir()
    (desk.workspace / "link").symlink_to("/tmp")
    (desk.workspace / "to-be").symlink_to("../not-there-yet")
    (desk.workspace / "loop").symlink_to("/proc/self/cwd")
    if path == "work2":  # a neighbour whose name begins like ours
        path = str(desk.workspace) + "2"
    assert judged(path, desk.workspace) == "host"


def test_a_workspace_that_is_itself_reached_by_a_link(desk, tmp_path):
    (tmp_path / "alias").symlink_to(desk.workspace)
    assert judged("a.txt", tmp_path / "alias") == "workspace"
    assert judged(str(desk.workspace / "a.txt"), tmp_path / "alias") == "workspace"


def test_text_is_no_path(desk):
    action = Action("a", "files.write", {"text": "/etc/passwd", "path": "a.txt"})
    assert place(action, WRITE, desk.workspace) == "workspace"


def test_what_executes_outside_a_sandbox_acts_on_the_host(desk):
    run = Action("a", "shell.run", {"command": "true"})
    assert place(run, RUN, desk.workspace) == "host"
    boxed = Capability("x", "", RUN.parameters, ("execute",), sandboxed=True)
    assert place(run, boxed, desk.workspace) == "workspace"


def test_paths_are_found_wherever_a_schema_puts_them(desk):
    path = {"type": "string", "format": "path"}
    schema = {
        "type": "object",
        "properties": {
            "many": {"type": "array", "items": path},
            "maybe": {"anyOf": [{"type": "null"}, path]},
            "tree": {"$ref": "#/$defs/Tree"},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, path]},
            "named": {"type": "object", "additionalProperties": path},
        },
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"at": path, "below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            },
            "Circle": {"$ref": "#/$defs/Circle"},
        },
    }
    value = {
        "many": ["a"],
        "maybe": "b",
        "tree": {"at": "c", "below": [{"at": "d", "below": []}]},
        "pair": ["no", "e"],
        "named": {"x": "f"},
        "unknown": "no",
    }
    seen = []
    assert map_paths(value, schema, lambda p: seen.append(p) or p.upper()) == {
        "many": ["A"],
        "maybe": "B",
        "tree": {"at": "C", "below": [{"at": "D", "below": []}]},
        "pair": ["no", "E"],
        "named": {"x": "F"},
        "unknown": "no",
    }
    assert seen == ["a", "b", "c", "d", "e", "f"]
    assert map_paths("x", {"$ref": "#/$defs/Circle", "$defs": schema["$defs"]}, str.upper) == "x"


def test_resolve_refuses_what_is_no_path(desk):
    with pytest.raises(CapabilityError, match="is no path"):
        resolve("a\0b", desk.workspace)
