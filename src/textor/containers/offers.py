"""The container capabilities as they are offered: names, parameters, words.

The names are those of the SIA document.
"""

from __future__ import annotations

from textor.actions import Capability
from textor.capabilities.table import parameters
from textor.values import Json

#: Most bytes of one reading.
MOST = 1 << 20


def _name(what: str = "the container's name") -> dict[str, Json]:
    return {"type": "string", "description": what}


_PATIENCE: dict[str, Json] = {
    "type": "integer",
    "default": 0,
    "minimum": 0,
    "maximum": 3_600_000,
    "description": "milliseconds to wait until something is there",
}


def _texts(description: str) -> dict[str, Json]:
    return {"type": "array", "items": {"type": "string"}, "default": [], "description": description}


START = Capability(
    "start_container",
    "Start a container. With a timeout it runs to its end or until the time is over, and its exit status "
    "and output are the outcome; without one it stays, and you read, write, wait for and stop it by its "
    "name. It has no network; its ports can be reached on 127.0.0.1 of this machine.",
    parameters(
        ["image"],
        image={"type": "string", "description": "the image, such as python:3.12"},
        name={
            "type": "string",
            "default": "",
            "description": "a name of your choice, by which you refer to it; one is made if it is empty",
        },
        description={"type": "string", "default": "", "description": "what it is for"},
        command={"type": "string", "default": "", "description": "the program; that of the image if empty"},
        parameters=_texts("what is handed to the program"),
        environment={
            "type": "object",
            "additionalProperties": {"type": "string"},
            "default": {},
            "description": "variables and their texts",
        },
        volumes=_texts("FOLDER:/INSIDE or FOLDER:/INSIDE:ro, folders of the workspace"),
        ports=_texts("INSIDE or OUTSIDE:INSIDE, such as 8080"),
        timeout={
            "type": "integer",
            "default": 0,
            "minimum": 0,
            "maximum": 86_400_000,
            "description": "milliseconds; 0 for a container that stays",
        },
        writable={
            "type": "boolean",
            "default": False,
            "description": "whether it may write in its own file system outside /tmp",
        },
    ),
    effects=("execute",),
    repeat="keyed",
    phrases=("start a container of image [] named []",),
)

STOP = Capability(
    "stop_container",
    "Stop a container and give its final state. What it wrote can still be read.",
    parameters(["name"], name=_name()),
    effects=("execute",),
    repeat="idempotent",
    phrases=("stop the container []",),
)

WRITE = Capability(
    "write_stdin",
    "Write a text to the input of a running container, as it is: end lines with a line break.",
    parameters(["name", "text"], name=_name(), text={"type": "string", "description": "the input"}),
    effects=("execute",),
    repeat="once",
    phrases=("write to container [] the input []",),
)


def _read(stream: str) -> Capability:
    return Capability(
        f"read_{stream}",
        f"Read what a container has written to {stream} and nobody has read yet. "
        "What is not read now stays for the next time.",
        parameters(
            ["name"],
            name=_name(),
            n={
                "type": "integer",
                "default": 4096,
                "minimum": 1,
                "maximum": MOST,
                "description": "at most so many bytes",
            },
            timeout=_PATIENCE,
        ),
        effects=("read",),
        repeat="keyed",
        phrases=(f"read {stream} of container []",),
    )


READ_OUT, READ_ERR = _read("stdout"), _read("stderr")

WAIT = Capability(
    "wait_container",
    "Wait until a container ends, at most so long, and say how it stands with it.",
    parameters(["name"], name=_name(), timeout={**_PATIENCE, "default": 60_000}),
    effects=("read",),
    repeat="idempotent",
    phrases=("wait for container []",),
)

LIST = Capability(
    "list_containers",
    "List your containers with their state, unread output, ports and volumes.",
    parameters(),
    effects=("read",),
    repeat="idempotent",
    phrases=("list the containers",),
)

REMOVE = Capability(
    "remove_container",
    "Stop a container if it runs, and remove it with all that it holds.",
    parameters(["name"], name=_name()),
    effects=("execute",),
    repeat="idempotent",
    phrases=("remove the container []",),
)
