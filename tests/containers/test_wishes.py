"""What agents may ask of a container, and what they may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from textor.containers import wishes
from textor.containers.engine import Mount, addresses
from textor.containers.labels import is_alive, this_process
from textor.containers.wishes import engine_name, made_name, user_for
from textor.errors import CapabilityError


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "data").mkdir(parents=True)
    return folder.resolve()


def test_volumes_of_the_workspace(workspace: Path) -> None:
    volume = wishes.volume_of("data:/data:ro", workspace, [])
    assert volume == Mount(workspace / "data", "/data", writable=False)
    assert wishes.volume_of(".:/w", workspace, []) == Mount(workspace, "/w")
    assert wishes.volume_of(f"{workspace}/data:/a/../b", workspace, []).target == "/b"


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("/etc:/data", "no workspace or shared folder"),
        ("..:/data", "no workspace or shared folder"),
        ("out:/data", "no workspace or shared folder"),
        ("out/../../x:/data", "no workspace or shared folder"),
        ("missing:/data", "there is no"),
        ("data:/", "whole container"),
        ("data:/x/..", "whole container"),
        ("data", "cannot be read"),
        ("data:inside", "cannot be read"),
        (":/data", "cannot be read"),
        (7, "is a text"),
        (".git/hooks:/h", "run by themselves"),
        (".git:/h:rw", "run by themselves"),
        ("own-hooks:/h", "run by themselves"),
    ],
)
def test_volumes_that_are_refused(workspace: Path, wish: object, says: str) -> None:
    (workspace / "out").symlink_to("/etc")
    (workspace / "own-hooks").mkdir()
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n\thooksPath = own-hooks\n")
    with pytest.raises(CapabilityError, match=says):
        wishes.volume_of(wish, workspace, [])


def test_shared_folders_by_their_real_place(workspace: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "link").symlink_to(shared)
    (workspace / "way").symlink_to(shared)
    assert wishes.volume_of("way:/s", workspace, [tmp_path / "link"]).source == shared.resolve()


def test_what_runs_by_itself_is_read_only_in_a_volume(workspace: Path) -> None:
    git = workspace / "lib" / ".git"
    for folder in ("hooks", "objects", "refs"):
        (git / folder).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text("")
    _, files = wishes.covered([Mount(workspace, "/w")])
    assert files == [
        Mount(git, "/w/lib/.git"),
        Mount(git / "config", "/w/lib/.git/config", writable=False),
        Mount(git / "hooks", "/w/lib/.git/hooks", writable=False),
    ]
    assert wishes.covered([Mount(workspace, "/w", writable=False)]) == ([], [])
    assert wishes.volume_of("lib/.git:/g:ro", workspace, []).writable is False


def test_keys_in_a_mounted_home_are_covered(workspace: Path) -> None:
    (workspace / ".ssh").mkdir()
    (workspace / ".netrc").write_text("x")
    (workspace / ".aws").symlink_to("/etc")
    folders, files = wishes.covered([Mount(workspace, "/home")])
    assert folders == ["/home/.ssh"]
    assert files == [Mount(Path("/dev/null"), "/home/.netrc", writable=False)]


def test_ports() -> None:
    assert wishes.port_of(8080) == wishes.port_of("8080") == wishes.Port(8080)
    assert wishes.port_of("18080:80") == wishes.Port(80, 18080)
    for wrong in ("", "x", "0", "70000", "80:80", "1.2.3.4:80", "-1", "8080/udp"):
        with pytest.raises(CapabilityError, match="The port"):
            wishes.port_of(wrong)


def test_environment_and_its_secrets() -> None:
    environment = wishes.environment_of({"A": "b", "N": 1, "API_KEY": "sk-123456", "PASSWORD": "abc"})
    assert environment["N"] == "1"
    assert wishes.masked(environment)["API_KEY"] == wishes.MASK
    assert wishes.secrets_in(environment) == ["sk-123456"]  # three letters would hide half of any output
    for wrong in ({"": "x"}, {"a=b": "x"}, {"a": "\0"}, ["A=b"]):
        with pytest.raises(CapabilityError):
            wishes.environment_of(wrong)


def test_images_by_pattern() -> None:
    assert wishes.allowed_image("python:3.12", ["busybox", "python:3.*"])
    assert not wishes.allowed_image("evil/python:3.12", ["python:3.*"])
    assert not wishes.allowed_image("python:3.12", [])


def test_names_that_engines_take() -> None:
    assert engine_name("s1", "a.1") == "textor-s1-a.1"
    first, second = engine_name("s1", "a/1"), engine_name("s1", "a:1")
    assert first != second
    assert first.startswith("textor-s1-a_1-")
    assert wishes.checked_name(made_name("main/3:1" + "x" * 90)).endswith("x")
    assert made_name("a/1") == "a-1"


def test_nobody_runs_inside_unless_files_are_mounted(workspace: Path) -> None:
    assert user_for(workspace, mounted=False) == "65534:65534"
    assert user_for(workspace, mounted=True) == f"{os.getuid()}:{os.getgid()}"


def test_a_process_is_known_by_more_than_its_number() -> None:
    owner = this_process()
    assert is_alive(owner.instance)
    pid, born, boot = owner.instance.split("-")
    assert not is_alive(f"{pid}-{int(born) + 1}-{boot}")
    assert not is_alive(f"{pid}-{born}-other")
    assert not is_alive("")
    assert is_alive(f"1-{this_born(1)}-{boot}")


def this_born(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_addresses_named_by_the_environment_come_first(tmp_path: Path) -> None:
    assert addresses({"DOCKER_HOST": "tcp://box:2375"})[0] == "tcp://box:2375"
    assert addresses({"DOCKER_HOST": "ssh://box"})[:1] != ["ssh://box"]
