"""Containers as they are shown: in the status part of a context and by `list_containers`."""

from __future__ import annotations

from dataclasses import dataclass

from textor.containers.container import Container


@dataclass(frozen=True)
class Row:
    """One container as the status part shows it. Unread bytes; secrets masked."""

    name: str
    description: str
    status: str
    final: str
    stdout: int
    stderr: int
    ports: tuple[str, ...]
    volumes: tuple[str, ...]
    environment: dict[str, str]


def row_of(container: Container) -> Row:
    about = container.about
    return Row(
        about.name,
        about.description,
        container.status,
        str(container.final or ""),
        len(container.output[1]),
        len(container.output[2]),
        tuple(f"127.0.0.1:{p}" for p in about.ports),
        tuple(about.volumes),
        about.environment,
    )


def line_of(row: Row) -> str:
    """A row on one line, for a model to read."""
    words = [f"{row.name}: {row.status}", row.final, row.description]
    words.append(f"unread: {row.stdout} bytes of stdout, {row.stderr} of stderr")
    words += [f"ports {', '.join(row.ports)}"] if row.ports else []
    words += [f"volumes {', '.join(row.volumes)}"] if row.volumes else []
    words += [f"{name}={text}" for name, text in row.environment.items()]
    return "; ".join(word for word in words if word)
