"""The parts of the status: what stands at the end of a context beside the dialogue, as XML.

Each part is a function of the present moment; assembly gives them to the layouts. Their text is
volatile: it is stored with its iteration and left out of the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textor.capabilities.system import System
from textor.capabilities.watch import View, views
from textor.kernel.state import AgentState, State
from textor.layouts.monitor import Monitor, utc, watched

if TYPE_CHECKING:
    from textor.containers.rows import Row


@dataclass(frozen=True)
class Moment:
    """What a part may look at. `full`: the agent sees nothing but this, so nothing is left out.
    `context` is the share of the window in use, in per cent."""

    state: State
    agent: AgentState
    now: float
    full: bool = False
    context: int = 0


StatusPart = Callable[[Moment], str]  #: a piece of XML; "" where there is nothing to say

#: What XML 1.0 cannot hold, even escaped.
_IMPOSSIBLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def possible(text: str) -> str:
    """`text` without the characters that XML cannot hold."""
    return _IMPOSSIBLE.sub("\ufffd", text)


def content(text: str) -> str:
    """A text as it may stand in an element."""
    return possible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def element(name: str, attributes: Mapping[str, object], inner: str = "") -> str:
    """An element. `inner` is XML already."""
    pairs = "".join(f' {key}="{_attribute(str(value))}"' for key, value in attributes.items())
    return f"<{name}{pairs}>{inner}</{name}>" if inner else f"<{name}{pairs}/>"


def _attribute(text: str) -> str:
    return content(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def lines(name: str, inner: Iterable[str]) -> str:
    """An element with one line for each of its parts."""
    parts = [part for part in inner if part]
    return "\n".join([f"<{name}>", *parts, f"</{name}>"]) if parts else f"<{name}/>"


def parts_of(monitor: Monitor) -> dict[str, StatusPart]:
    """The parts that every machine has, by name."""
    return {
        "system": system_part(monitor, System()),
        "containers": containers_part(monitor),
        "files": files_part(monitor),
    }


# -- the parts -----------------------------------------------------------------------------


def containers_part(monitor: Monitor) -> StatusPart:
    """Each container; where the dialogue tells of those that ended, only what is not over."""

    def part(moment: Moment) -> str:
        created = moment.state.created
        rows = monitor.rows(created.session) if created else []
        kept = [r for r in rows if moment.full or r.status != "finished" or r.stdout or r.stderr]
        return lines("containers", map(_container, kept)) if kept or moment.full else ""

    return part


def files_part(monitor: Monitor) -> StatusPart:
    """The monitored files and folders with their present content."""

    def part(moment: Moment) -> str:
        monitor.shown(moment.state, moment.agent.id)
        found = views(watched(moment.state, moment.agent.id, folders=moment.full))
        return lines("files", map(_file, found)) if found or moment.full else ""

    return part


def system_part(monitor: Monitor, system: System) -> StatusPart:
    """The machine in figures, for agents that see nothing else of it."""

    def part(moment: Moment) -> str:
        created = moment.state.created
        if not moment.full or created is None:
            return ""
        load = system.load(Path(created.workspace))
        waiting = len(monitor.stdio) if monitor.stdio.session == created.session else 0
        figures = {
            "time": utc(moment.now),
            "cpu": load.cpu,
            "gpu": load.gpu,
            "memory_used": load.memory_used,
            "memory_total": load.memory_total,
            "disk_used": load.disk_used,
            "disk_total": load.disk_total,
            "context": moment.context,
            "stdin": waiting,
        }
        return element("system", figures)

    return part


def _container(row: Row) -> str:
    attributes: dict[str, object] = {"name": row.name}
    if row.description:
        attributes["description"] = row.description
    attributes["status"] = row.status
    if row.final:
        attributes["final"] = row.final
    attributes |= {"stdout": row.stdout, "stderr": row.stderr}
    inner = [element("port", {}, content(port)) for port in row.ports]
    inner += [element("volume", {}, content(volume)) for volume in row.volumes]
    inner += [element("environment", {"name": k}, content(v)) for k, v in row.environment.items()]
    return element("container", attributes, "".join(f"\n{x}" for x in inner) + ("\n" if inner else ""))


def _file(view: View) -> str:
    attributes: dict[str, object] = {"name": view.name, "type": view.kind}
    if view.index is not None:
        attributes["index"] = view.index
    told = "\n".join(part for part in (content(view.text).rstrip("\n"), content(view.note)) if part)
    return element("file", attributes, f"\n{told}\n" if told else "\n")
