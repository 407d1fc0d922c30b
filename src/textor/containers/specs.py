"""From what an action asks for to what the engine is to make, and back from what stands on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from textor.capabilities.port import Scope
from textor.containers import wishes
from textor.containers.container import About, Container
from textor.containers.engine import Allowance, Engine, Spec, State
from textor.containers.labels import ACTION, CONTAINER, PREFIX, SESSION, Owner
from textor.errors import CapabilityError
from textor.values import Json

ABOUT = PREFIX + "about"


@dataclass(frozen=True)
class Rules:
    """What agents may have. `images`: patterns that need no asking; others pass the gate when the
    list is empty and are refused when it is not. `shared`: folders beside the workspace."""

    images: Sequence[str] = ()
    shared: Sequence[Path] = ()
    allowance: Allowance = field(default_factory=Allowance)


def spec_of(arguments: dict[str, Json], scope: Scope, owner: Owner, rules: Rules) -> tuple[Spec, About]:
    """What `start_container` asks for. `CapabilityError` for what is not allowed or cannot be read."""
    image = arguments["image"]
    if rules.images and not wishes.allowed_image(image, rules.images):
        raise CapabilityError(
            f"The image {image!r:.200} is not allowed here.", f"Allowed: {', '.join(rules.images)}."
        )
    environment = wishes.environment_of(arguments["environment"])
    volumes = wishes.texts_of(arguments["volumes"], "volumes")
    ports = wishes.texts_of(arguments["ports"], "ports")
    for port in ports:
        wishes.port_of(port)
    mounts = [wishes.volume_of(wish, scope.workspace, rules.shared) for wish in volumes]
    covers, blanks = wishes.covered(mounts)
    about = About(
        wishes.checked_name(arguments["name"] or wishes.made_name(scope.key)),
        arguments["description"],
        scope.agent,
        wishes.masked(environment),
        volumes,
        ports,
        arguments["timeout"],
    )
    told = wishes.texts_of(arguments["parameters"], "parameters")
    labels = owner.labels(CONTAINER, scope.session, scope.key)
    spec = Spec(
        name=wishes.engine_name(scope.session, scope.key),
        image=image,
        command=told,
        entrypoint=[arguments["command"]] if arguments["command"] else None,
        environment=environment,
        labels={**labels, ABOUT: json.dumps(asdict(about))},
        mounts=[*mounts, *blanks],
        covers=covers,
        user=wishes.user_for(scope.workspace, bool(mounts)),
        stdin="none" if about.timeout else "open",
        writable=arguments["writable"],
        allowance=rules.allowance,
    )
    return spec, about


def again(engine: Engine, state: State) -> Container:
    """A container that another process made, by its labels."""
    about = About(**json.loads(state.labels.get(ABOUT, '{"name": "?"}')))
    return Container(engine, state.id, state.labels.get(SESSION, ""), state.labels.get(ACTION, ""), about)


def time_of(text: str) -> datetime:
    """A time as engines write it, with up to nine digits of a second."""
    try:
        seconds = text.replace("Z", "+00:00").split("+")[0].split(".")[0]
        return datetime.fromisoformat(seconds).replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)
