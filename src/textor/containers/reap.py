"""Containers that were left behind are removed: at exit, and at the next start (case T7)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from textor.containers.engine import Engine, State
from textor.containers.labels import CONTAINER, INSTANCE, KIND, SESSION, Owner, is_alive, owner_of


async def reap(engine: Engine, owner: Owner, sessions: Collection[str] = ()) -> list[State]:
    """Remove what dead processes left; give what can be adopted.

    Adopted is what agents of `sessions` made over the same data folder: their sessions go on after
    a crash, and their containers with them. What belongs to a living process, or to another data
    folder whose next start will look after it, is left alone.
    """
    adopted: list[State] = []
    lost: list[State] = []
    for state in await engine.list({INSTANCE: ""}):
        theirs = owner_of(state.labels)
        if theirs.instance == owner.instance or is_alive(theirs.instance):
            continue
        if state.labels.get(KIND) != CONTAINER or not theirs.home:
            lost.append(state)
        elif theirs.home == owner.home:
            (adopted if state.labels.get(SESSION) in sessions else lost).append(state)
    await remove_all(engine, lost)
    return adopted


async def remove_all(engine: Engine, states: Sequence[State]) -> None:
    """Remove several at once; one that cannot be removed does not keep the others."""
    results = await asyncio.gather(*(engine.remove(state.id) for state in states), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
