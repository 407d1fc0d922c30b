"""How outside data keeps its labels through outcomes and files.

Stands around every invocation. An outcome gets the labels of what it brings: of its address, of its
values, of the files that it was read from. Files that an action with labelled arguments writes are
remembered in the session (`events.Stored`, area `tainted`) before they are written; code that such
an action runs may write anything, so then the whole workspace is. It also looks once more where the
action acts: a link that was changed since it was allowed makes it another action.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from textor import events as e
from textor.actions import Action, Capability, Outcome
from textor.addresses import host_of
from textor.capabilities.port import Scope as PortScope
from textor.capabilities.registry import Invoke
from textor.kernel.state import State, Work
from textor.policy.gate import Gate
from textor.policy.look import PRIVATE, Look, digest_of, look, names_paths, outside
from textor.tree.scope import Scope
from textor.values import Labels, merge_labels, sha256_of

#: The area of `events.Stored` in a session: path ("." is the workspace) -> labels.
AREA = "tainted"

#: Providers whose reading tells nothing of a person's data, except by a path.
_HARMLESS = frozenset({"core", "tree", "agents", "functions", "models", "finding", "iterations"})
_READS_VALUES = "values.read"


class Labelling:
    """A `capabilities.registry.Screen`. `patterns` name the files of a workspace that count as
    data from outside ("downloads/*", "*.eml")."""

    def __init__(self, gate: Gate, patterns: Sequence[str] = ()) -> None:
        self._gate = gate
        self._patterns = tuple(patterns)

    async def __call__(
        self, action: Action, capability: Capability, scope: PortScope, invoke: Invoke
    ) -> Outcome:
        if not isinstance(scope, Scope):
            return await invoke(action, scope)
        paths: tuple[Path, ...] = ()
        # only what names a path, or runs over the workspace, can act elsewhere than it was judged
        if "execute" in capability.effects or names_paths(action, capability):
            agent = scope.state.agents[scope.agent]
            call = look(action, capability, scope.state, agent, self._gate.guarded)
            work = next((w for w in agent.work if w.action.id == action.id), None)
            if work is not None and work.digest and _moved(work, call):
                return Outcome("denied", "Not done: what it acts on was changed after it was allowed.")
            scope.judged = call.judged
            paths = tuple(each.place for each in call.judged.values())
        await self._mark(action, capability, scope, paths)
        outcome = await invoke(action, scope)
        brought = self._brought(action, capability, scope, paths, outcome)
        labels = merge_labels(outcome.labels, *(v.labels for v in outcome.values), brought)
        if not labels:
            return outcome
        values = tuple(replace(v, labels=merge_labels(v.labels, labels)) for v in outcome.values)
        return replace(outcome, labels=labels, values=values)

    async def _mark(
        self, action: Action, capability: Capability, scope: Scope, paths: Sequence[Path]
    ) -> None:
        """Remember the files that are about to hold labelled data."""
        labels = outside(action.labels)
        writes = "write" in capability.effects
        if not labels or not (writes or "execute" in capability.effects):
            return
        told = [_key(path, scope.workspace) for path in paths] if writes else []
        for key in told or ["."]:
            known = tuple(scope.state.stored.get((AREA, key), ()))
            if set(labels) <= set(known):
                continue
            merged = merge_labels(labels, known)
            id = f"{AREA} {sha256_of(repr((key, merged)).encode())[:24]}"
            await scope.post(e.Stored(AREA, key, list(merged)), id)
            await scope.until(lambda state, key=key: _holds(state, key, labels) or None)  # type: ignore[misc]

    def _brought(
        self, action: Action, capability: Capability, scope: Scope, paths: Sequence[Path], outcome: Outcome
    ) -> Labels:
        """The labels of what an outcome was made from, beside those that its provider gave it."""
        effects = set(capability.effects)
        found: set[str] = set()
        if capability.provider == "iterations":  # the past of agents, their labels with it
            for name in scope.state.below(scope.agent):
                agent = scope.state.agents[name]
                found.update(agent.turn.labels if agent.turn else agent.labels)
        if "network" in effects and "execute" not in effects and not outcome.labels:
            found.add(_web(action, capability))
        if "execute" in effects or ("read" in effects and "network" not in effects):
            for key, labels in scope.state.stored.items():
                if key[0] == AREA and ("execute" in effects or _near(key[1], paths, scope.workspace)):
                    found.update(labels)
            found.update(self._by_pattern(paths, scope.workspace))
            if "execute" in effects or paths or _reads_more(capability):
                found.add(f"{PRIVATE}{capability.name.partition('.')[0]}")
        return tuple(sorted(found))

    def _by_pattern(self, paths: Sequence[Path], workspace: Path) -> set[str]:
        """Labels of files that the configuration calls outside data."""
        found: set[str] = set()
        for path in paths:
            key = _key(path, workspace)
            for pattern in self._patterns:
                folder = pattern.removesuffix("/*").removesuffix("/**")
                if (
                    fnmatch.fnmatch(key, pattern)
                    or key == folder
                    or folder.startswith(f"{key}/")
                    or key == "."
                ):
                    found.add(f"file:{pattern}")
        return found


def _moved(work: Work, call: Look) -> bool:
    return digest_of(work.action, call.place, call.judged, call.workspace) != work.digest


def _reads_more(capability: Capability) -> bool:
    return capability.name == _READS_VALUES or capability.provider not in _HARMLESS


def _web(action: Action, capability: Capability) -> str:
    """Where something fetched came from: `web:HOST`, or the capability where no address says it."""
    for value in action.arguments.values():
        if isinstance(value, str) and "://" in value and (host := host_of(value)):
            return f"web:{host}"
    return f"web:{capability.name}"


def _holds(state: State, key: str, labels: Labels) -> bool:
    return set(labels) <= set(state.stored.get((AREA, key), ()))


def _key(path: Path, workspace: Path) -> str:
    """A path as it is remembered: relative within the workspace."""
    root = Path(os.path.realpath(workspace))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _near(key: str, paths: Sequence[Path], workspace: Path) -> bool:
    """Whether one of the paths is a remembered one, lies in it or holds it."""
    marked = Path(os.path.realpath(workspace)) / key
    return any(path.is_relative_to(marked) or marked.is_relative_to(path) for path in paths)
