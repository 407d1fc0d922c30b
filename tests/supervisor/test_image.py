"""The image of a version, built over a base without pip, and really used: a pipe, a server, training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from version_parts import BASE, MARK, Workshop

from textor.containers.images import Image
from textor.testing import ScriptedServer

Looked = Callable[[str], Image]

#: The first test may have to make an image with all that Textor needs.
pytestmark = pytest.mark.timeout(600)


class Shell:
    """`textor` as a person types it, over the data folder of the workshop."""

    def __init__(self, workshop: Workshop, home: Path) -> None:
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TEXTOR_DATA": str(workshop.versions.data),
            "TEXTOR_CONFIG": str(home / "config.toml"),
            "TEXTOR_REPOSITORY": str(workshop.versions.repository),
            "TEXTOR_SELF_BASE": BASE,
        }

    def __call__(self, *arguments: str, base: str = BASE) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "textor", "self", *arguments]
        env = {**self.env, "TEXTOR_SELF_BASE": base}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="session")
def image(workshop: Workshop) -> str:
    return workshop.built(workshop.tag("image")).image


@pytest.fixture
def shell(workshop: Workshop, tmp_path: Path) -> Shell:
    return Shell(workshop, tmp_path)


@pytest.fixture
def used(tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """`docker run` of an image with a data folder and a workspace of its own; removed at the end."""
    names: list[str] = []
    for name in ("data", "work"):
        (tmp_path / name).mkdir()

    def command(image: str, *options: str, after: tuple[str, ...] = ()) -> list[str]:
        names.append(f"textor-image-{MARK}-{len(names)}-{tmp_path.name}")
        places = ["-v", f"{tmp_path}/data:/data", "-v", f"{tmp_path}/work:/work"]
        user = ["--user", f"{os.getuid()}:{os.getgid()}"]
        return ["docker", "run", "--name", names[-1], *places, *user, *options, image, *after]

    yield command
    subprocess.run(["docker", "rm", "--force", *names], capture_output=True, check=True)


def test_it_is_built_once_and_named_after_its_tag(
    workshop: Workshop, image: str, shell: Shell, looked: Looked
) -> None:
    tag = f"{MARK}-image"
    assert image == f"textor:{tag}"
    known = looked(image)
    assert known.labels["textor.made"].startswith(f"{workshop.versions.commit(tag)} textor-needs:")
    again = shell("build", tag)
    assert again.stdout.rstrip().endswith(f"an environment, and the image {image}."), again.stderr
    assert looked(image) == known
    without = shell("build", tag, base="")
    assert "as an environment only: No base for images is configured" in without.stdout
    unfit = shell("build", tag, base="textor/busybox:test")
    assert unfit.returncode == 0 and "as an environment only" in unfit.stdout and "python3" in unfit.stdout


def test_a_name_that_was_not_made_here_is_left_alone(workshop: Workshop, shell: Shell, image: str) -> None:
    tag = workshop.tag("taken")
    subprocess.run(["docker", "tag", "textor/busybox:test", f"textor:{tag}"], check=True)
    told = shell("build", tag).stdout
    assert f"There is an image textor:{tag} that was not made here" in told


def test_an_agent_works_on_the_pipe_of_a_container(image: str, used: Callable[..., list[str]]) -> None:
    replies = [
        'Data waits.\n<actions><read_stdin n="100"/></actions>',
        'I greet.\n<actions><write_stdout message="Hello Ann &amp; co"/></actions>',
        "Nothing more is to be done.",
        "It has ended.",
    ]
    with ScriptedServer(replies) as server:
        model = ["-e", "TEXTOR_MODEL=mine:scripted", "-e", f"TEXTOR_PROVIDERS_MINE_BASE_URL={server.url}"]
        model += ["-e", "TEXTOR_PROVIDERS_MINE_CONTEXT_WINDOW=32000"]
        # the network of this machine, since that is where the scripted model is
        done = subprocess.run(
            used(image, "-i", "--network", "host", *model, after=("run", "--stdio")),
            input="I am Ann", capture_output=True, text=True, timeout=100,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Hello Ann & co\n"), done.stderr
    assert any("I am Ann" in str(request.messages[-1]["content"]) for request in server.requests)


def test_the_page_is_served_from_a_container(image: str, used: Callable[..., list[str]]) -> None:
    after = ("serve", "--host", "0.0.0.0", "--no-browser", "--json")
    process = subprocess.Popen(
        used(image, "-p", "127.0.0.1:0:7771", after=after),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    name = process.args[process.args.index("--name") + 1]  # type: ignore[index, union-attr]
    port = subprocess.run(
        ["docker", "port", name, "7771/tcp"], capture_output=True, text=True, check=True
    ).stdout.split(":")[-1]
    url = f"http://127.0.0.1:{int(port)}"

    def get(path: str, token: str = "") -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url + path, headers=headers), timeout=20
            ) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, b""

    try:
        status, page = get("/")
        assert status == 200 and b"<title>" in page
        assert get("/api/sessions")[0] == 401
        assert get("/api/sessions", told["token"])[0] == 200
    finally:
        subprocess.run(["docker", "stop", "--time", "10", name], capture_output=True, check=True)
    assert process.wait(20) == 0


def test_what_it_cannot_do_yet_is_told_as_any_unknown_command(
    image: str, used: Callable[..., list[str]]
) -> None:
    done = subprocess.run(used(image, after=("train", "x")), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "invalid choice: 'train'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_line_tells_where_a_version_was_tried(
    workshop: Workshop, image: str, shell: Shell
) -> None:
    tag = image.partition(":")[2]
    tried = shell("try", tag)
    where = f"tried in a container of {image} (docker)"
    assert tried.returncode == 0 and tried.stdout == f"{tag}: passed\n{where}\n", tried.stderr
    assert f"in a container of {image} (docker)" in shell("list").stdout
    with workshop.versions.change() as fields:
        fields["current"] = tag
    try:
        told = shell("status").stdout
    finally:
        with workshop.versions.change() as fields:
            fields["current"] = ""
    home = workshop.versions.home(workshop.versions.commit(tag))
    assert f"in use: {tag}; runs on this machine from {home}; {where}; image {image}" in told
    assert f"before: the installed version, {sys.executable}" in told
